//! Plain loops over slices: no tape, no tensors.

pub(crate) mod blocks;
pub(crate) mod elementwise;
pub(crate) mod gather;
pub(crate) mod layout;
pub mod parallel;
pub(crate) mod simd;
