//! Sum over axes.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernels::reduce;
use crate::tensor::{Shape, Tensor, resolve_axis, take};

use super::apply;
use super::arithmetic::for_number;
use super::op::{Saved, Saves, Unary};
use super::reduction::Reduction;
use super::registry::{Listed, Sample};

/// Axes of a reduction: one, several, or all of them (`()`); negative axes count from the end.
pub trait Axes {
    /// For each axis of a tensor of rank `rank` whether it is reduced.
    ///
    /// # Errors
    /// An axis is out of range or named twice.
    fn reduced(&self, op: &'static str, rank: usize) -> Result<Vec<bool>>;
}

impl Axes for () {
    fn reduced(&self, _: &'static str, rank: usize) -> Result<Vec<bool>> {
        Ok(vec![true; rank])
    }
}

impl Axes for isize {
    fn reduced(&self, op: &'static str, rank: usize) -> Result<Vec<bool>> {
        [*self][..].reduced(op, rank)
    }
}

impl Axes for i32 {
    fn reduced(&self, op: &'static str, rank: usize) -> Result<Vec<bool>> {
        [*self as isize][..].reduced(op, rank)
    }
}

impl Axes for [isize] {
    fn reduced(&self, op: &'static str, rank: usize) -> Result<Vec<bool>> {
        let mut reduced = vec![false; rank];
        for &axis in self {
            let position = resolve_axis(op, axis, rank)?;
            if std::mem::replace(&mut reduced[position], true) {
                return Err(Error::argument(op, "axes", format!("{self:?}"), "each axis once"));
            }
        }
        Ok(reduced)
    }
}

impl Axes for &[isize] {
    fn reduced(&self, op: &'static str, rank: usize) -> Result<Vec<bool>> {
        (**self).reduced(op, rank)
    }
}

impl<const N: usize> Axes for [isize; N] {
    fn reduced(&self, op: &'static str, rank: usize) -> Result<Vec<bool>> {
        self[..].reduced(op, rank)
    }
}

impl<const N: usize> Axes for &[isize; N] {
    fn reduced(&self, op: &'static str, rank: usize) -> Result<Vec<bool>> {
        self[..].reduced(op, rank)
    }
}

impl Axes for Vec<isize> {
    fn reduced(&self, op: &'static str, rank: usize) -> Result<Vec<bool>> {
        self[..].reduced(op, rank)
    }
}

/// A shape with the reduced axes at size 1.
pub(crate) fn kept_shape(shape: &Shape, reduced: &[bool]) -> Shape {
    shape.iter().zip(reduced).map(|(&d, &r)| if r { 1 } else { d }).collect()
}

/// A shape without the reduced axes.
pub(crate) fn dropped_shape(shape: &Shape, reduced: &[bool]) -> Shape {
    shape.iter().zip(reduced).filter(|&(_, &r)| !r).map(|(&d, _)| d).collect()
}

/// The sum over the marked axes, kept at size 1; not recorded.
pub(crate) fn reduce_sum(x: &Tensor, reduced: &[bool]) -> Result<Tensor> {
    let shape = kept_shape(x.shape(), reduced);
    for_number!("sum", x.dtype(), [x], T => {
        let mut y = take::<T>(shape.size());
        reduce::sum(x.view::<T>()?, reduced, &mut y);
        Ok(Tensor::from_taken(y, shape))
    })
}

/// `y` is the sum of `x` over the marked axes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Sum(Reduction);

impl Unary for Sum {
    const NAME: &'static str = "sum";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        self.0.check("sum", &x)?;
        reduce_sum(&x, self.0.reduced())?.reshaped(self.0.to())
    }

    /// `dx` is `dy` repeated along the summed axes.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        self.0.spread(dy)
    }
}

impl Listed for Sum {
    fn samples() -> Vec<Sample> {
        Reduction::samples(Sum)
    }
}

impl Tensor {
    /// Sum of all elements, a scalar. The empty sum is 0. Integers wrap around.
    ///
    /// Floats are summed pairwise (`f16` and `bf16` in `f32`), so that the error stays near one rounding however
    /// many there are.
    ///
    /// # Errors
    /// The dtype is bool.
    pub fn sum(&self) -> Result<Tensor> {
        self.sum_axes((), false)
    }

    /// Sum over `axes`, which are dropped, or stay at size 1 with `keep_dims`.
    ///
    /// # Errors
    /// An axis is out of range or named twice, or the dtype is bool.
    pub fn sum_axes(&self, axes: impl Axes, keep_dims: bool) -> Result<Tensor> {
        apply(Sum(Reduction::new("sum", self, axes, keep_dims)?), [self])
    }
}
