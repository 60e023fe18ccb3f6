//! Penalties on the size or the correlation of weights, to be added to a loss.

mod off_diagonal_orthogonal;
mod powers;

pub use off_diagonal_orthogonal::OffDiagonalOrthogonal;
pub use powers::{L1, L2};

use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// A penalty on a list of tensors.
pub trait Regularizer {
    /// The penalty, a scalar; 0 (`f32`) for no tensors.
    ///
    /// # Errors
    /// A tensor does not suit the penalty, dtypes differ, or the scale is negative or not finite.
    fn penalty(&self, tensors: &[Tensor]) -> Result<Tensor>;
}

/// Refuses a scale that is not a number from 0 on.
fn check_scale(op: &'static str, scale: f64) -> Result<()> {
    if scale >= 0.0 && scale.is_finite() {
        return Ok(());
    }
    Err(Error::argument(op, "scale", scale, "a finite number, 0 or more"))
}

/// `scale` times the sum of `f` over the tensors.
fn scaled_sum(
    op: &'static str,
    scale: f64,
    tensors: &[Tensor],
    f: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    check_scale(op, scale)?;
    let mut sum: Option<Tensor> = None;
    for x in tensors {
        if !x.dtype().is_float() {
            return Err(Error::dtype(op, "a tensor", x.dtype(), "a float dtype"));
        }
        let one = f(x)?;
        sum = Some(match sum {
            None => one,
            Some(sum) => (sum + one)?,
        });
    }
    sum.map_or_else(|| Ok(Tensor::from(0.0f32)), |sum| sum * scale)
}
