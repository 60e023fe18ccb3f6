//! Sorting, the largest elements, and picking along an axis by index.

use serde::{Deserialize, Serialize};

use crate::dtype::for_dtype;
use crate::error::{Error, Result};
use crate::kernels::{lanes, order};
use crate::tensor::{Shape, Tensor, resolve_axis, take};

use super::along::{check_axis, moved_back, moved_last};
use super::apply;
use super::arithmetic::{Number, for_number, for_ordered};
use super::gradient::Gradient;
use super::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use super::registry::{Listed, Sample, SampleInput};
use super::sparse::row_numbers;

/// `y` holds the positions along an axis of the first `count` elements in sorted order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ArgSort {
    axis: usize,
    count: usize,
    descending: bool,
}

impl Op for ArgSort {
    fn name(&self) -> &'static str {
        "argsort"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let x = inputs.get(0)?;
        check_axis("argsort", x, self.axis)?;
        let dim = x.shape()[self.axis];
        if self.count > dim {
            let expected = format!("{} elements or more along axis {}", self.count, self.axis);
            return Err(Error::shape("argsort", "x", x.shape(), expected));
        }
        let x = moved_last(x, self.axis).to_contiguous().ordered()?;
        let mut shape = x.shape().clone();
        shape.dims_mut()[x.rank() - 1] = self.count;
        let mut y = take::<i64>(shape.size());
        for_ordered!(x.dtype(), T => {
            let x = x.as_slice::<T>()?.unwrap_or(&[]);
            lanes::map(x, dim, &mut y, self.count, |x, y| order::argsort(x, y, self.descending));
        });
        Ok(moved_back(&Tensor::from_taken(y, shape), self.axis).into())
    }

    fn gradient(&self, _: &Saved, _: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        Ok(vec![None])
    }
}

impl Listed for ArgSort {
    fn samples() -> Vec<Sample> {
        let sample = |axis, count, descending| {
            Sample::new(ArgSort { axis, count, descending }, [SampleInput::float(&[3, 4])])
        };
        vec![sample(1, 4, false), sample(0, 2, true), sample(1, 1, true), sample(0, 0, false)]
    }
}

/// `y[i, j, k] = x[i, indices[i, j, k], k]`, for the middle axis.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TakeAlong {
    axis: usize,
    dim: usize,
}

/// Refuses indices of another shape than `x` has, but for the axis.
fn check_indices(op: &'static str, axis: usize, x: &Tensor, indices: &Tensor) -> Result<()> {
    let mut dims = x.shape().iter().zip(indices.shape().iter()).enumerate();
    if x.rank() != indices.rank() || !dims.all(|(a, (d, i))| a == axis || d == i) {
        let expected = format!("{} but for axis {axis}", x.shape());
        return Err(Error::shape(op, "indices", indices.shape(), expected));
    }
    Ok(())
}

impl Op for TakeAlong {
    fn name(&self) -> &'static str {
        "take_along_axis"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::inputs(Mask::only(1))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, indices) = (inputs.get(0)?, inputs.get(1)?);
        check_axis("take_along_axis", x, self.axis)?;
        check_indices("take_along_axis", self.axis, x, indices)?;
        let dim = x.shape()[self.axis];
        if dim != self.dim {
            let expected = format!("{} elements along axis {}", self.dim, self.axis);
            return Err(Error::shape("take_along_axis", "x", x.shape(), expected));
        }
        let (x, indices) = (moved_last(x, self.axis).to_contiguous(), moved_last(indices, self.axis));
        let to = indices.shape().last().copied().unwrap_or(0);
        let positions = row_numbers("take_along_axis", &indices, dim)?;
        for_dtype!(x.dtype(), T => {
            let mut y = take::<T>(indices.size());
            let x = x.as_slice::<T>()?.unwrap_or(&[]);
            lanes::zip((x, dim), (&positions, to), (&mut y, to), order::pick);
            Ok(moved_back(&Tensor::from_taken(y, indices.shape().clone()), self.axis).into())
        })
    }

    /// `dx` is 0 plus `dy` at the places it was taken from.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None, None]) };
        let dx = apply(AddAlong { axis: self.axis, dim: self.dim }, [dy, saved.input(1)?])?;
        Ok(vec![Some(Gradient::Dense(dx)), None])
    }
}

impl Listed for TakeAlong {
    fn samples() -> Vec<Sample> {
        let sample = |x: [usize; 2], axis: usize, indices: [usize; 2]| {
            let dim = x[axis];
            let indices = SampleInput::Index { shape: indices.to_vec(), below: dim as i64 };
            Sample::new(TakeAlong { axis, dim }, [SampleInput::float(&x), indices])
        };
        vec![
            sample([3, 4], 1, [3, 6]),
            sample([3, 4], 0, [2, 4]),
            sample([1, 1], 1, [1, 1]),
            sample([0, 4], 1, [0, 2]),
            sample([3, 0], 1, [3, 0]),
        ]
    }
}

/// `y` is 0 plus `x[i, j, k]` at each `[i, indices[i, j, k], k]`, with `dim` elements along the middle axis.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AddAlong {
    axis: usize,
    dim: usize,
}

impl AddAlong {
    fn run<T: Number>(&self, x: &Tensor, indices: &Tensor) -> Result<Tensor> {
        let (x, indices) = (moved_last(x, self.axis).to_contiguous(), moved_last(indices, self.axis));
        let from = indices.shape().last().copied().unwrap_or(0);
        let positions = row_numbers("add_along_axis", &indices, self.dim)?;
        let shape: Shape = x.shape()[..x.rank() - 1].iter().copied().chain([self.dim]).collect();
        let mut y = take::<T>(crate::tensor::checked_size("add_along_axis", &shape, T::DTYPE)?);
        let x = x.as_slice::<T>()?.unwrap_or(&[]);
        lanes::zip((x, from), (&positions, from), (&mut y, self.dim), |x, i, y| {
            order::spread(x, i, y, T::plus);
        });
        Ok(moved_back(&Tensor::from_taken(y, shape), self.axis))
    }
}

impl Op for AddAlong {
    fn name(&self) -> &'static str {
        "add_along_axis"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::inputs(Mask::only(1))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, indices) = (inputs.get(0)?, inputs.get(1)?);
        check_axis("add_along_axis", x, self.axis)?;
        if x.shape() != indices.shape() {
            let expected = format!("{} as x has", x.shape());
            return Err(Error::shape("add_along_axis", "indices", indices.shape(), expected));
        }
        let x = x.clone();
        let y: Result<Tensor> =
            for_number!("add_along_axis", x.dtype(), [x], T => self.run::<T>(&x, indices));
        y.map(Computed::from)
    }

    /// `dx` is `dy` at the places it was added to.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None, None]) };
        let dx = apply(TakeAlong { axis: self.axis, dim: self.dim }, [dy, saved.input(1)?])?;
        Ok(vec![Some(Gradient::Dense(dx)), None])
    }
}

impl Listed for AddAlong {
    fn samples() -> Vec<Sample> {
        let sample = |axis| {
            let indices = SampleInput::Index { shape: vec![3, 4], below: 5 };
            Sample::new(AddAlong { axis, dim: 5 }, [SampleInput::float(&[3, 4]), indices])
        };
        vec![sample(0), sample(1)]
    }
}

impl Tensor {
    /// Positions along `axis` that sort the elements, as `i64`; equal elements keep their order, and NaN counts as
    /// larger than every number.
    ///
    /// # Errors
    /// The axis is out of range.
    pub fn argsort(&self, axis: isize, descending: bool) -> Result<Tensor> {
        let axis = resolve_axis("argsort", axis, self.rank())?;
        apply(ArgSort { axis, count: self.shape()[axis], descending }, [self])
    }

    /// The elements sorted along `axis`; NaN counts as larger than every number.
    ///
    /// # Errors
    /// The axis is out of range.
    pub fn sort(&self, axis: isize, descending: bool) -> Result<Tensor> {
        self.take_along_axis(&self.argsort(axis, descending)?, axis)
    }

    /// The `k` largest elements along the last axis in descending order, and their positions as `i64`; of equal
    /// elements the first. NaN counts as larger than every number.
    ///
    /// # Errors
    /// The tensor is a scalar, or has fewer than `k` elements along the last axis.
    pub fn top_k(&self, k: usize) -> Result<(Tensor, Tensor)> {
        let Some((&dim, axis)) = self.shape().last().zip(self.rank().checked_sub(1)) else {
            return Err(Error::shape("top_k", "x", self.shape(), "rank 1 or more"));
        };
        if k > dim {
            return Err(Error::argument(
                "top_k",
                "k",
                k,
                format!("at most {dim}, the size of the last axis"),
            ));
        }
        let indices = apply(ArgSort { axis, count: k, descending: true }, [self])?;
        Ok((self.take_along_axis(&indices, -1)?, indices))
    }

    /// `y[i, j, k] = x[i, indices[i, j, k], k]` for the middle one of three axes, and likewise for any: the elements
    /// that [`argsort`](Tensor::argsort) or [`top_k`](Tensor::top_k) point to.
    ///
    /// # Errors
    /// `indices` is not of an integer dtype, has another shape than `self` outside of `axis`, or holds an index outside
    /// the axis.
    pub fn take_along_axis(&self, indices: &Tensor, axis: isize) -> Result<Tensor> {
        let axis = resolve_axis("take_along_axis", axis, self.rank())?;
        apply(TakeAlong { axis, dim: self.shape()[axis] }, [self, indices])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_axis_is_sorted_both_ways() -> Result<()> {
        let x = Tensor::from([[3, 1, 2], [0, 5, 4]]);
        assert_eq!(x.sort(-1, false)?.to_vec::<i32>()?, [1, 2, 3, 0, 4, 5]);
        assert_eq!(x.sort(0, true)?.to_vec::<i32>()?, [3, 5, 4, 0, 1, 2]);
        assert_eq!(x.argsort(1, false)?.to_vec::<i64>()?, [1, 2, 0, 0, 2, 1]);
        assert_eq!(Tensor::zeros([2, 0], crate::DType::F32)?.sort(1, false)?.shape(), &[2, 0]);
        Ok(())
    }

    #[test]
    fn the_largest_come_first_and_ties_in_order() -> Result<()> {
        let x = Tensor::from([[1.0f32, 3.0, 3.0, f32::NAN], [-1.0, -1.0, -2.0, -1.0]]);
        let (values, indices) = x.top_k(3)?;
        assert_eq!(indices.to_vec::<i64>()?, [3, 1, 2, 0, 1, 3]);
        assert_eq!(values.to_vec::<f32>()?[3..], [-1.0; 3]);
        assert_eq!(x.top_k(0)?.0.shape(), &[2, 0]);
        assert!(x.top_k(5).is_err() && Tensor::from(1.0f32).top_k(1).is_err());
        Ok(())
    }

    #[test]
    fn indices_that_do_not_fit_are_refused() {
        let x = Tensor::from([[1, 2], [3, 4]]);
        let message = x.take_along_axis(&Tensor::from([[2], [0]]), 1).unwrap_err().to_string();
        assert_eq!(message, "take_along_axis: index 2 is out of range, expected 0 to 1");
        assert!(x.take_along_axis(&Tensor::from([[0]]), 1).is_err());
        assert!(x.take_along_axis(&Tensor::from([[0.0f32], [0.0]]), 1).is_err());
    }
}
