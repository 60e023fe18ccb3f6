//! Padding, and turning axes round.

use serde::{Deserialize, Serialize};

use crate::dtype::for_dtype;
use crate::error::{Error, Result};
use crate::kernels::scatter::scatter;
use crate::tensor::{Shape, Strides, Tensor, check_value, checked_size};

use super::apply;
use super::op::{Saved, Saves, Unary};
use super::registry::{Listed, Sample, SampleInput};
use super::slice::Slice;
use super::sum::Axes;

/// What padding is filled with.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum PadMode {
    /// This value.
    Constant(f64),
    /// The elements mirrored at the border element, which is not repeated: `c b | a b c | b a`.
    Reflect,
    /// The elements mirrored at the border, with the border element repeated: `b a | a b c | c b`.
    Symmetric,
}

/// `y` is `x` with `before` and `after` elements of `value` around it on each axis.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pad {
    before: Vec<usize>,
    after: Vec<usize>,
    value: f64,
}

impl Pad {
    /// The shape after padding.
    fn to(&self, x: &Tensor) -> Result<Shape> {
        if x.rank() != self.before.len() || x.rank() != self.after.len() {
            let expected = format!("rank {}, one for each padding", self.before.len());
            return Err(Error::shape("pad", "x", x.shape(), expected));
        }
        let sides = self.before.iter().zip(&self.after);
        let dims = x.shape().iter().zip(sides).map(|(d, (b, a))| d.checked_add(*b)?.checked_add(*a));
        dims.collect::<Option<Vec<usize>>>().map(Shape::from).ok_or_else(|| {
            Error::argument("pad", "paddings", format!("{:?}, {:?}", self.before, self.after), "smaller ones")
        })
    }
}

impl Unary for Pad {
    const NAME: &'static str = "pad";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        let shape = self.to(&x)?;
        checked_size("pad", &shape, x.dtype())?;
        check_value("pad", self.value, x.dtype())?;
        let strides = Strides::contiguous(&shape);
        let offset: usize = self.before.iter().zip(strides.iter()).map(|(b, &s)| b * s as usize).sum();
        let mut y = Tensor::full(shape, self.value, x.dtype())?;
        for_dtype!(x.dtype(), T => {
            let x = x.to_contiguous();
            let source = x.as_slice::<T>()?.unwrap_or(&[]);
            scatter(source, y.make_mut::<T>()?, offset, x.shape(), &strides);
            Ok(y)
        })
    }

    /// `dx` is the inner part of `dy`.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        let sides = dy.shape().iter().zip(self.before.iter().zip(&self.after));
        let inner = sides.map(|(&d, (&b, &a))| Slice::from(b as isize..(d - a) as isize));
        dy.slice(&inner.collect::<Vec<_>>())
    }
}

impl Listed for Pad {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(
            Pad { before: vec![1, 2], after: vec![1, 0], value: 1.5 },
            [SampleInput::float(&[2, 3])],
        )]
    }
}

impl Tensor {
    /// The tensor with `paddings[axis].0` elements before and `paddings[axis].1` after it on each axis.
    ///
    /// # Errors
    /// There is not one pair for each axis, a fractional constant meets an integer dtype, or a mirrored padding is
    /// longer than the axis has elements to mirror.
    pub fn pad(&self, paddings: &[(usize, usize)], mode: PadMode) -> Result<Tensor> {
        if paddings.len() != self.rank() {
            let got = format!("{} pairs", paddings.len());
            return Err(Error::argument(
                "pad",
                "paddings",
                got,
                format!("one pair for each of the {} axes", self.rank()),
            ));
        }
        let edge = match mode {
            PadMode::Constant(value) => {
                let (before, after) = paddings.iter().copied().unzip();
                return apply(Pad { before, after, value }, [self]);
            }
            PadMode::Reflect => 1,
            PadMode::Symmetric => 0,
        };
        let mut y = self.clone();
        for (axis, &(before, after)) in paddings.iter().enumerate() {
            y = y.mirrored(axis, before, after, edge)?;
        }
        Ok(y)
    }

    /// The axis continued by its own mirror image; `edge` elements at each border are not repeated.
    fn mirrored(&self, axis: usize, before: usize, after: usize, edge: usize) -> Result<Tensor> {
        if before == 0 && after == 0 {
            return Ok(self.clone());
        }
        let size = self.shape()[axis];
        let most = size.saturating_sub(edge);
        if before > most || after > most {
            let got = format!("({before}, {after}) on axis {axis} of size {size}");
            return Err(Error::argument("pad", "paddings", got, format!("at most {most} on each side")));
        }
        let image =
            |start: usize, length: usize| self.narrow(axis as isize, start, length)?.reverse(axis as isize);
        let (left, right) = (image(edge, before)?, image(size - edge - after, after)?);
        Tensor::concat(&[&left, self, &right], axis as isize)
    }

    /// The tensor with the order of its elements along `axes` turned round, as a view.
    ///
    /// # Errors
    /// An axis is out of range or named twice.
    pub fn reverse(&self, axes: impl Axes) -> Result<Tensor> {
        let turned = axes.reduced("reverse", self.rank())?;
        let slices: Vec<Slice> = turned.iter().map(|&t| Slice::step(if t { -1 } else { 1 })).collect();
        self.slice(&slices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_fills_as_documented() -> Result<()> {
        let x = Tensor::from([1, 2, 3]);
        let padded = |p, mode| x.pad(&[p], mode).unwrap().to_vec::<i32>().unwrap();
        assert_eq!(padded((1, 2), PadMode::Constant(9.0)), [9, 1, 2, 3, 9, 9]);
        assert_eq!(padded((2, 1), PadMode::Reflect), [3, 2, 1, 2, 3, 2]);
        assert_eq!(padded((3, 1), PadMode::Symmetric), [3, 2, 1, 1, 2, 3, 3]);
        Ok(())
    }

    #[test]
    fn paddings_that_do_not_fit_are_refused() {
        let x = Tensor::from([1, 2, 3]);
        assert!(x.pad(&[], PadMode::Constant(0.0)).is_err());
        assert!(x.pad(&[(1, 1)], PadMode::Constant(0.5)).is_err());
        assert!(x.pad(&[(usize::MAX, 1)], PadMode::Constant(0.0)).is_err());
        assert!(x.pad(&[(3, 0)], PadMode::Reflect).unwrap_err().to_string().contains("at most 2"));
        assert!(x.pad(&[(0, 4)], PadMode::Symmetric).is_err());
        assert!(Tensor::zeros([0], crate::DType::F32).unwrap().pad(&[(1, 0)], PadMode::Reflect).is_err());
    }

    #[test]
    fn reversing_turns_the_named_axes_alone() -> Result<()> {
        let x = Tensor::from([[1, 2], [3, 4]]);
        assert_eq!(x.reverse(-1)?.to_vec::<i32>()?, [2, 1, 4, 3]);
        assert_eq!(x.reverse(())?.to_vec::<i32>()?, [4, 3, 2, 1]);
        assert!(x.reverse([0, 0]).is_err());
        Ok(())
    }
}
