//! Euclidean norms: dividing by them, clipping to them, half their square.

use crate::error::{Error, Result};
use crate::tensor::Tensor;

use super::sum::Axes;

impl Tensor {
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
}
