//! What all reductions over axes have in common.

use serde::{Deserialize, Serialize};

use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::kernels::layout::View;
use crate::tensor::{Shape, Strides, Tensor, take};

use super::op::{NarrowUnary, Op, Unary, Wide};
use super::registry::{Sample, SampleInput};
use super::sum::{Axes, dropped_shape, kept_shape};

/// Which axes of which shape are reduced, and whether they stay at size 1.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Fields")]
pub(crate) struct Reduction {
    from: Shape,
    reduced: Vec<bool>,
    keep_dims: bool,
}

#[derive(Deserialize)]
struct Fields {
    from: Shape,
    reduced: Vec<bool>,
    keep_dims: bool,
}

impl TryFrom<Fields> for Reduction {
    type Error = String;

    fn try_from(f: Fields) -> std::result::Result<Self, String> {
        if f.from.rank() != f.reduced.len() {
            return Err(format!("{} marks for rank {}", f.reduced.len(), f.from.rank()));
        }
        Ok(Reduction { from: f.from, reduced: f.reduced, keep_dims: f.keep_dims })
    }
}

impl Reduction {
    /// The reduction of `x` over `axes`.
    pub(crate) fn new(op: &'static str, x: &Tensor, axes: impl Axes, keep_dims: bool) -> Result<Self> {
        Ok(Reduction { from: x.shape().clone(), reduced: axes.reduced(op, x.rank())?, keep_dims })
    }

    /// For each axis whether it is reduced.
    pub(crate) fn reduced(&self) -> &[bool] {
        &self.reduced
    }

    /// The reduced axes.
    pub(crate) fn axes(&self) -> Vec<isize> {
        (0..self.reduced.len()).filter(|&a| self.reduced[a]).map(|a| a as isize).collect()
    }

    /// Refuses an input of another shape than the reduction was made for.
    pub(crate) fn check(&self, op: &'static str, x: &Tensor) -> Result<()> {
        if x.shape() != &self.from {
            return Err(Error::shape(op, "x", x.shape(), self.from.to_string()));
        }
        Ok(())
    }

    /// Number of elements that each output is made of.
    pub(crate) fn count(&self) -> usize {
        self.from.iter().zip(&self.reduced).filter(|&(_, &r)| r).map(|(&d, _)| d).product()
    }

    /// The shape with the reduced axes at size 1.
    pub(crate) fn kept(&self) -> Shape {
        kept_shape(&self.from, &self.reduced)
    }

    /// The shape of the output.
    pub(crate) fn to(&self) -> Shape {
        if self.keep_dims { self.kept() } else { dropped_shape(&self.from, &self.reduced) }
    }

    /// `dy` repeated along the reduced axes, to the shape of the input.
    pub(crate) fn spread(&self, dy: &Tensor) -> Result<Tensor> {
        dy.reshape(self.kept())?.broadcast_to(self.from.clone())
    }

    /// The result that `reduce` writes from a view, the marks of the axes and the output in row-major order.
    pub(crate) fn fill<T: Element, U: Element>(
        &self,
        x: &Tensor,
        reduce: impl Fn(View<'_, T>, &[bool], &mut [U]),
    ) -> Result<Tensor> {
        let mut y = take::<U>(self.to().size());
        reduce(x.view::<T>()?, &self.reduced, &mut y);
        Ok(Tensor::from_taken(y, self.to()))
    }

    /// The axes that stay, then those that are reduced.
    pub(crate) fn order(&self) -> Vec<isize> {
        let marked = |mark: bool| (0..self.reduced.len()).filter(move |&a| self.reduced[a] == mark);
        marked(false).chain(marked(true)).map(|a| a as isize).collect()
    }

    /// `x` with the reduced axes moved to the end and its elements in row-major order, so that each output's
    /// elements form one lane.
    pub(crate) fn lanes(&self, x: &Tensor) -> Tensor {
        let order = self.order();
        let shape: Shape = order.iter().map(|&a| x.shape()[a as usize]).collect();
        let strides: Vec<isize> = order.iter().map(|&a| x.strides()[a as usize]).collect();
        x.view_as(x.offset(), shape, Strides::new(&strides)).to_contiguous()
    }

    /// Of shape `[2, 3, 4]`: over all axes, over the middle one, and over two that are kept; of size 1, and of no elements.
    pub(crate) fn kinds() -> [Reduction; 5] {
        let kind = |from: [usize; 3], reduced: [bool; 3], keep_dims| Reduction {
            from: from.into(),
            reduced: reduced.to_vec(),
            keep_dims,
        };
        [
            kind([2, 3, 4], [true; 3], false),
            kind([2, 3, 4], [false, true, false], false),
            kind([2, 3, 4], [true, false, true], true),
            kind([1, 1, 1], [true, false, true], false),
            kind([2, 0, 3], [true, false, false], false),
        ]
    }

    /// A sample of each kind.
    pub(crate) fn samples<O: Unary>(op: impl Fn(Reduction) -> O) -> Vec<Sample> {
        let sample = |r: Reduction| {
            let input = SampleInput::float(&r.from);
            Sample::new::<NarrowUnary, O>(op(r), [input])
        };
        Reduction::kinds().into_iter().map(sample).collect()
    }

    /// A sample of each kind of an op of bools.
    pub(crate) fn bool_samples<O: Op>(op: impl Fn(Reduction) -> O) -> Vec<Sample> {
        let sample = |r: Reduction| {
            let input = SampleInput::Bool { shape: r.from.to_vec() };
            Sample::new::<Wide, O>(op(r), [input])
        };
        Reduction::kinds().into_iter().map(sample).collect()
    }
}
