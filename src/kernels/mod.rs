//! Plain loops over slices: no tape, no tensors.

pub(crate) mod conv;
pub(crate) mod gemm;
mod micro;
mod pack;
pub mod parallel;
mod real;
mod scratch;
