//! Running sums and products.

use serde::{Deserialize, Serialize};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::lanes;
use crate::kernels::math::Math;
use crate::kernels::scan::{self, Running};
use crate::tensor::{Tensor, resolve_axis, take};

use super::along::{check_axis, moved_back, moved_last};
use super::apply;
use super::arithmetic::for_number;
use super::op::{Binary, Mask, NarrowBinary, NarrowUnary, Saved, Saves, Unary};
use super::pad::PadMode;
use super::registry::{Listed, Sample, SampleInput};
use super::slice::Slice;

/// Along which axis, whether without the element itself, and whether from the end.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Course {
    axis: usize,
    exclusive: bool,
    reverse: bool,
}

impl Course {
    fn samples<O: Unary>(op: impl Fn(Course) -> O) -> Vec<Sample> {
        let sample = |axis, exclusive, reverse| {
            let op = op(Course { axis, exclusive, reverse });
            Sample::new::<NarrowUnary, O>(op, [SampleInput::float(&[2, 3, 2])])
        };
        vec![sample(1, false, false), sample(0, true, false), sample(2, false, true), sample(1, true, true)]
    }

    fn run<T: Running + Element>(
        self,
        x: &Tensor,
        start: T::Total,
        f: impl Fn(T, T::Total) -> T::Total + Sync,
    ) -> Result<Tensor> {
        let x = moved_last(x, self.axis).to_contiguous();
        let mut y = take::<T>(x.size());
        let dim = x.shape().last().copied().unwrap_or(1);
        lanes::map(x.as_slice::<T>()?.unwrap_or(&[]), dim, &mut y, dim, |x, y| {
            scan::accumulate(x, y, start, self.exclusive, self.reverse, &f);
        });
        Ok(moved_back(&Tensor::from_taken(y, x.shape().clone()), self.axis))
    }
}

/// `y[i] = x[0] + .. + x[i]` along an axis.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CumSum(Course);

impl Unary for CumSum {
    const NAME: &'static str = "cumsum";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        check_axis("cumsum", &x, self.0.axis)?;
        for_number!("cumsum", x.dtype(), [x], T => self.0.run::<T>(&x, T::ZERO, T::add_to))
    }

    /// `dx` is the running sum of `dy` in the other direction.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        apply(CumSum(Course { reverse: !self.0.reverse, ..self.0 }), [dy])
    }
}

impl Listed for CumSum {
    fn samples() -> Vec<Sample> {
        Course::samples(CumSum)
    }
}

/// `y[i] = x[0] .. x[i]`, the product, along an axis.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CumProd(Course);

impl Unary for CumProd {
    const NAME: &'static str = "cumprod";
    const SAVES: Saves = Saves::INPUTS;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        check_axis("cumprod", &x, self.0.axis)?;
        for_number!("cumprod", x.dtype(), [x], T => self.0.run::<T>(&x, T::ONE, T::multiply_to))
    }

    /// With `p[i]` the product of all before `x[i]`, `dx[i] = p[i] s[i]`, where `s[i] = dy[i] + x[i + 1] s[i + 1]`
    /// sums over all products that `x[i]` is in; zeros in `x` do no harm. Without the element itself, `dy[i + 1]`
    /// stands for `dy[i]`.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        let Course { axis, exclusive, reverse } = self.0;
        let turned = |t: &Tensor| if reverse { t.reverse(axis as isize) } else { Ok(t.clone()) };
        let (x, dy) = (turned(saved.input(0)?)?, turned(dy)?);
        if x.size() == 0 {
            return Ok(x);
        }
        let before = apply(CumProd(Course { axis, exclusive: true, reverse: false }), [&x])?;
        let dy = if exclusive { shifted(&dy, axis, 1)? } else { dy };
        let after = sums_backwards(&shifted(&x, axis, 1)?, &dy, axis)?;
        turned(&(before * after)?)
    }
}

impl Listed for CumProd {
    fn samples() -> Vec<Sample> {
        Course::samples(CumProd)
    }
}

/// `y[i] = x[i + by]` along `axis`, with 0 beyond the end.
fn shifted(x: &Tensor, axis: usize, by: isize) -> Result<Tensor> {
    let mut slices = vec![Slice::step(1); axis + 1];
    let mut paddings = vec![(0, 0); x.rank()];
    if by > 0 {
        slices[axis] = Slice::from(by..);
        paddings[axis].1 = by.unsigned_abs();
    } else {
        slices[axis] = Slice::from(..by);
        paddings[axis].0 = by.unsigned_abs();
    }
    x.slice(&slices)?.pad(&paddings, PadMode::Constant(0.0))
}

/// `y[i] = a[i] y[i + 1] + b[i]` along `axis`.
fn sums_backwards(a: &Tensor, b: &Tensor, axis: usize) -> Result<Tensor> {
    let turned = |t: &Tensor| t.reverse(axis as isize);
    turned(&apply(LinearScan { axis }, [&turned(a)?, &turned(b)?])?)
}

/// `y[i] = a[i] y[i - 1] + b[i]` along an axis, from `y[-1] = 0` on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LinearScan {
    axis: usize,
}

impl Binary for LinearScan {
    const NAME: &'static str = "linear_scan";

    fn saves(&self, tracked: Mask) -> Saves {
        if tracked.has(0) { Saves::INPUTS_AND_OUTPUT } else { Saves::inputs(Mask::only(0)) }
    }

    fn forward(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        check_axis("linear_scan", &a, self.axis)?;
        if a.shape() != b.shape() || a.dtype() != b.dtype() {
            let expected = format!("{} as the first input has", a.shape());
            return Err(Error::shape("linear_scan", "the second input", b.shape(), expected));
        }
        match a.dtype() {
            DType::F32 => self.run::<f32>(&a, &b),
            DType::F64 => self.run::<f64>(&a, &b),
            dtype @ (DType::F16 | DType::BF16) => {
                self.run::<f32>(&a.converted(DType::F32)?, &b.converted(DType::F32)?)?.converted(dtype)
            }
            other => {
                Err(Error::dtype("linear_scan", "the input", other, "a float dtype; convert it with cast"))
            }
        }
    }

    /// With `t[i] = dy[i] + a[i + 1] t[i + 1]`, `da[i] = t[i] y[i - 1]` and `db = t`.
    fn gradient(&self, saved: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        if dy.size() == 0 {
            return Ok([needs.has(0).then(|| dy.clone()), needs.has(1).then(|| dy.clone())]);
        }
        let t = sums_backwards(&shifted(saved.input(0)?, self.axis, 1)?, dy, self.axis)?;
        let da = if needs.has(0) { Some((&t * shifted(saved.output()?, self.axis, -1)?)?) } else { None };
        Ok([da, needs.has(1).then_some(t)])
    }
}

impl LinearScan {
    fn run<T: Math + Element>(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let (a, b) = (moved_last(a, self.axis).to_contiguous(), moved_last(b, self.axis).to_contiguous());
        let dim = a.shape().last().copied().unwrap_or(1);
        let mut y = take::<T>(a.size());
        let (left, right) = (a.as_slice::<T>()?.unwrap_or(&[]), b.as_slice::<T>()?.unwrap_or(&[]));
        lanes::zip((left, dim), (right, dim), (&mut y, dim), scan::linear);
        Ok(moved_back(&Tensor::from_taken(y, a.shape().clone()), self.axis))
    }
}

impl Listed for LinearScan {
    fn samples() -> Vec<Sample> {
        let sample = |axis| {
            let inputs = [SampleInput::float(&[3, 4]), SampleInput::float(&[3, 4])];
            Sample::new::<NarrowBinary, _>(LinearScan { axis }, inputs)
        };
        vec![sample(0), sample(1)]
    }
}

impl Tensor {
    /// Running sum along `axis`: `y[i] = x[0] + .. + x[i]`; `exclusive` leaves `x[i]` out, and `reverse` runs from the
    /// last element. Floats are summed in `f64`, integers wrap around.
    ///
    /// ```
    /// use couplet::Tensor;
    /// let x = Tensor::from([1, 2, 3]);
    /// assert_eq!(x.cumsum(0, false, false)?.to_vec::<i32>()?, [1, 3, 6]);
    /// assert_eq!(x.cumsum(0, true, true)?.to_vec::<i32>()?, [5, 3, 0]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// The axis is out of range, or the dtype is bool.
    pub fn cumsum(&self, axis: isize, exclusive: bool, reverse: bool) -> Result<Tensor> {
        let axis = resolve_axis("cumsum", axis, self.rank())?;
        apply(CumSum(Course { axis, exclusive, reverse }), [self])
    }

    /// Running product along `axis`; otherwise as [`cumsum`](Tensor::cumsum). Its gradient is right beside zeros too.
    ///
    /// # Errors
    /// The axis is out of range, or the dtype is bool.
    pub fn cumprod(&self, axis: isize, exclusive: bool, reverse: bool) -> Result<Tensor> {
        let axis = resolve_axis("cumprod", axis, self.rank())?;
        apply(CumProd(Course { axis, exclusive, reverse }), [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autodiff::check_gradients;

    #[test]
    fn products_with_zeros_have_their_gradient() -> Result<()> {
        let x = Tensor::from([[2.0f64, 0.0, 3.0, -1.0], [0.0, 0.0, 1.5, 2.0]]);
        for (exclusive, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
            check_gradients(|x| x[0].cumprod(-1, exclusive, reverse), &[&x], 1e-6)?;
        }
        Ok(())
    }

    #[test]
    fn empty_axes_and_wrong_axes_are_told_apart() -> Result<()> {
        let x = Tensor::zeros([2, 0], DType::F32)?;
        assert_eq!(x.cumsum(1, false, false)?.shape(), &[2, 0]);
        assert_eq!(x.cumprod(0, true, false)?.shape(), &[2, 0]);
        assert!(x.cumsum(2, false, false).is_err() && Tensor::from(1.0f32).cumprod(0, false, false).is_err());
        assert!(Tensor::from([true]).cumsum(0, false, false).is_err());
        Ok(())
    }
}
