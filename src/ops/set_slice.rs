//! Assignment to a slice, as a new tensor.

use serde::{Deserialize, Serialize};

use crate::dtype::for_dtype;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor};

use super::apply;
use super::gradient::Gradient;
use super::op::{Computed, Input, Inputs, Mask, Op, Saved};
use super::operand::Operand;
use super::real::check_dtype;
use super::registry::{Listed, Sample, SampleInput};
use super::slice::{Slice, StridedSlice, write_into};

const NAME: &str = "set_slice";

/// `y = x`, but `value`, which broadcasts to the part, at the positions of a slice.
///
/// Inputs `x` and `value`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SetSlice(StridedSlice);

impl Op for SetSlice {
    fn name(&self) -> &'static str {
        NAME
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let x = inputs.take(0)?;
        let value = inputs.get(1)?;
        self.0.check(NAME, &x, &self.0.from)?;
        check_dtype(NAME, "value", value, ("x", &x))?;
        let value = value.expanded(self.0.dims()).map_err(|_| {
            let expected = format!("a shape that broadcasts to {}, that of the slice", self.0.dims());
            Error::shape(NAME, "value", value.shape(), expected)
        })?;
        for_dtype!(x.dtype(), T => write_into::<T>(x, &self.0, &value).map(Computed::from))
    }

    /// `dx` is `dy` with 0 at the positions of the slice, `dvalue` the slice of `dy`.
    fn gradient(&self, _: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None, None]) };
        let dx = match needs.has(0) {
            true => Some(apply(self.clone(), [dy, &Tensor::scalar(0.0, dy.dtype())])?),
            false => None,
        };
        let dvalue = if needs.has(1) { Some(apply(self.0.clone(), [dy])?) } else { None };
        Ok(vec![dx.map(Gradient::Dense), dvalue.map(Gradient::Dense)])
    }
}

impl Listed for SetSlice {
    fn samples() -> Vec<Sample> {
        let sample = |slice: StridedSlice, value: &[usize]| {
            let inputs = [SampleInput::float(&slice.from), SampleInput::float(value)];
            Sample::new(SetSlice(slice), inputs)
        };
        let whole = StridedSlice::cases().map(|slice| {
            let value = slice.dims().clone();
            sample(slice, &value)
        });
        let spread = StridedSlice::cases().map(|slice| sample(slice, &[]));
        let [steps, ..] = StridedSlice::cases();
        whole.into_iter().chain(spread).chain([sample(steps, &[2, 1])]).collect()
    }
}

impl Tensor {
    /// A tensor like `self` with `value` in the place of the part that [`slice`](Tensor::slice) of the same `slices`
    /// gives; `value` is a number or a tensor that broadcasts to the shape of that part. `self` does not change.
    ///
    /// The gradient of `self` is 0 where it was overwritten; that of `value` is the part of the rest.
    ///
    /// ```
    /// use couplet::{Slice, Tensor};
    /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
    /// let y = x.with_slice(&[Slice::from(..), Slice::from(1..)], &Tensor::from([[7], [8]]))?;
    /// assert_eq!(y.to_vec::<i32>()?, [1, 7, 7, 4, 8, 8]);
    /// let z = x.with_slice(&[Slice::Index(-1)], 0)?;
    /// assert_eq!(z.to_vec::<i32>()?, [1, 2, 3, 0, 0, 0]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`slice`](Tensor::slice), the dtypes differ, or `value` does not broadcast to the part.
    pub fn with_slice<'a>(&'a self, slices: &[Slice], value: impl Operand<'a>) -> Result<Tensor> {
        let (slice, kept) = StridedSlice::new("with_slice", self.shape(), slices)?;
        let value = value.into_input(self)?;
        let given = value.tensor();
        if given.rank() > kept.rank() {
            let expected = format!("a shape that broadcasts to {kept}, that of the slice");
            return Err(Error::shape("with_slice", "value", given.shape(), expected));
        }
        // The axes with one index have size 1 in the part.
        let mut dims = given.shape().iter().copied();
        let mut left = kept.rank() - given.rank();
        let mut shape = Vec::with_capacity(self.rank());
        for axis in 0..self.rank() {
            let dropped = matches!(slices.get(axis), Some(Slice::Index(_)));
            if dropped || left > 0 {
                left -= usize::from(!dropped);
                shape.push(1);
            } else {
                shape.extend(dims.next());
            }
        }
        let shape = Shape::from(shape);
        let value = if given.shape() == &shape { value } else { Input::Own(given.reshape(shape)?) };
        apply(SetSlice(slice), [Input::Ref(self), value])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, GradientTape};

    #[test]
    fn parts_are_replaced_as_they_would_be_read() -> Result<()> {
        let x = Tensor::arange(0.0, 24.0, 1.0, DType::I32)?.reshape([2, 3, 4])?;
        let slices = [Slice::step(-1), Slice::Index(1), Slice::from(..3).by(2)];
        let value = Tensor::from([[100, 101], [102, 103]]);
        let y = x.with_slice(&slices, &value)?;
        assert_eq!(y.slice(&slices)?.to_vec::<i32>()?, [100, 101, 102, 103]);
        let changed = y.not_equal(&x)?;
        assert_eq!(changed.count_nonzero()?.item::<i64>()?, 4);
        assert_eq!(x.to_vec::<i32>()?, (0..24).collect::<Vec<_>>());
        // A row broadcasts over the leading axis, which an index follows.
        let row = x.with_slice(&slices, Tensor::from([7, 8]))?;
        assert_eq!(row.slice(&slices)?.to_vec::<i32>()?, [7, 8, 7, 8]);
        Ok(())
    }

    #[test]
    fn views_and_empty_parts_are_fine() -> Result<()> {
        let x = Tensor::from([[1, 2], [3, 4]]).t()?;
        assert_eq!(x.with_slice(&[Slice::Index(0)], 9)?.to_vec::<i32>()?, [9, 9, 2, 4]);
        assert_eq!(x.with_slice(&[Slice::from(2..)], 9)?.to_vec::<i32>()?, [1, 3, 2, 4]);
        let wide = Tensor::from([5]).broadcast_to([3])?;
        assert_eq!(wide.with_slice(&[Slice::Index(1)], 6)?.to_vec::<i32>()?, [5, 6, 5]);
        assert_eq!(Tensor::from(1).with_slice(&[], 2)?.item::<i32>()?, 2);
        Ok(())
    }

    #[test]
    fn both_receive_their_share_of_the_gradient() -> Result<()> {
        let (x, value) = (Tensor::from([1.0f64, 2.0, 3.0]), Tensor::from(5.0f64));
        let tape = GradientTape::new();
        tape.watch(&x);
        tape.watch(&value);
        let y = (x.with_slice(&[Slice::from(1..)], &value)? * Tensor::from([10.0f64, 20.0, 30.0]))?;
        let g = tape.gradient(&y.sum()?, &[&x, &value])?;
        assert_eq!(g[0].as_ref().unwrap().dense()?.to_vec::<f64>()?, [10.0, 0.0, 0.0]);
        assert_eq!(g[1].as_ref().unwrap().dense()?.item::<f64>()?, 50.0);
        Ok(())
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let x = Tensor::from([[1, 2], [3, 4]]);
        let message = x.with_slice(&[Slice::Index(0)], Tensor::from([1, 2, 3])).unwrap_err().to_string();
        assert!(message.contains("[1, 3]") && message.contains("[1, 2]"), "{message}");
        assert!(x.with_slice(&[Slice::Index(0)], Tensor::from([[1, 2]])).is_err());
        assert!(x.with_slice(&[Slice::Index(2)], 0).is_err());
        assert!(x.with_slice(&[Slice::Index(0)], Tensor::from([1.0f32, 2.0])).is_err());
        assert!(x.with_slice(&[Slice::Index(0)], 0.5).is_err());
    }
}
