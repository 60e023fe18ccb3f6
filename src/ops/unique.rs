//! The different elements of a tensor.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernels::order;
use crate::tensor::{Shape, Tensor, take};

use super::apply_many;
use super::arithmetic::for_ordered;
use super::gradient::Gradient;
use super::op::{Computed, Inputs, Mask, Op, Saved};
use super::registry::{Listed, Sample, SampleInput};

/// For the different elements of `x` in sorted order, three outputs: where each first is in row-major order `[n]`, the
/// number of the one that each element of `x` is (in the shape of `x`), and how often each is there `[n]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UniqueIndices;

impl Op for UniqueIndices {
    fn name(&self) -> &'static str {
        "unique_indices"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let x = inputs.get(0)?.to_contiguous().ordered()?;
        let mut inverse = take::<i64>(x.size());
        let (firsts, counts) = for_ordered!(x.dtype(), T => {
            order::groups(x.as_slice::<T>()?.unwrap_or(&[]), &mut inverse)
        });
        let list = |v: Vec<i64>| {
            let shape = Shape::from([v.len()]);
            Tensor::from_foreign(v, shape)
        };
        let inverse = Tensor::from_taken(inverse, x.shape().clone());
        Ok(Computed::many(vec![list(firsts), inverse, list(counts)]))
    }

    fn gradient(&self, _: &Saved, _: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        Ok(vec![None])
    }
}

impl Listed for UniqueIndices {
    fn samples() -> Vec<Sample> {
        let labels = SampleInput::Index { shape: vec![4, 3], below: 5 };
        vec![Sample::new(UniqueIndices, [labels]), Sample::new(UniqueIndices, [SampleInput::float(&[2, 3])])]
    }
}

impl Tensor {
    /// The different elements in sorted order, and where and how often they are: `(values, inverse, counts)`.
    ///
    /// | tensor    | shape             | what it is                                                  |
    /// |-----------|-------------------|-------------------------------------------------------------|
    /// | `values`  | `[n]`             | each element once, NaN (of which all are one) last          |
    /// | `inverse` | that of `self`    | `i64`: `values[inverse[i..]]` is the element at `i..`       |
    /// | `counts`  | `[n]`             | `i64`: how often each of `values` is there                  |
    ///
    /// The gradient of `values` goes to the first of equal elements.
    ///
    /// ```
    /// use couplet::Tensor;
    /// let (values, inverse, counts) = Tensor::from([5, 2, 5, 9]).unique()?;
    /// assert_eq!(values.to_vec::<i32>()?, [2, 5, 9]);
    /// assert_eq!(inverse.to_vec::<i64>()?, [1, 0, 1, 2]);
    /// assert_eq!(counts.to_vec::<i64>()?, [1, 2, 1]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// None today; the result is for symmetry with the other ops.
    pub fn unique(&self) -> Result<(Tensor, Tensor, Tensor)> {
        let list = <[Tensor; 3]>::try_from(apply_many(UniqueIndices, [self])?);
        let [firsts, inverse, counts] =
            list.map_err(|_| Error::usage("unique", "an output is missing", "report this as a bug"))?;
        let values = self.reshape([self.size()])?.gather_rows_densely(&firsts)?;
        Ok((values, inverse, counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, GradientTape};

    #[test]
    fn zeros_of_both_signs_are_one_and_so_are_all_nan() -> Result<()> {
        let x = Tensor::from([[f32::NAN, 0.0, -1.0], [-0.0, f32::INFINITY, f32::NAN]]);
        let (values, inverse, counts) = x.unique()?;
        let values = values.to_vec::<f32>()?;
        assert!(values[..3] == [-1.0, 0.0, f32::INFINITY] && values[3].is_nan() && values.len() == 4);
        assert_eq!((inverse.shape().dims(), inverse.to_vec::<i64>()?), (&[2, 3][..], vec![3, 1, 0, 1, 2, 3]));
        assert_eq!(counts.to_vec::<i64>()?, [1, 2, 1, 2]);
        Ok(())
    }

    #[test]
    fn bools_and_empty_tensors_have_their_elements() -> Result<()> {
        assert_eq!(Tensor::from([true, true]).unique()?.0.to_vec::<bool>()?, [true]);
        let (values, inverse, counts) = Tensor::zeros([2, 0], DType::F16)?.unique()?;
        assert_eq!((values.dtype(), values.size(), counts.size()), (DType::F16, 0, 0));
        assert_eq!(inverse.shape(), &[2, 0]);
        Ok(())
    }

    #[test]
    fn the_first_of_equal_elements_gets_the_gradient() -> Result<()> {
        let x = Tensor::from([3.0f64, 1.0, 3.0]);
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = (x.unique()?.0 * Tensor::from([10.0f64, 20.0]))?;
        let dx = tape.gradient(&y.sum()?, &[&x])?.remove(0).unwrap().to_dense()?;
        assert_eq!(dx.to_vec::<f64>()?, [20.0, 10.0, 0.0]);
        Ok(())
    }
}
