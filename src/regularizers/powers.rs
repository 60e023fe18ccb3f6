//! Sums of absolute values and of squares.

use crate::error::Result;
use crate::tensor::Tensor;

use super::{Regularizer, scaled_sum};

/// `scale sum |w|` over all elements of all tensors: drives weights to 0 (Tibshirani 1996, "Regression shrinkage and
/// selection via the lasso"). The gradient is 0 where a weight is 0.
///
/// ```
/// use couplet::{Tensor, regularizers::{L1, Regularizer}};
/// let penalty = L1::new(0.5).penalty(&[Tensor::from([1.0f32, -2.0]), Tensor::from([3.0f32])])?;
/// assert_eq!(penalty.item::<f32>()?, 3.0);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct L1 {
    scale: f64,
}

impl L1 {
    /// The penalty with weight `scale`, 0 or more; checked when it is used.
    pub fn new(scale: f64) -> Self {
        L1 { scale }
    }
}

impl Regularizer for L1 {
    fn penalty(&self, tensors: &[Tensor]) -> Result<Tensor> {
        scaled_sum("L1", self.scale, tensors, |x| x.abs()?.sum())
    }
}

/// `scale sum w^2` over all elements of all tensors, without a factor of one half (Hoerl and Kennard 1970, "Ridge
/// regression").
///
/// ```
/// use couplet::{Tensor, regularizers::{L2, Regularizer}};
/// let penalty = L2::new(0.5).penalty(&[Tensor::from([1.0f32, -2.0]), Tensor::from([3.0f32])])?;
/// assert_eq!(penalty.item::<f32>()?, 7.0);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct L2 {
    scale: f64,
}

impl L2 {
    /// The penalty with weight `scale`, 0 or more; checked when it is used.
    pub fn new(scale: f64) -> Self {
        L2 { scale }
    }
}

impl Regularizer for L2 {
    fn penalty(&self, tensors: &[Tensor]) -> Result<Tensor> {
        scaled_sum("L2", self.scale, tensors, |x| x.sum_squares()?.cast(x.dtype()))
    }
}
