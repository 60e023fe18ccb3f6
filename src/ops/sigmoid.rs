//! The logistic sigmoid and its integral.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernels::math::Math;
use crate::tensor::Tensor;

use super::apply;
use super::function::{Function, Of};

/// `s (1 - s)` for `s = sigmoid(x)`.
fn sigmoid_slope(x: &Tensor) -> Result<Tensor> {
    let s = x.sigmoid()?;
    &s * (1.0 - &s)
}

/// `y = 1 / (1 + exp(-x))`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Sigmoid;

impl Function for Sigmoid {
    const NAME: &'static str = "sigmoid";
    const SLOPE_NAME: &'static str = "sigmoid_slope";
    const SLOPE_OF: Of = Of::Output;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.sigmoid_()
    }

    /// `y (1 - y)`.
    #[inline(always)]
    fn slope<R: Math>(&self, y: R) -> R {
        y * (R::from_f64(1.0) - y)
    }

    /// `1 - 2 y`.
    fn curvature(&self, y: &Tensor) -> Result<Option<Tensor>> {
        (1.0 - (y * 2.0)?).map(Some)
    }
}

/// `y = ln(1 + exp(x))`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Softplus;

impl Function for Softplus {
    const NAME: &'static str = "softplus";
    const SLOPE_NAME: &'static str = "softplus_slope";
    const SLOPE_OF: Of = Of::Input;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.softplus_()
    }

    /// `sigmoid(x)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        x.sigmoid_()
    }

    /// `s (1 - s)` for `s = sigmoid(x)`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        sigmoid_slope(x).map(Some)
    }
}

/// `y = ln(sigmoid(x)) = -ln(1 + exp(-x))`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct LogSigmoid;

impl Function for LogSigmoid {
    const NAME: &'static str = "log_sigmoid";
    const SLOPE_NAME: &'static str = "log_sigmoid_slope";
    const SLOPE_OF: Of = Of::Input;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        -(-x).softplus_()
    }

    /// `sigmoid(-x)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        (-x).sigmoid_()
    }

    /// `-s (1 - s)` for `s = sigmoid(x)`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        (-sigmoid_slope(x)?).map(Some)
    }
}

impl Tensor {
    /// Logistic sigmoid `1 / (1 + exp(-x))` of each element.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn sigmoid(&self) -> Result<Tensor> {
        apply(Sigmoid, [self])
    }

    /// `ln(1 + exp(x))` of each element, finite wherever `x` is.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn softplus(&self) -> Result<Tensor> {
        apply(Softplus, [self])
    }

    /// `ln(sigmoid(x))` of each element, finite wherever `x` is.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn log_sigmoid(&self) -> Result<Tensor> {
        apply(LogSigmoid, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_inputs_saturate_without_nan() -> Result<()> {
        let x = Tensor::from([-1e4f32, -100.0, 0.0, 100.0, 1e4]);
        let y = x.sigmoid()?.to_vec::<f32>()?;
        assert_eq!([y[0], y[2], y[3], y[4]], [0.0, 0.5, 1.0, 1.0]);
        assert!(y[1] > 0.0 && y[1] < 1e-43);
        assert_eq!(x.softplus()?.to_vec::<f32>()?[3..], [100.0, 1e4]);
        assert_eq!(x.log_sigmoid()?.to_vec::<f32>()?[..2], [-1e4, -100.0]);
        Ok(())
    }

    #[test]
    fn small_probabilities_keep_their_digits() -> Result<()> {
        // ln(1 + exp(-40)) = exp(-40) to the last digit.
        let y = Tensor::from(-40.0f64).softplus()?.item::<f64>()?;
        assert_eq!(y, (-40.0f64).exp());
        Ok(())
    }
}
