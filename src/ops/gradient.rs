//! Gradients: dense tensors, or slices of rows.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor};

/// What one source of a differentiation received.
#[derive(Debug, Clone)]
pub enum Gradient {
    /// A tensor of the source's shape.
    Dense(Tensor),
    /// Rows of the source along axis 0; everything else is 0.
    Sparse(Box<IndexedSlices>),
}

/// Rows of a tensor along axis 0: `values[i]` belongs to row `indices[i]`; repeated rows add up.
#[derive(Debug, Clone)]
pub struct IndexedSlices {
    /// The rows, `[n, ...]`.
    pub values: Tensor,
    /// Row numbers, `i64[n]`, each in `0..dims[0]`.
    pub indices: Tensor,
    /// Shape of the whole tensor.
    pub dims: Shape,
}

impl Gradient {
    /// The shape of the source.
    pub fn shape(&self) -> &Shape {
        match self {
            Gradient::Dense(t) => t.shape(),
            Gradient::Sparse(s) => &s.dims,
        }
    }

    /// The dtype of the values.
    pub fn dtype(&self) -> DType {
        match self {
            Gradient::Dense(t) => t.dtype(),
            Gradient::Sparse(s) => s.values.dtype(),
        }
    }

    /// The gradient as one tensor; slices are added into zeros.
    ///
    /// # Errors
    /// The slices do not fit together.
    pub fn to_dense(&self) -> Result<Tensor> {
        match self {
            Gradient::Dense(t) => Ok(t.clone()),
            Gradient::Sparse(s) => s.to_dense(),
        }
    }

    /// The dense tensor.
    ///
    /// # Errors
    /// The gradient is sparse; call [`to_dense`](Gradient::to_dense) where densifying is meant.
    pub fn dense(&self) -> Result<&Tensor> {
        match self {
            Gradient::Dense(t) => Ok(t),
            Gradient::Sparse(_) => {
                Err(Error::usage("gradient", "the gradient is made of sparse rows", "call to_dense()"))
            }
        }
    }
}

impl From<Tensor> for Gradient {
    fn from(t: Tensor) -> Self {
        Gradient::Dense(t)
    }
}

impl From<IndexedSlices> for Gradient {
    fn from(s: IndexedSlices) -> Self {
        Gradient::Sparse(Box::new(s))
    }
}
