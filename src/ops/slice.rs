//! Slices with steps, and their adjoint.

use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

use serde::{Deserialize, Serialize};

use crate::dtype::{Element, for_dtype};
use crate::error::{Error, Result};
use crate::kernels::scatter::scatter;
use crate::tensor::{Shape, Strides, Tensor};

use super::apply;
use super::op::{Saved, Saves, Unary};
use super::registry::{Listed, Sample, SampleInput};

/// Which indices of one axis to keep: `start..stop` by `step`, or a single index whose axis is dropped.
///
/// Negative bounds count from the end and bounds outside the axis are cut to it, as in Python. With a negative step
/// the slice runs backwards from `start` (default: the last index) to just before `stop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slice {
    /// A range of indices.
    Range {
        /// First index; `None` is the end the step starts from.
        start: Option<isize>,
        /// First index left out; `None` is the end the step runs to.
        stop: Option<isize>,
        /// Distance between neighbours, not 0.
        step: isize,
    },
    /// One index; the axis is dropped.
    Index(isize),
}

impl Slice {
    /// The whole axis by `step`.
    pub fn step(step: isize) -> Self {
        Slice::Range { start: None, stop: None, step }
    }

    /// The slice with another step.
    #[must_use]
    pub fn by(self, step: isize) -> Self {
        match self {
            Slice::Range { start, stop, .. } => Slice::Range { start, stop, step },
            index => index,
        }
    }
}

impl From<RangeFull> for Slice {
    fn from(_: RangeFull) -> Self {
        Slice::step(1)
    }
}

impl From<Range<isize>> for Slice {
    fn from(r: Range<isize>) -> Self {
        Slice::Range { start: Some(r.start), stop: Some(r.end), step: 1 }
    }
}

impl From<RangeFrom<isize>> for Slice {
    fn from(r: RangeFrom<isize>) -> Self {
        Slice::Range { start: Some(r.start), stop: None, step: 1 }
    }
}

impl From<RangeTo<isize>> for Slice {
    fn from(r: RangeTo<isize>) -> Self {
        Slice::Range { start: None, stop: Some(r.end), step: 1 }
    }
}

impl From<isize> for Slice {
    fn from(index: isize) -> Self {
        Slice::Index(index)
    }
}

/// `y[i, j, ..] = x[starts[0] + i steps[0], starts[1] + j steps[1], ..]`, of shape `dims`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StridedSlice {
    pub(super) from: Shape,
    starts: Vec<usize>,
    steps: Vec<isize>,
    dims: Shape,
}

impl StridedSlice {
    /// The slice of a tensor of shape `from`, and the shape of the result, which lacks the axes with one index.
    pub(super) fn new(op: &'static str, from: &Shape, slices: &[Slice]) -> Result<(Self, Shape)> {
        if slices.len() > from.rank() {
            let expected = format!("rank {} or more, one axis for each slice", slices.len());
            return Err(Error::shape(op, "x", from, expected));
        }
        let (mut starts, mut steps, mut dims) = (Vec::new(), Vec::new(), Vec::new());
        let mut kept = Vec::new();
        for (axis, &size) in from.iter().enumerate() {
            let slice = slices.get(axis).copied().unwrap_or(Slice::step(1));
            let (start, step, dim) = resolve(op, slice, size)?;
            starts.push(start);
            steps.push(step);
            dims.push(dim);
            if !matches!(slice, Slice::Index(_)) {
                kept.push(dim);
            }
        }
        Ok((StridedSlice { from: from.clone(), starts, steps, dims: dims.into() }, kept.into()))
    }

    /// A slice with steps both ways, one of size 1, and two without elements.
    pub(super) fn cases() -> [Self; 4] {
        let case = |from: [usize; 2], starts: [usize; 2], steps: [isize; 2], dims: [usize; 2]| StridedSlice {
            from: from.into(),
            starts: starts.to_vec(),
            steps: steps.to_vec(),
            dims: dims.into(),
        };
        [
            case([4, 5], [1, 4], [1, -2], [2, 3]),
            case([1, 1], [0, 0], [1, 1], [1, 1]),
            case([4, 5], [4, 0], [1, 1], [0, 5]),
            case([0, 5], [0, 1], [1, 1], [0, 2]),
        ]
    }

    /// The shape of the part, with all axes.
    pub(super) fn dims(&self) -> &Shape {
        &self.dims
    }

    fn view(&self, x: &Tensor) -> Tensor {
        let mut offset = x.offset() as isize;
        let mut strides = Vec::with_capacity(x.rank());
        for axis in 0..x.rank() {
            if self.dims.size() > 0 {
                offset += self.starts[axis] as isize * x.strides()[axis];
            }
            strides.push(x.strides()[axis] * self.steps[axis]);
        }
        x.view_as(offset as usize, self.dims.clone(), Strides::new(&strides))
    }

    pub(super) fn check(&self, op: &'static str, x: &Tensor, shape: &Shape) -> Result<()> {
        if x.shape() != shape {
            return Err(Error::shape(op, "x", x.shape(), format!("{shape}")));
        }
        Ok(())
    }
}

impl Unary for StridedSlice {
    const NAME: &'static str = "strided_slice";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        self.check("strided_slice", &x, &self.from)?;
        Ok(self.view(&x))
    }

    /// `dx` is `dy` at the positions of the slice, 0 elsewhere.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        apply(Unslice(self.clone()), [dy])
    }
}

impl Listed for StridedSlice {
    fn samples() -> Vec<Sample> {
        StridedSlice::cases().map(|s| Sample::new(s.clone(), [SampleInput::float(&s.from)])).into()
    }
}

/// The adjoint of a slice: zeros of the shape it was taken from, with `x` at its positions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Unslice(StridedSlice);

impl Unary for Unslice {
    const NAME: &'static str = "unslice";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        self.0.check("unslice", &x, &self.0.dims)?;
        let y = Tensor::zeros(self.0.from.clone(), x.dtype())?;
        for_dtype!(x.dtype(), T => write_into::<T>(y, &self.0, &x))
    }

    /// `dx` is the slice of `dy`.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        apply(self.0.clone(), [dy])
    }
}

impl Listed for Unslice {
    fn samples() -> Vec<Sample> {
        StridedSlice::cases().map(|s| Sample::new(Unslice(s.clone()), [SampleInput::float(&s.dims)])).into()
    }
}

/// `y` with `x` written over the positions of a slice; in place if nobody else holds it.
pub(super) fn write_into<T: Element>(mut y: Tensor, slice: &StridedSlice, x: &Tensor) -> Result<Tensor> {
    let mut strides = Strides::contiguous(y.shape());
    let mut offset = 0;
    for ((stride, &start), &step) in strides.steps_mut().iter_mut().zip(&slice.starts).zip(&slice.steps) {
        offset += start * stride.unsigned_abs();
        *stride *= step;
    }
    let source = x.to_contiguous();
    scatter(source.as_slice::<T>()?.unwrap_or(&[]), y.make_mut::<T>()?, offset, x.shape(), &strides);
    Ok(y)
}

impl Tensor {
    /// A part of the tensor, as a view: one [`Slice`] for each leading axis; axes without one are kept whole.
    ///
    /// ```
    /// use couplet::{Slice, Tensor};
    /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.slice(&[Slice::from(..), Slice::from(1..)])?.to_vec::<i32>()?, [2, 3, 5, 6]);
    /// assert_eq!(x.slice(&[Slice::Index(-1), Slice::step(-1)])?.to_vec::<i32>()?, [6, 5, 4]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// More slices than axes, a step of 0, or an index out of range.
    pub fn slice(&self, slices: &[Slice]) -> Result<Tensor> {
        let (op, kept) = StridedSlice::new("slice", self.shape(), slices)?;
        apply(op, [self])?.reshape(kept)
    }

    /// The part from `start` on of `length` indices along `axis`, as a view.
    ///
    /// # Errors
    /// The axis is out of range, or the part reaches beyond it.
    pub fn narrow(&self, axis: isize, start: usize, length: usize) -> Result<Tensor> {
        let position = crate::tensor::resolve_axis("narrow", axis, self.rank())?;
        let size = self.shape()[position];
        if start.checked_add(length).is_none_or(|end| end > size) {
            let expected = format!("a part within the {size} indices of axis {axis}");
            return Err(Error::argument(
                "narrow",
                "start",
                format!("{start} with length {length}"),
                expected,
            ));
        }
        let mut slices = vec![Slice::step(1); position + 1];
        slices[position] = Slice::from(start as isize..(start + length) as isize);
        self.slice(&slices)
    }

    /// Axis 0 at one index; negative indices count from the end.
    ///
    /// # Errors
    /// The index is out of range, or the tensor is a scalar.
    pub fn index(&self, index: isize) -> Result<Tensor> {
        self.slice(&[Slice::Index(index)])
    }
}

/// First index, step and count of a slice of an axis of `size`.
fn resolve(op: &'static str, slice: Slice, size: usize) -> Result<(usize, isize, usize)> {
    let n = size as isize;
    match slice {
        Slice::Index(index) => {
            let position = if index < 0 { index + n } else { index };
            if position < 0 || position >= n {
                return Err(Error::Index { op, what: "index".into(), index: index as i64, size });
            }
            Ok((position as usize, 1, 1))
        }
        Slice::Range { step: 0, .. } => Err(Error::argument(op, "step", 0, "any number but 0")),
        Slice::Range { start, stop, step } => {
            let wrap = |i: isize| if i < 0 { i.saturating_add(n) } else { i };
            let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
            let start = start.map_or(if step > 0 { 0 } else { n - 1 }, |i| wrap(i).clamp(low, high));
            let stop = stop.map_or(if step > 0 { n } else { -1 }, |i| wrap(i).clamp(low, high));
            let span = if step > 0 { stop - start } else { start - stop };
            let count = if span > 0 { (span as usize).div_ceil(step.unsigned_abs()) } else { 0 };
            // A single index has no neighbour; a step beyond the axis must not take part in any address.
            Ok((start.max(0) as usize, if count > 1 { step } else { 1 }, count))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_cut_and_counted_as_in_python() {
        let x = Tensor::arange(0.0, 6.0, 1.0, crate::DType::I64).unwrap();
        let part = |s: Slice| x.slice(&[s]).unwrap().to_vec::<i64>().unwrap();
        assert_eq!(part(Slice::from(-2..)), [4, 5]);
        assert_eq!(part(Slice::from(4..100)), [4, 5]);
        assert_eq!(part(Slice::from(3..3)), Vec::<i64>::new());
        assert_eq!(part(Slice::step(-2)), [5, 3, 1]);
        assert_eq!(part(Slice::Range { start: Some(4), stop: Some(0), step: -3 }), [4, 1]);
        assert_eq!(part(Slice::from(..4).by(3)), [0, 3]);
        assert_eq!(part(Slice::step(isize::MAX)), [0]);
        assert_eq!(part(Slice::from(2..).by(isize::MIN)), [2]);
    }

    #[test]
    fn an_index_or_step_that_does_not_exist_is_an_error() {
        let x = Tensor::from([1, 2]);
        assert!(x.index(2).is_err() && x.index(-3).is_err());
        assert!(x.slice(&[Slice::step(0)]).is_err());
        assert!(x.slice(&[Slice::step(1), Slice::step(1)]).is_err());
        assert!(x.narrow(0, 1, 2).is_err() && x.narrow(0, usize::MAX, 2).is_err());
    }

    #[test]
    fn an_empty_slice_of_an_empty_axis_is_empty() {
        let x = Tensor::zeros([0, 3], crate::DType::F32).unwrap();
        assert_eq!(x.slice(&[Slice::step(-1)]).unwrap().shape(), &[0, 3]);
    }
}
