//! Logic on bools, with broadcasting, and where a condition holds.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::{elementwise, lanes};
use crate::tensor::{Shape, Tensor, take};

use super::apply;
use super::compare::zip_to;
use super::gradient::Gradient;
use super::op::{Computed, Inputs, Mask, Op, Saved};
use super::registry::{Listed, Sample, SampleInput};

fn check_bool(op: &'static str, what: &str, x: &Tensor) -> Result<()> {
    if x.dtype() == DType::Bool {
        return Ok(());
    }
    Err(Error::dtype(op, what, x.dtype(), "bool; compare it, or convert it with cast"))
}

fn zip_bools(
    op: &'static str,
    inputs: &Inputs<'_, '_>,
    f: impl Fn(bool, bool) -> bool + Sync + Copy,
) -> Result<Computed> {
    let (a, b) = (inputs.get(0)?, inputs.get(1)?);
    check_bool(op, "the first input", a)?;
    check_bool(op, "the second input", b)?;
    zip_to::<bool, bool>(op, a, b, f).map(Computed::from)
}

fn bools(shape: &[usize]) -> SampleInput {
    SampleInput::Bool { shape: shape.to_vec() }
}

/// `y = a and b`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LogicalAnd;

impl Op for LogicalAnd {
    fn name(&self) -> &'static str {
        "logical_and"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        zip_bools("logical_and", inputs, |a, b| a & b)
    }

    fn gradient(&self, _: &Saved, _: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        Ok(vec![None, None])
    }
}

impl Listed for LogicalAnd {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(LogicalAnd, [bools(&[2, 3]), bools(&[3])])]
    }
}

/// `y = a or b`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LogicalOr;

impl Op for LogicalOr {
    fn name(&self) -> &'static str {
        "logical_or"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        zip_bools("logical_or", inputs, |a, b| a | b)
    }

    fn gradient(&self, _: &Saved, _: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        Ok(vec![None, None])
    }
}

impl Listed for LogicalOr {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(LogicalOr, [bools(&[2, 3]), bools(&[3])])]
    }
}

/// `y` is whether `a` and `b` differ.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LogicalXor;

impl Op for LogicalXor {
    fn name(&self) -> &'static str {
        "logical_xor"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        zip_bools("logical_xor", inputs, |a, b| a ^ b)
    }

    fn gradient(&self, _: &Saved, _: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        Ok(vec![None, None])
    }
}

impl Listed for LogicalXor {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(LogicalXor, [bools(&[2, 1]), bools(&[3])])]
    }
}

/// `y = not x`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LogicalNot;

impl Op for LogicalNot {
    fn name(&self) -> &'static str {
        "logical_not"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let x = inputs.get(0)?;
        check_bool("logical_not", "the input", x)?;
        let mut y = take::<bool>(x.size());
        elementwise::map(x.view::<bool>()?, &mut y, |x: bool| !x);
        Ok(Tensor::from_taken(y, x.shape().clone()).into())
    }

    fn gradient(&self, _: &Saved, _: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        Ok(vec![None])
    }
}

impl Listed for LogicalNot {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(LogicalNot, [bools(&[2, 3])])]
    }
}

/// `y[n, ..]` is the position of element number `n` of those that are not 0, in row-major order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WhereIndices;

impl Op for WhereIndices {
    fn name(&self) -> &'static str {
        "where_indices"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let x = inputs.get(0)?;
        let chosen = x.converted(DType::Bool)?.to_contiguous();
        let positions = lanes::positions(chosen.as_slice::<bool>()?.unwrap_or(&[]));
        let shape = Shape::from([positions.len(), x.rank()]);
        let mut y = take::<i64>(shape.size());
        lanes::map(&positions, 1, &mut y, x.rank(), |at, y| {
            let mut rest = at[0];
            for (y, &dim) in y.iter_mut().zip(x.shape().iter()).rev() {
                *y = (rest % dim) as i64;
                rest /= dim;
            }
        });
        Ok(Tensor::from_taken(y, shape).into())
    }

    fn gradient(&self, _: &Saved, _: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        Ok(vec![None])
    }
}

impl Listed for WhereIndices {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(WhereIndices, [bools(&[2, 3])])]
    }
}

impl Tensor {
    /// Whether both elements hold, broadcast.
    ///
    /// # Errors
    /// A tensor is not bool, or the shapes do not broadcast.
    pub fn logical_and(&self, other: &Tensor) -> Result<Tensor> {
        apply(LogicalAnd, [self, other])
    }

    /// Whether at least one of both elements holds, broadcast.
    ///
    /// # Errors
    /// A tensor is not bool, or the shapes do not broadcast.
    pub fn logical_or(&self, other: &Tensor) -> Result<Tensor> {
        apply(LogicalOr, [self, other])
    }

    /// Whether exactly one of both elements holds, broadcast.
    ///
    /// # Errors
    /// A tensor is not bool, or the shapes do not broadcast.
    pub fn logical_xor(&self, other: &Tensor) -> Result<Tensor> {
        apply(LogicalXor, [self, other])
    }

    /// Whether the element does not hold.
    ///
    /// # Errors
    /// The tensor is not bool.
    pub fn logical_not(&self) -> Result<Tensor> {
        apply(LogicalNot, [self])
    }

    /// Positions of the elements that are true (or not 0), in row-major order: `i64[n, rank]`.
    ///
    /// ```
    /// use couplet::Tensor;
    /// let x = Tensor::from([[0.0f32, 3.0], [5.0, 0.0]]);
    /// assert_eq!(x.where_indices()?.to_vec::<i64>()?, [0, 1, 1, 0]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// None today; the result is for symmetry with the other ops.
    pub fn where_indices(&self) -> Result<Tensor> {
        apply(WhereIndices, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_truth_hold_and_broadcast() -> Result<()> {
        let (a, b) = (Tensor::from([[true], [false]]), Tensor::from([true, false]));
        assert_eq!(a.logical_and(&b)?.to_vec::<bool>()?, [true, false, false, false]);
        assert_eq!(a.logical_or(&b)?.to_vec::<bool>()?, [true, true, true, false]);
        assert_eq!(a.logical_xor(&b)?.to_vec::<bool>()?, [false, true, true, false]);
        assert_eq!(b.logical_not()?.to_vec::<bool>()?, [false, true]);
        let message = a.logical_and(&Tensor::from([1])).unwrap_err().to_string();
        assert!(message.contains("second") && message.contains("bool"), "{message}");
        Ok(())
    }

    #[test]
    fn positions_of_a_scalar_and_of_nothing_have_the_right_shape() -> Result<()> {
        assert_eq!(Tensor::from(true).where_indices()?.shape(), &[1, 0]);
        assert_eq!(Tensor::from([false, false]).where_indices()?.shape(), &[0, 1]);
        assert_eq!(Tensor::zeros([2, 0], DType::F32)?.where_indices()?.shape(), &[0, 2]);
        Ok(())
    }
}
