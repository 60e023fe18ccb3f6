//! What all reductions over axes have in common.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Strides, Tensor};

use super::op::Unary;
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

    /// `x` with the reduced axes moved to the end and its elements in row-major order, so that each output's
    /// elements form one lane.
    pub(crate) fn lanes(&self, x: &Tensor) -> Tensor {
        let order = || {
            let marked = |mark: bool| (0..x.rank()).filter(move |&a| self.reduced[a] == mark);
            marked(false).chain(marked(true))
        };
        let shape: Shape = order().map(|a| x.shape()[a]).collect();
        let strides: Vec<isize> = order().map(|a| x.strides()[a]).collect();
        x.view_as(x.offset(), shape, Strides::new(&strides)).to_contiguous()
    }

    /// Samples over all axes, one in the middle, and two that are kept.
    pub(crate) fn samples<O: Unary>(op: impl Fn(Reduction) -> O) -> Vec<Sample> {
        let sample = |reduced: [bool; 3], keep_dims| {
            let r = Reduction { from: [2, 3, 4].into(), reduced: reduced.to_vec(), keep_dims };
            Sample::new::<super::op::NarrowUnary, O>(op(r), [SampleInput::float(&[2, 3, 4])])
        };
        vec![
            sample([true, true, true], false),
            sample([false, true, false], false),
            sample([true, false, true], true),
        ]
    }
}

/// The dtype in which a float dtype's statistics are computed.
pub(crate) fn wide_dtype(op: &'static str, dtype: DType) -> Result<DType> {
    match dtype {
        DType::F16 | DType::BF16 => Ok(DType::F32),
        DType::F32 | DType::F64 => Ok(dtype),
        other => Err(Error::dtype(op, "the input", other, "a float dtype; convert it with cast")),
    }
}
