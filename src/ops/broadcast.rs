//! Broadcasting: the common shape, `broadcast_to`, and its adjoint `sum_to`.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::tensor::{Shape, Strides, Tensor};

use super::apply;
use super::op::{Saved, Saves, Unary};
use super::registry::{Listed, Sample, SampleInput};
use super::sum::reduce_sum;

/// The shape that two shapes broadcast to: counted from the last, dims are equal or one of them is 1.
pub(crate) fn broadcast_shape(op: &'static str, a: &Shape, b: &Shape) -> Result<Shape> {
    if a == b {
        return Ok(a.clone());
    }
    let (long, short) = if a.rank() >= b.rank() { (a, b) } else { (b, a) };
    let mut shape = long.clone();
    let lead = long.rank() - short.rank();
    for (d, &s) in shape.dims_mut()[lead..].iter_mut().zip(short.iter()) {
        match (*d, s) {
            (x, y) if x == y => {}
            (1, y) => *d = y,
            (_, 1) => {}
            _ => return Err(Error::Broadcast { op, lhs: a.to_vec(), rhs: b.to_vec() }),
        }
    }
    Ok(shape)
}

impl Tensor {
    /// A view of the shape `shape`, to which `self` must broadcast; repeated axes have stride 0. Not recorded.
    pub(crate) fn expanded(&self, shape: &Shape) -> Result<Tensor> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        let fits = self.rank() <= shape.rank() && {
            let lead = shape.rank() - self.rank();
            self.shape().iter().zip(&shape[lead..]).all(|(&d, &s)| d == s || d == 1)
        };
        if !fits {
            return Err(Error::Broadcast {
                op: "broadcast_to",
                lhs: self.shape().to_vec(),
                rhs: shape.to_vec(),
            });
        }
        let lead = shape.rank() - self.rank();
        let mut strides = Strides::contiguous(shape);
        for (i, stride) in strides.steps_mut().iter_mut().enumerate() {
            *stride = if i < lead || (self.shape()[i - lead] == 1 && shape[i] != 1) {
                0
            } else {
                self.strides()[i - lead]
            };
        }
        Ok(self.view_as(self.offset(), shape.clone(), strides))
    }

    /// The tensor repeated along axes of size 1 (and new leading axes) to `shape`, as a view.
    ///
    /// # Errors
    /// A dim of `self` is neither 1 nor that of `shape`, counted from the last.
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        if self.shape() == &shape {
            return Ok(self.clone());
        }
        crate::tensor::checked_size("broadcast_to", &shape, self.dtype())?;
        apply(BroadcastTo { from: self.shape().clone(), to: shape }, [self])
    }

    /// The sum over the axes along which `shape` broadcasts to the shape of `self`.
    ///
    /// # Errors
    /// `shape` does not broadcast to the shape of `self`.
    pub fn sum_to(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        if self.shape() == &shape {
            return Ok(self.clone());
        }
        apply(SumTo { from: self.shape().clone(), to: shape }, [self])
    }
}

/// `y = x` repeated to the shape `to`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BroadcastTo {
    from: Shape,
    to: Shape,
}

impl Unary for BroadcastTo {
    const NAME: &'static str = "broadcast_to";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        x.expanded(&self.to)
    }

    /// `dx` is the sum of `dy` over the repeated axes.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        dy.sum_to(self.from.clone())
    }
}

impl Listed for BroadcastTo {
    fn samples() -> Vec<Sample> {
        let sample = |from: &[usize], to: &[usize]| {
            Sample::new(BroadcastTo { from: from.into(), to: to.into() }, [SampleInput::float(from)])
        };
        vec![
            sample(&[3, 1], &[2, 3, 4]),
            sample(&[1], &[1, 1]),
            sample(&[3, 1], &[3, 0]),
            sample(&[0, 1], &[2, 0, 4]),
        ]
    }
}

/// `y` is the sum of `x` over the axes along which `to` broadcasts to the shape of `x`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SumTo {
    from: Shape,
    to: Shape,
}

impl Unary for SumTo {
    const NAME: &'static str = "sum_to";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        let (from, to) = (x.shape().clone(), &self.to);
        if to.rank() > from.rank() {
            return Err(Error::Broadcast { op: "sum_to", lhs: from.to_vec(), rhs: to.to_vec() });
        }
        let lead = from.rank() - to.rank();
        let mut summed = vec![true; from.rank()];
        for (axis, (&t, &f)) in to.iter().zip(&from[lead..]).enumerate() {
            if t != f && t != 1 {
                return Err(Error::Broadcast { op: "sum_to", lhs: from.to_vec(), rhs: to.to_vec() });
            }
            summed[axis + lead] = t != f;
        }
        reduce_sum(&x, &summed)?.reshaped(to.clone())
    }

    /// `dx` is `dy` repeated.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        dy.broadcast_to(self.from.clone())
    }
}

impl Listed for SumTo {
    fn samples() -> Vec<Sample> {
        let sample = |from: &[usize], to: &[usize]| {
            Sample::new(SumTo { from: from.into(), to: to.into() }, [SampleInput::float(from)])
        };
        vec![sample(&[2, 3, 4], &[3, 1]), sample(&[1, 1], &[1]), sample(&[0, 3], &[3])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_from_the_last_axis() {
        let common = |a: &[usize], b: &[usize]| broadcast_shape("add", &a.into(), &b.into());
        assert_eq!(common(&[4, 1, 3], &[2, 1]).unwrap(), [4, 2, 3]);
        assert_eq!(common(&[0, 3], &[1, 1]).unwrap(), [0, 3]);
        assert_eq!(common(&[], &[5]).unwrap(), [5]);
        let message = common(&[2, 3], &[2]).unwrap_err().to_string();
        assert!(message.contains("[2, 3]") && message.contains("[2]"), "{message}");
    }

    #[test]
    fn rows_repeated_within_an_outer_axis_change_with_it() {
        // Blocks of rows do not end where the outer axis goes on.
        for (outer, rows, columns) in [(2, 286, 38), (3, 100, 7), (5, 61, 127)] {
            let number = |n: usize| Tensor::arange(0.0, n as f64, 1.0, crate::DType::F64).unwrap();
            let x = number(outer * rows * columns).reshape([outer, rows, columns]).unwrap();
            let row = (number(outer * columns) * 1e6).unwrap().reshape([outer, 1, columns]).unwrap();
            let want = |i: usize| i as f64 + 1e6 * (i / (rows * columns) * columns + i % columns) as f64;
            let sums =
                [(&x + &row).unwrap(), (row.clone() + &x).unwrap(), ((&x + 0.0).unwrap() + &row).unwrap()];
            for sum in sums {
                let list = sum.to_vec::<f64>().unwrap();
                let wrong = list.iter().enumerate().find(|&(i, &y)| y != want(i));
                assert_eq!(wrong, None);
            }
        }
    }

    #[test]
    fn sum_to_undoes_broadcasting() {
        let x = Tensor::from([[1.0f64], [2.0]]).broadcast_to([3, 2, 4]).unwrap();
        assert_eq!(x.sum_to([2, 1]).unwrap().to_vec::<f64>().unwrap(), [12.0, 24.0]);
        assert!(x.sum_to([3, 1]).is_err());
    }
}
