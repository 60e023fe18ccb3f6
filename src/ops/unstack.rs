//! Taking a tensor apart along an axis.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Strides, Tensor, checked_size, resolve_axis};

use super::apply_many;
use super::gradient::Gradient;
use super::op::{Computed, Inputs, Mask, Op, Saved};
use super::registry::{Listed, Sample, SampleInput};

/// The tensors at each index of `axis`, which is dropped, as views of `x`, a tensor of shape `from`.
///
/// One op of many outputs, so that the gradient puts them together in one pass.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Unstack {
    axis: usize,
    from: Shape,
}

impl Op for Unstack {
    fn name(&self) -> &'static str {
        "unstack"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let x = inputs.get(0)?;
        if *x.shape() != self.from {
            return Err(Error::shape("unstack", "x", x.shape(), self.from.to_string()));
        }
        let without = |axis: usize| axis != self.axis;
        let shape: Shape = (0..x.rank()).filter(|&a| without(a)).map(|a| x.shape()[a]).collect();
        let strides: Vec<isize> = (0..x.rank()).filter(|&a| without(a)).map(|a| x.strides()[a]).collect();
        let at = |i: usize| {
            let offset = x.offset() as isize + i as isize * x.strides()[self.axis];
            x.view_as(offset as usize, shape.clone(), Strides::new(&strides))
        };
        Ok(Computed::many((0..self.from[self.axis]).map(at).collect()))
    }

    /// `dx` holds the parts along the axis, zeros for those without an influence.
    fn gradient(&self, _: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(like) = dy.iter().flatten().next() else { return Ok(vec![None]) };
        let zeros = Tensor::zeros(like.shape().clone(), like.dtype())?;
        let parts: Vec<&Tensor> = dy.iter().map(|part| part.as_ref().unwrap_or(&zeros)).collect();
        Ok(vec![Some(Gradient::Dense(Tensor::stack(&parts, self.axis as isize)?))])
    }
}

impl Listed for Unstack {
    fn samples() -> Vec<Sample> {
        let sample = |axis: usize, from: [usize; 3]| {
            Sample::new(Unstack { axis, from: from.into() }, [SampleInput::float(&from)])
        };
        let whole = (0..3).map(|axis| sample(axis, [2, 3, 4]));
        whole.chain([sample(1, [1, 1, 1]), sample(1, [2, 3, 0])]).collect()
    }
}

impl Tensor {
    /// The tensors at each index of `axis`, which is dropped, as views.
    ///
    /// # Errors
    /// The axis is out of range.
    pub fn unstack(&self, axis: isize) -> Result<Vec<Tensor>> {
        let axis = resolve_axis("unstack", axis, self.rank())?;
        if self.shape()[axis] == 0 {
            return Ok(Vec::new());
        }
        // An axis of a tensor without elements may be as long as one likes, but the list of parts must fit in memory.
        checked_size("unstack", &Shape::from([self.shape()[axis]]), DType::I64)?;
        apply_many(Unstack { axis, from: self.shape().clone() }, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GradientTape;

    #[test]
    fn parts_are_views_in_order() -> Result<()> {
        let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
        let parts = x.unstack(-1)?;
        assert_eq!((parts.len(), parts[2].to_vec::<i32>()?), (3, vec![3, 6]));
        assert!(parts.iter().all(|part| part.shares_memory_with(&x)));
        assert_eq!(x.t()?.unstack(0)?[1].to_vec::<i32>()?, [2, 5]);
        assert!(Tensor::zeros([2, 0], DType::F32)?.unstack(1)?.is_empty());
        assert!(Tensor::from(1.0f32).unstack(0).is_err());
        // Parts without elements, one of which would lie behind the end of the memory.
        let parts = Tensor::zeros([3, 0], DType::F32)?.transpose(&[1, 0])?.unstack(1)?;
        assert_eq!(Tensor::stack(&parts.iter().collect::<Vec<_>>(), 1)?.shape(), &[0, 3]);
        Ok(())
    }

    #[test]
    fn a_part_that_is_not_used_gets_zeros() -> Result<()> {
        let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]);
        let tape = GradientTape::new();
        tape.watch(&x);
        let parts = x.unstack(0)?;
        let y = ((&parts[0] * 2.0)? + &parts[2])?.sum()?;
        let dx = tape.gradient(&y, &[&x])?.remove(0).expect("it is used");
        assert_eq!(dx.dense()?.to_vec::<f32>()?, [2.0, 2.0, 0.0, 0.0, 1.0, 1.0]);
        Ok(())
    }
}
