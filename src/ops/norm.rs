//! Euclidean norms: dividing by them, clipping to them, half their square.

use serde::{Deserialize, Serialize};

use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::kernels::lanes;
use crate::kernels::math::Math;
use crate::tensor::{Tensor, take};

use super::apply;
use super::function::in_wide_float;
use super::op::{Saved, Saves, Unary};
use super::reduction::Reduction;
use super::registry::{Listed, Sample};
use super::sum::Axes;

/// `y = sqrt(sum(x^2))` over the marked axes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Norm(Reduction);

impl Norm {
    fn run<T: Math + Element>(&self, x: &Tensor) -> Result<Tensor> {
        let (to, rows) = (self.0.to(), self.0.lanes(x));
        let mut y = take::<T>(to.size());
        lanes::fold(rows.as_slice::<T>()?.unwrap_or(&[]), self.0.count(), &mut y, lanes::norm);
        Ok(Tensor::from_taken(y, to))
    }
}

impl Unary for Norm {
    const NAME: &'static str = "norm";
    const SAVES: Saves = Saves::INPUTS_AND_OUTPUT;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        self.0.check("norm", &x)?;
        in_wide_float("norm", x, |x| self.run::<f32>(&x), |x| self.run::<f64>(&x))
    }

    /// `dx = dy x / y`, and 0 where `y` is 0.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        let y = saved.output()?.reshape(self.0.kept())?;
        let y = y.not_equal(0.0)?.where_else(&y, 1.0)?;
        (saved.input(0)? / y)? * dy.reshape(self.0.kept())?
    }
}

impl Listed for Norm {
    fn samples() -> Vec<Sample> {
        Reduction::samples(Norm)
    }
}

impl Tensor {
    /// Euclidean norm of all elements, `sqrt(sum(x^2))`, a scalar; neither the squares nor their sum overflow. Its slope
    /// at 0 is taken as 0.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn norm(&self) -> Result<Tensor> {
        self.norm_axes((), false)
    }

    /// Euclidean norm over `axes`, which are dropped, or stay at size 1 with `keep_dims`.
    ///
    /// # Errors
    /// An axis is out of range or named twice, or the dtype is not a float type.
    pub fn norm_axes(&self, axes: impl Axes, keep_dims: bool) -> Result<Tensor> {
        apply(Norm(Reduction::new("norm", self, axes, keep_dims)?), [self])
    }

    /// Scaled to Euclidean norm 1 over `axes`: `y = x / sqrt(max(sum(x^2), epsilon))`. The usual `epsilon` is 1e-12.
    ///
    /// Where the sum of squares is below `epsilon`, the divisor is a constant and the result shorter than 1.
    ///
    /// # Errors
    /// An axis is out of range or named twice, the dtype is not a float, or `epsilon` is negative or not finite.
    pub fn l2_normalize(&self, axes: impl Axes, epsilon: f64) -> Result<Tensor> {
        if !(epsilon.is_finite() && epsilon >= 0.0) {
            return Err(Error::argument("l2_normalize", "epsilon", epsilon, "a finite number, 0 or more"));
        }
        self * self.square()?.sum_axes(axes, true)?.maximum(epsilon)?.rsqrt()?
    }

    /// Half the sum of squares, `y = sum(x^2) / 2`, a scalar.
    ///
    /// # Errors
    /// The dtype is not a float.
    pub fn l2_loss(&self) -> Result<Tensor> {
        self.square()?.sum()? * 0.5
    }

    /// Scaled down to a Euclidean norm of at most `clip_norm`: `y = x clip_norm / max(|x|, clip_norm)`.
    ///
    /// # Errors
    /// `clip_norm` is not above 0 or not finite, or the dtype is not a float.
    pub fn clip_by_norm(&self, clip_norm: f64) -> Result<Tensor> {
        if !(clip_norm.is_finite() && clip_norm > 0.0) {
            return Err(Error::argument("clip_by_norm", "clip_norm", clip_norm, "a finite number above 0"));
        }
        let squares = self.square()?.sum()?;
        // The slope of the root is infinite at 0, where it has no influence.
        let norm = squares.greater(0.0)?.where_else(&squares, 1.0)?.sqrt()?;
        let norm = squares.greater(0.0)?.where_else(&norm, 0.0)?;
        (self * clip_norm)? / norm.maximum(clip_norm)?
    }

    /// `y = x + b` with `b [channels]` along the last axis.
    ///
    /// # Errors
    /// `b` is not of rank 1, its size is not the last dim of `self`, or the dtypes differ.
    pub fn bias_add(&self, b: &Tensor) -> Result<Tensor> {
        match (self.shape().last(), b.shape().dims()) {
            (Some(channels), [size]) if channels == size => self + b,
            (Some(channels), _) => {
                Err(Error::shape("bias_add", "b", b.shape(), format!("[{channels}], the last dim of x")))
            }
            (None, _) => Err(Error::shape("bias_add", "x", self.shape(), "rank 1 or more")),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{DType, GradientTape, Tensor};

    #[test]
    fn a_clipped_tensor_has_the_norm_and_a_short_one_stays() {
        let x = Tensor::from([3.0f64, 4.0]);
        assert_eq!(x.clip_by_norm(1.0).unwrap().to_vec::<f64>().unwrap(), [0.6, 0.8]);
        assert_eq!(x.clip_by_norm(5.0).unwrap().to_vec::<f64>().unwrap(), [3.0, 4.0]);
        assert_eq!(x.l2_loss().unwrap().item::<f64>().unwrap(), 12.5);
        assert!(x.clip_by_norm(0.0).is_err() && x.clip_by_norm(f64::NAN).is_err());
    }

    #[test]
    fn zero_has_a_gradient() {
        let x = Tensor::zeros([2], DType::F64).unwrap();
        for clip in [true, false] {
            let tape = GradientTape::new();
            tape.watch(&x);
            let y = if clip { x.clip_by_norm(2.0).unwrap() } else { x.l2_normalize((), 1e-4).unwrap() };
            let total = y.sum().unwrap();
            let dx = tape.gradient(&total, &[&x]).unwrap().remove(0).unwrap();
            let want = if clip { 1.0 } else { 100.0 };
            assert!(dx.dense().unwrap().to_vec::<f64>().unwrap().iter().all(|dx| (dx - want).abs() < 1e-9));
        }
    }

    #[test]
    fn a_bias_belongs_to_the_last_axis() {
        let x = Tensor::zeros([2, 3], DType::F32).unwrap();
        let b = Tensor::from([1.0f32, 2.0, 3.0]);
        assert_eq!(x.bias_add(&b).unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
        let message = x.bias_add(&Tensor::from([1.0f32])).unwrap_err().to_string();
        assert_eq!(message, "bias_add: b has shape [1], expected [3], the last dim of x");
    }

    #[test]
    fn norms_of_huge_tiny_and_no_elements_are_right() {
        for scale in [1.0, 1e200, 1e-200] {
            let x = Tensor::from([3.0 * scale, -4.0 * scale]);
            assert!((x.norm().unwrap().item::<f64>().unwrap() / (5.0 * scale) - 1.0).abs() < 1e-15);
        }
        let x = Tensor::from([[f32::INFINITY, 1.0], [f32::NAN, 1.0], [0.0, 0.0]]);
        let y = x.norm_axes(1, false).unwrap().to_vec::<f32>().unwrap();
        assert!(y[0] == f32::INFINITY && y[1].is_nan() && y[2] == 0.0);
        assert_eq!(Tensor::zeros([0], DType::F32).unwrap().norm().unwrap().item::<f32>().unwrap(), 0.0);
    }

    #[test]
    fn the_norm_of_zero_has_slope_zero() {
        let x = Tensor::zeros([2], DType::F64).unwrap();
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = x.norm().unwrap();
        let dx = tape.gradient(&y, &[&x]).unwrap().remove(0).unwrap();
        assert_eq!(dx.dense().unwrap().to_vec::<f64>().unwrap(), [0.0, 0.0]);
    }
}
