//! Softmax and its logarithm along an axis.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::softmax;
use crate::tensor::{Tensor, resolve_axis, take};

use super::apply;
use super::op::{Binary, Mask, Saved, Saves, Unary};
use super::real::{check_dtype, check_shape, for_real, real_dtype};
use super::registry::{Listed, Sample, SampleInput};

/// `x` with `axis` and the last axis exchanged, as a view; not recorded.
pub(crate) fn axis_last(op: &'static str, x: &Tensor, axis: usize) -> Result<Tensor> {
    if axis >= x.rank() {
        return Err(Error::Axis { op, axis: axis as isize, rank: x.rank() });
    }
    let (mut shape, mut strides) = (x.shape().clone(), x.strides().clone());
    shape.dims_mut().swap(axis, x.rank() - 1);
    strides.steps_mut().swap(axis, x.rank() - 1);
    Ok(x.view_as(x.offset(), shape, strides))
}

/// The rows of `x` along `axis` one after the other, in the dtype to compute in.
fn rows(op: &'static str, x: &Tensor, axis: usize, dtype: DType) -> Result<Tensor> {
    Ok(axis_last(op, x, axis)?.converted(dtype)?.to_contiguous())
}

/// `y` computed from the rows of `x` along `axis`.
macro_rules! map_rows {
    ($op:expr, $x:expr, $axis:expr, $kernel:path) => {{
        let real = real_dtype($op, "x", $x)?;
        let x = rows($op, $x, $axis, real)?;
        let dim = x.shape()[x.rank() - 1];
        let y = for_real!(real, T => {
            let mut y = take::<T>(x.size());
            $kernel(x.as_slice::<T>()?.unwrap_or(&[]), dim, &mut y);
            Tensor::from_taken(y, x.shape().clone())
        });
        axis_last($op, &y, $axis)?.converted($x.dtype())
    }};
}

/// `dx` computed from the rows of `y` and `dy` along `axis`.
macro_rules! zip_rows {
    ($op:expr, $y:expr, $dy:expr, $axis:expr, $kernel:path) => {{
        let real = real_dtype($op, "y", $y)?;
        check_dtype($op, "dy", $dy, ("y", $y))?;
        check_shape($op, "dy", $dy, ("y", $y))?;
        let (y, dy) = (rows($op, $y, $axis, real)?, rows($op, $dy, $axis, real)?);
        let dim = y.shape()[y.rank() - 1];
        let dx = for_real!(real, T => {
            let mut dx = take::<T>(y.size());
            let (y_rows, dy_rows) = (y.as_slice::<T>()?.unwrap_or(&[]), dy.as_slice::<T>()?.unwrap_or(&[]));
            $kernel(y_rows, dy_rows, dim, &mut dx);
            Tensor::from_taken(dx, y.shape().clone())
        });
        axis_last($op, &dx, $axis)?.converted($y.dtype())
    }};
}

/// `y = exp(x) / sum(exp(x))` along `axis`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Softmax {
    axis: usize,
}

impl Unary for Softmax {
    const NAME: &'static str = "softmax";
    const SAVES: Saves = Saves::OUTPUT;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        map_rows!("softmax", &x, self.axis, softmax::softmax)
    }

    /// `dx = y (dy - sum(dy y))`.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        softmax_gradient(self.axis, saved.output()?, dy)
    }
}

impl Listed for Softmax {
    fn samples() -> Vec<Sample> {
        let sample = |axis| Sample::new(Softmax { axis }, [SampleInput::float(&[2, 3, 4])]);
        vec![sample(2), sample(0)]
    }
}

/// `dx = y (dy - sum(dy y))` along `axis`: what reaches the input of a softmax with output `y`.
pub(crate) fn softmax_gradient(axis: usize, y: &Tensor, dy: &Tensor) -> Result<Tensor> {
    apply(SoftmaxGradient { axis }, [y, dy])
}

/// `dx = y (dy - sum(dy y))` along `axis`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SoftmaxGradient {
    axis: usize,
}

impl Binary for SoftmaxGradient {
    const NAME: &'static str = "softmax_gradient";

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, y: Tensor, dy: Tensor) -> Result<Tensor> {
        zip_rows!("softmax_gradient", &y, &dy, self.axis, softmax::softmax_gradient)
    }

    /// With `g` the gradient of `dx`: that of `dy` is `y (g - sum(g y))`, and that of `y` is
    /// `g (dy - sum(dy y)) - dy sum(g y)`.
    fn gradient(&self, saved: &Saved, g: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        let (y, dy) = (saved.input(0)?, saved.input(1)?);
        let sum = |x: Tensor| x.sum_axes(self.axis as isize, true);
        let of_y = match needs.has(0) {
            true => Some(((g * (dy - sum((dy * y)?)?))? - (dy * sum((g * y)?)?))?),
            false => None,
        };
        let of_dy = if needs.has(1) { Some(softmax_gradient(self.axis, y, g)?) } else { None };
        Ok([of_y, of_dy])
    }
}

impl Listed for SoftmaxGradient {
    fn samples() -> Vec<Sample> {
        let inputs = || [SampleInput::float(&[2, 3, 4]), SampleInput::float(&[2, 3, 4])];
        vec![
            Sample::new(SoftmaxGradient { axis: 2 }, inputs()),
            Sample::new(SoftmaxGradient { axis: 1 }, inputs()),
        ]
    }
}

/// `y = x - ln(sum(exp(x)))` along `axis`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LogSoftmax {
    axis: usize,
}

impl Unary for LogSoftmax {
    const NAME: &'static str = "log_softmax";
    const SAVES: Saves = Saves::OUTPUT;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        map_rows!("log_softmax", &x, self.axis, softmax::log_softmax)
    }

    /// `dx = dy - exp(y) sum(dy)`.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        apply(LogSoftmaxGradient { axis: self.axis }, [saved.output()?, dy])
    }
}

impl Listed for LogSoftmax {
    fn samples() -> Vec<Sample> {
        let sample = |axis| Sample::new(LogSoftmax { axis }, [SampleInput::float(&[2, 3, 4])]);
        vec![sample(2), sample(0)]
    }
}

/// `dx = dy - exp(y) sum(dy)` along `axis`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LogSoftmaxGradient {
    axis: usize,
}

impl Binary for LogSoftmaxGradient {
    const NAME: &'static str = "log_softmax_gradient";

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, y: Tensor, dy: Tensor) -> Result<Tensor> {
        zip_rows!("log_softmax_gradient", &y, &dy, self.axis, softmax::log_softmax_gradient)
    }

    /// With `g` the gradient of `dx`: that of `dy` is `g - sum(g exp(y))`, and that of `y` is
    /// `-g exp(y) sum(dy)`.
    fn gradient(&self, saved: &Saved, g: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        let (y, dy) = (saved.input(0)?, saved.input(1)?);
        let weighted = (g * y.exp()?)?;
        let of_y = match needs.has(0) {
            true => Some((-(&weighted * dy.sum_axes(self.axis as isize, true)?)?)?),
            false => None,
        };
        let of_dy = match needs.has(1) {
            true => Some((g - weighted.sum_axes(self.axis as isize, true)?)?),
            false => None,
        };
        Ok([of_y, of_dy])
    }
}

impl Listed for LogSoftmaxGradient {
    fn samples() -> Vec<Sample> {
        let inputs = || [SampleInput::float(&[2, 3, 4]), SampleInput::float(&[2, 3, 4])];
        vec![
            Sample::new(LogSoftmaxGradient { axis: 2 }, inputs()),
            Sample::new(LogSoftmaxGradient { axis: 1 }, inputs()),
        ]
    }
}

impl Tensor {
    /// Softmax along `axis`: `y_i = exp(x_i) / sum_j exp(x_j)`; negative axes count from the end.
    ///
    /// The largest element is subtracted first, so nothing overflows. Elements at minus infinity get exactly 0; an axis
    /// of nothing else is NaN.
    ///
    /// # Errors
    /// The axis is out of range, or the dtype is not a float.
    pub fn softmax(&self, axis: isize) -> Result<Tensor> {
        apply(Softmax { axis: resolve_axis("softmax", axis, self.rank())? }, [self])
    }

    /// Logarithm of the softmax along `axis`: `y_i = x_i - ln(sum_j exp(x_j))`; negative axes count from the end.
    ///
    /// Exact where the softmax itself would round to 0 or 1.
    ///
    /// # Errors
    /// The axis is out of range, or the dtype is not a float.
    pub fn log_softmax(&self, axis: isize) -> Result<Tensor> {
        apply(LogSoftmax { axis: resolve_axis("log_softmax", axis, self.rank())? }, [self])
    }
}

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    #[test]
    fn far_and_masked_inputs_stay_finite() {
        let x = Tensor::from([[1e4f32, -1e4, 0.0], [f32::NEG_INFINITY, 2.0, 2.0]]);
        assert_eq!(x.softmax(-1).unwrap().to_vec::<f32>().unwrap(), [1.0, 0.0, 0.0, 0.0, 0.5, 0.5]);
        let y = x.log_softmax(-1).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(y[..4], [0.0, -2e4, -1e4, f32::NEG_INFINITY]);
        assert!((y[4] + 2f32.ln()).abs() < 1e-6);
    }

    #[test]
    fn any_axis_of_any_layout_agrees_with_the_last_of_a_contiguous_one() {
        let x = Tensor::arange(0.0, 24.0, 1.0, DType::F64).unwrap();
        let x = (x * 0.1).unwrap().reshape([2, 3, 4]).unwrap();
        let moved = x.transpose(&[2, 0, 1]).unwrap();
        for (y, z) in [
            (x.softmax(1).unwrap(), moved.softmax(2).unwrap()),
            (x.log_softmax(1).unwrap(), moved.log_softmax(2).unwrap()),
        ] {
            assert_eq!(z.transpose(&[1, 2, 0]).unwrap().to_vec::<f64>().unwrap(), y.to_vec::<f64>().unwrap());
        }
    }

    #[test]
    fn halves_are_rounded_once() {
        let x = Tensor::from([[0.1f64, 0.2, 0.7]]).cast(DType::F16).unwrap();
        let want = x.cast(DType::F32).unwrap().softmax(1).unwrap().cast(DType::F16).unwrap();
        assert_eq!(x.softmax(1).unwrap().to_vec::<half::f16>().unwrap(), want.to_vec::<half::f16>().unwrap());
    }

    #[test]
    fn empty_rows_and_wrong_inputs() {
        assert_eq!(Tensor::zeros([3, 0], DType::F32).unwrap().softmax(1).unwrap().shape(), &[3, 0]);
        assert_eq!(Tensor::zeros([0, 3], DType::F32).unwrap().log_softmax(0).unwrap().shape(), &[0, 3]);
        assert!(Tensor::from([1, 2]).softmax(0).is_err());
        assert!(Tensor::from(1.0f32).softmax(0).is_err());
        assert!(Tensor::from([1.0f32]).log_softmax(1).is_err());
    }
}
