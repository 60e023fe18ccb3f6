//! Plain loops over slices: no tape, no tensors.

pub(crate) mod blocks;
pub(crate) mod conv;
pub(crate) mod elementwise;
pub(crate) mod gather;
pub(crate) mod gemm;
pub(crate) mod lanes;
pub(crate) mod layout;
pub(crate) mod math;
mod micro;
pub(crate) mod normalise;
pub(crate) mod order;
mod pack;
pub mod parallel;
pub(crate) mod plain_gemm;
pub(crate) mod pool;
pub(crate) mod qr;
pub(crate) mod quantile;
pub(crate) mod random;
mod real;
pub(crate) mod reduce;
pub(crate) mod scan;
pub(crate) mod scatter;
mod scratch;
pub(crate) mod simd;
pub(crate) mod softmax;
pub(crate) mod sum_squares;
pub(crate) mod update;
