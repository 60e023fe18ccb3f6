//! One-hot rows.

use serde::{Deserialize, Serialize};

use crate::dtype::{DType, Element, for_dtype};
use crate::error::{Error, Result};
use crate::kernels::lanes;
use crate::tensor::{Shape, Tensor, checked_size, take};

use super::apply;
use super::gradient::Gradient;
use super::op::{Computed, Inputs, Mask, Op, Saved};
use super::registry::{Listed, Sample, SampleInput};

/// `y[.., j]` is 1 where `j` is the index, else 0, for `j` in `0..depth`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OneHot {
    depth: usize,
    dtype: DType,
}

impl Op for OneHot {
    fn name(&self) -> &'static str {
        "one_hot"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let indices = inputs.get(0)?;
        if !indices.dtype().is_integer() {
            return Err(Error::dtype("one_hot", "indices", indices.dtype(), "an integer dtype"));
        }
        let shape: Shape = indices.shape().iter().copied().chain([self.depth]).collect();
        let size = checked_size("one_hot", &shape, self.dtype)?;
        let indices = indices.converted(DType::I64)?.to_contiguous();
        let indices = indices.as_slice::<i64>()?.unwrap_or(&[]);
        for_dtype!(self.dtype, T => {
            let mut y = take::<T>(size);
            lanes::map(indices, 1, &mut y, self.depth, |index, y| {
                y.fill(T::default());
                if let Some(y) = usize::try_from(index[0]).ok().and_then(|i| y.get_mut(i)) {
                    *y = T::from_f64(1.0);
                }
            });
            Ok(Tensor::from_taken(y, shape).into())
        })
    }

    fn gradient(&self, _: &Saved, _: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        Ok(vec![None])
    }
}

impl Listed for OneHot {
    fn samples() -> Vec<Sample> {
        let op = OneHot { depth: 4, dtype: DType::F64 };
        vec![Sample::new(op, [SampleInput::Index { shape: vec![2, 3], below: 5 }])]
    }
}

impl Tensor {
    /// A row of `depth` numbers for each index: 1 at the index, else 0. An index outside `0..depth` gives all zeros.
    ///
    /// ```
    /// use couplet::{DType, Tensor};
    /// let y = Tensor::from([2i64, 0]).one_hot(3, DType::F32)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// `self` is not of an integer dtype.
    pub fn one_hot(&self, depth: usize, dtype: DType) -> Result<Tensor> {
        apply(OneHot { depth, dtype }, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_out_of_range_give_zeros() -> Result<()> {
        let y = Tensor::from([[1u8, 9]]).one_hot(2, DType::I32)?;
        assert_eq!((y.shape().dims(), y.to_vec::<i32>()?), (&[1, 2, 2][..], vec![0, 1, 0, 0]));
        assert_eq!(Tensor::from([-1i64]).one_hot(2, DType::Bool)?.to_vec::<bool>()?, [false, false]);
        assert_eq!(Tensor::from([0i64]).one_hot(0, DType::F32)?.shape(), &[1, 0]);
        assert!(Tensor::from([1.0f32]).one_hot(2, DType::F32).is_err());
        Ok(())
    }
}
