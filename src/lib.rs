//! Eager neural networks on `ndarray`.

pub(crate) mod kernels;
