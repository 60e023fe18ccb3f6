//! Correlations between the columns of a matrix.

use crate::error::{Error, Result};
use crate::tensor::Tensor;

use super::{Regularizer, scaled_sum};

/// `scale sum ((w^T w) - diag(w^T w))^2` over all tensors: drives the columns of each matrix to be orthogonal, whatever their
/// lengths are (Brock, Donahue and Simonyan 2019, "Large scale GAN training", 3.1).
///
/// A tensor of a higher rank is a matrix whose columns are its last axis.
///
/// ```
/// use couplet::{Tensor, regularizers::{OffDiagonalOrthogonal, Regularizer}};
/// // w^T w = [[1, 2], [2, 5]]
/// let penalty = OffDiagonalOrthogonal::new(0.5).penalty(&[Tensor::from([[1.0f32, 2.0], [0.0, 1.0]])])?;
/// assert_eq!(penalty.item::<f32>()?, 4.0);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OffDiagonalOrthogonal {
    scale: f64,
}

impl OffDiagonalOrthogonal {
    /// The penalty with weight `scale`, 0 or more; checked when it is used.
    pub fn new(scale: f64) -> Self {
        OffDiagonalOrthogonal { scale }
    }
}

impl Regularizer for OffDiagonalOrthogonal {
    fn penalty(&self, tensors: &[Tensor]) -> Result<Tensor> {
        const OP: &str = "OffDiagonalOrthogonal";
        scaled_sum(OP, self.scale, tensors, |x| {
            if x.rank() < 2 {
                return Err(Error::shape(OP, "a tensor", x.shape(), "rank 2 or more"));
            }
            let columns = x.dim(-1)?;
            let rows = x.shape()[..x.rank() - 1].iter().product::<usize>();
            let w = x.reshape([rows, columns])?;
            let products = w.transpose(&[1, 0])?.matmul(&w)?;
            (products * (1.0 - Tensor::eye(columns, columns, x.dtype())?)?)?.sum_squares()?.cast(x.dtype())
        })
    }
}
