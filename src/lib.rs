//! Eager neural networks on `ndarray`.

pub mod autodiff;
mod codec;
pub mod data;
mod dtype;
mod error;
pub(crate) mod kernels;
pub mod ops;
pub mod random;
mod tensor;
mod variable;

pub use autodiff::{GradientTape, Source, no_grad, value_and_grad};
pub use dtype::{DType, Element};
pub use error::{Error, Result};
pub use ops::{Gradient, IndexedSlices, Slice};
pub use tensor::{Shape, Tensor, release_cached_memory};
pub use variable::Variable;
