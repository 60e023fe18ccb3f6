//! Plain loops over slices: no tape, no tensors.

pub(crate) mod blocks;
pub(crate) mod conv;
pub(crate) mod elementwise;
pub(crate) mod gather;
pub(crate) mod gemm;
pub(crate) mod layout;
pub(crate) mod math;
mod micro;
pub(crate) mod normalise;
mod pack;
pub mod parallel;
pub(crate) mod pool;
mod real;
pub(crate) mod reduce;
mod scratch;
pub(crate) mod simd;
pub(crate) mod softmax;
pub(crate) mod update;
