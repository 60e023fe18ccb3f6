//! Plain loops over slices: no tape, no tensors.

pub(crate) mod conv;
pub(crate) mod elementwise;
pub(crate) mod gemm;
pub(crate) mod layout;
mod micro;
mod pack;
pub mod parallel;
pub(crate) mod plain_gemm;
mod real;
pub(crate) mod reduce;
mod scratch;
