//! For those who know another library: its names, ours beside them, and what differs.
//!
//! Every example on these pages is compiled and run with the tests.

#[doc = include_str!("coming_from_numpy.md")]
pub mod coming_from_numpy {}

#[doc = include_str!("coming_from_pytorch.md")]
pub mod coming_from_pytorch {}

#[doc = include_str!("coming_from_sonnet/overview.md")]
#[doc = include_str!("coming_from_sonnet/modules.md")]
#[doc = include_str!("coming_from_sonnet/layers.md")]
#[doc = include_str!("coming_from_sonnet/recurrent.md")]
#[doc = include_str!("coming_from_sonnet/nets.md")]
#[doc = include_str!("coming_from_sonnet/training.md")]
#[doc = include_str!("coming_from_sonnet/functional.md")]
#[doc = include_str!("coming_from_sonnet/tensorflow.md")]
#[doc = include_str!("coming_from_sonnet/differences.md")]
pub mod coming_from_sonnet {}
