//! Reshape and transpose.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::tensor::{Shape, Strides, Tensor, checked_size, resolve_axis};

use super::apply;
use super::op::{Saved, Saves, Unary};
use super::registry::{Listed, Sample, SampleInput};

/// `y` has the elements of `x` in row-major order under another shape.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Reshape {
    from: Shape,
    to: Shape,
}

impl Unary for Reshape {
    const NAME: &'static str = "reshape";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        x.reshaped(self.to.clone())
    }

    /// `dx` is `dy` in the shape of `x`.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        dy.reshape(self.from.clone())
    }
}

impl Listed for Reshape {
    fn samples() -> Vec<Sample> {
        let sample = |from: &[usize], to: &[usize]| {
            Sample::new(Reshape { from: from.into(), to: to.into() }, [SampleInput::float(from)])
        };
        vec![sample(&[2, 3], &[3, 1, 2]), sample(&[1, 1], &[]), sample(&[2, 0], &[0, 3])]
    }
}

/// `y` has axis `i` where `x` has axis `order[i]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Transpose {
    order: Vec<usize>,
}

impl Unary for Transpose {
    const NAME: &'static str = "transpose";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        if self.order.len() != x.rank() {
            let expected = format!("rank {} as the order says", self.order.len());
            return Err(Error::shape("transpose", "x", x.shape(), expected));
        }
        let shape: Shape = self.order.iter().map(|&a| x.shape()[a]).collect();
        let strides: Vec<isize> = self.order.iter().map(|&a| x.strides()[a]).collect();
        Ok(x.view_as(x.offset(), shape, Strides::new(&strides)))
    }

    /// `dx` is `dy` in the inverse order.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        let mut inverse = vec![0isize; self.order.len()];
        for (to, &from) in self.order.iter().enumerate() {
            inverse[from] = to as isize;
        }
        dy.transpose(&inverse)
    }
}

impl Listed for Transpose {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Transpose { order: vec![2, 0, 1] }, [SampleInput::float(&[2, 3, 4])])]
    }
}

impl Tensor {
    /// The elements under another shape of the same size: a view where they are contiguous, else a copy. Not
    /// recorded.
    pub(crate) fn reshaped(&self, shape: Shape) -> Result<Tensor> {
        if shape.size() != self.size() {
            let expected = format!("{} elements as the new shape {shape} has", shape.size());
            return Err(Error::shape("reshape", "x", self.shape(), expected));
        }
        if self.size() == 0 {
            checked_size("reshape", &shape, self.dtype())?;
        }
        let x = self.to_contiguous();
        let strides = Strides::contiguous(&shape);
        Ok(x.view_as(x.offset(), shape, strides))
    }

    /// The elements in row-major order under another shape of the same size.
    ///
    /// # Errors
    /// The sizes differ.
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        let to = shape.into();
        if self.shape() == &to {
            return Ok(self.clone());
        }
        apply(Reshape { from: self.shape().clone(), to }, [self])
    }

    /// The axes in another order, as a view: axis `i` of the result is axis `order[i]` of `self`.
    ///
    /// # Errors
    /// `order` does not name each axis once; negative axes count from the end.
    pub fn transpose(&self, order: &[isize]) -> Result<Tensor> {
        let mut seen = vec![false; self.rank()];
        let mut positions = Vec::with_capacity(order.len());
        for &axis in order {
            let position = resolve_axis("transpose", axis, self.rank())?;
            seen[position] = true;
            positions.push(position);
        }
        if order.len() != self.rank() || seen.contains(&false) {
            let expected = format!("each of the {} axes once", self.rank());
            return Err(Error::argument("transpose", "order", format!("{order:?}"), expected));
        }
        apply(Transpose { order: positions }, [self])
    }

    /// The last two axes exchanged, as a view.
    ///
    /// # Errors
    /// The rank is below 2.
    pub fn t(&self) -> Result<Tensor> {
        let rank = self.rank();
        if rank < 2 {
            return Err(Error::shape("t", "x", self.shape(), "rank 2 or more"));
        }
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 1, rank - 2);
        apply(Transpose { order }, [self])
    }

    /// A new axis of size 1 at `axis`; negative axes count from the end of the result.
    ///
    /// # Errors
    /// `axis` is out of range for the rank of the result.
    pub fn expand_dims(&self, axis: isize) -> Result<Tensor> {
        let position = resolve_axis("expand_dims", axis, self.rank() + 1)?;
        let mut shape = self.shape().to_vec();
        shape.insert(position, 1);
        self.reshape(shape)
    }

    /// Without the axis `axis`, which must have size 1.
    ///
    /// # Errors
    /// The axis is out of range or has another size.
    pub fn squeeze(&self, axis: isize) -> Result<Tensor> {
        let position = resolve_axis("squeeze", axis, self.rank())?;
        let mut shape = self.shape().to_vec();
        if shape.remove(position) != 1 {
            return Err(Error::shape("squeeze", "x", self.shape(), format!("size 1 at axis {axis}")));
        }
        self.reshape(shape)
    }
}
