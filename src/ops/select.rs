//! Choosing between two tensors by a condition.

use serde::{Deserialize, Serialize};

use crate::dtype::{DType, for_dtype};
use crate::error::{Error, Result};
use crate::kernels::elementwise;
use crate::tensor::{Tensor, checked_size, take};

use super::apply;
use super::arithmetic::same_dtype;
use super::broadcast::broadcast_shape;
use super::gradient::Gradient;
use super::op::{Computed, Input, Inputs, Mask, Op, Saved, Saves};
use super::operand::Operand;
use super::registry::{Listed, Sample, SampleInput};

/// `y = a` where the condition holds, else `b`; all three broadcast.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Where;

impl Op for Where {
    fn name(&self) -> &'static str {
        "where"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::inputs(Mask::only(0))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (condition, a, b) = (inputs.get(0)?, inputs.get(1)?, inputs.get(2)?);
        if condition.dtype() != DType::Bool {
            return Err(Error::dtype("where", "the condition", condition.dtype(), "bool"));
        }
        let dtype = same_dtype("where", a, b)?;
        let shape = broadcast_shape("where", a.shape(), b.shape())?;
        let shape = broadcast_shape("where", condition.shape(), &shape)?;
        let size = checked_size("where", &shape, dtype)?;
        let (condition, a, b) = (condition.expanded(&shape)?, a.expanded(&shape)?, b.expanded(&shape)?);
        for_dtype!(dtype, T => {
            let mut y = take::<T>(size);
            let choose = |c: bool, a: T, b: T| if c { a } else { b };
            elementwise::zip3(condition.view::<bool>()?, a.view::<T>()?, b.view::<T>()?, &mut y, choose);
            Ok(Tensor::from_taken(y, shape).into())
        })
    }

    /// `da` is `dy` where the condition holds and 0 elsewhere; `db` is the rest of `dy`.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None, None, None]) };
        let condition = saved.input(0)?;
        let da = if needs.has(1) { Some(kept_where(condition, dy)?) } else { None };
        let db = if needs.has(2) { Some(kept_unless(condition, dy)?) } else { None };
        Ok(vec![None, da.map(Gradient::Dense), db.map(Gradient::Dense)])
    }
}

/// `x` where the condition holds, else 0.
pub(crate) fn kept_where(condition: &Tensor, x: &Tensor) -> Result<Tensor> {
    apply(Where, [condition, x, &Tensor::scalar(0.0, x.dtype())])
}

/// 0 where the condition holds, else `x`.
pub(crate) fn kept_unless(condition: &Tensor, x: &Tensor) -> Result<Tensor> {
    apply(Where, [condition, &Tensor::scalar(0.0, x.dtype()), x])
}

impl Listed for Where {
    fn samples() -> Vec<Sample> {
        let sample = |c: &[usize], a: &[usize], b: &[usize]| {
            let condition = SampleInput::Bool { shape: c.to_vec() };
            Sample::new(Where, [condition, SampleInput::float(a), SampleInput::float(b)])
        };
        vec![sample(&[2, 3], &[2, 3], &[2, 3]), sample(&[4, 1], &[3], &[2, 1, 1]), sample(&[3], &[], &[2, 3])]
    }
}

impl Tensor {
    /// `a` where `self`, a tensor of bools, holds, else `b`; all three broadcast.
    ///
    /// The branch not taken gets a gradient of 0, also where it is not finite.
    ///
    /// ```
    /// use couplet::Tensor;
    /// let x = Tensor::from([-1.0f32, 4.0]);
    /// let y = x.greater(0.0)?.where_else(&x, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 4.0]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// `self` is not bool, `a` and `b` differ in dtype, or the shapes do not broadcast.
    pub fn where_else<'a>(&'a self, a: &'a Tensor, b: impl Operand<'a>) -> Result<Tensor> {
        apply(Where, [Input::Ref(self), Input::Ref(a), b.into_input(a)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GradientTape;

    #[test]
    fn all_three_broadcast_and_the_other_branch_gets_zero() -> Result<()> {
        let condition = Tensor::from([true, false]);
        let (a, b) = (Tensor::from([[1.0f64], [f64::NAN]]), Tensor::from(f64::INFINITY));
        let tape = GradientTape::new();
        tape.watch(&a);
        tape.watch(&b);
        let y = condition.where_else(&a, &b)?;
        assert_eq!(y.shape(), &[2, 2]);
        let g = tape.gradient_with_seed(&y, &Tensor::ones([2, 2], DType::F64)?, &[&a, &b])?;
        assert_eq!(g[0].as_ref().unwrap().dense()?.to_vec::<f64>()?, [1.0, 1.0]);
        assert_eq!(g[1].as_ref().unwrap().dense()?.item::<f64>()?, 2.0);
        Ok(())
    }

    #[test]
    fn the_condition_must_be_bool_and_the_branches_alike() {
        let x = Tensor::from([1.0f32]);
        assert!(x.where_else(&x, &x).unwrap_err().to_string().contains("bool"));
        assert!(Tensor::from([true]).where_else(&x, Tensor::from([1])).is_err());
        assert!(Tensor::from([true, false, true]).where_else(&Tensor::from([1, 2]), 0).is_err());
    }
}
