//! Plain loops over slices: no tape, no tensors.

pub(crate) mod conv;
pub(crate) mod gemm;
mod micro;
mod pack;
pub mod parallel;
pub(crate) mod pool;
mod real;
mod scratch;
pub(crate) mod simd;
