//! Exponentials and logarithms.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernels::math::Math;
use crate::tensor::Tensor;

use super::apply;
use super::function::{Function, Of};

/// `y = exp(x)`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Exp;

impl Function for Exp {
    const NAME: &'static str = "exp";
    const SLOPE_NAME: &'static str = "exp_slope";
    const SLOPE_OF: Of = Of::Output;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.exp_()
    }

    /// `y`.
    #[inline(always)]
    fn slope<R: Math>(&self, y: R) -> R {
        y
    }

    /// `1`.
    fn curvature(&self, y: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(Tensor::scalar(1.0, y.dtype())))
    }
}

/// `y = exp(x) - 1`, exact to the last digits where `x` is near 0.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Expm1;

impl Function for Expm1 {
    const NAME: &'static str = "expm1";
    const SLOPE_NAME: &'static str = "expm1_slope";
    const SLOPE_OF: Of = Of::Input;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.expm1_()
    }

    /// `exp(x)`; `y + 1` would lose its digits where `x` is far below 0.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        x.exp_()
    }

    /// `exp(x)`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        x.exp().map(Some)
    }
}

/// `y = ln x`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Log;

impl Function for Log {
    const NAME: &'static str = "log";
    const SLOPE_NAME: &'static str = "log_slope";
    const SLOPE_OF: Of = Of::Input;
    const RANGE: (f64, f64) = (0.5, 2.0);

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.log_()
    }

    /// `1 / x`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        x.recip()
    }

    /// `-1 / x^2`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        ((-1.0 / x)? / x).map(Some)
    }
}

/// `y = ln(1 + x)`, exact to the last digits where `x` is near 0.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Log1p;

impl Function for Log1p {
    const NAME: &'static str = "log1p";
    const SLOPE_NAME: &'static str = "log1p_slope";
    const SLOPE_OF: Of = Of::Input;
    const RANGE: (f64, f64) = (-0.5, 2.0);

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.log1p_()
    }

    /// `1 / (1 + x)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        (R::from_f64(1.0) + x).recip()
    }

    /// `-1 / (1 + x)^2`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let base = (x + 1.0)?;
        ((-1.0 / &base)? / base).map(Some)
    }
}

impl Tensor {
    /// `e` to the power of each element.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn exp(&self) -> Result<Tensor> {
        apply(Exp, [self])
    }

    /// `exp(x) - 1` of each element, accurate near 0.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn expm1(&self) -> Result<Tensor> {
        apply(Expm1, [self])
    }

    /// Natural logarithm of each element: -inf at 0 and NaN below.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn log(&self) -> Result<Tensor> {
        apply(Log, [self])
    }

    /// `ln(1 + x)` of each element, accurate near 0: -inf at -1 and NaN below.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn log1p(&self) -> Result<Tensor> {
        apply(Log1p, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_arguments_keep_their_digits() -> Result<()> {
        // exp(1e-10) - 1 = 1e-10 + 5e-21 and ln(1 + 1e-10) = 1e-10 - 5e-21.
        let x = Tensor::from(1e-10f64);
        assert!((x.expm1()?.item::<f64>()? / 1.00000000005e-10 - 1.0).abs() < 1e-15);
        assert!((x.log1p()?.item::<f64>()? / 9.9999999995e-11 - 1.0).abs() < 1e-15);
        Ok(())
    }

    #[test]
    fn limits_are_infinite_zero_or_nan() -> Result<()> {
        let x = Tensor::from([0.0f32, -0.0, -1.0, f32::INFINITY, 1e4, -1e4]);
        let y = x.log()?.to_vec::<f32>()?;
        assert!(y[0] == f32::NEG_INFINITY && y[1] == f32::NEG_INFINITY && y[2].is_nan());
        assert_eq!(x.exp()?.to_vec::<f32>()?[3..], [f32::INFINITY, f32::INFINITY, 0.0]);
        assert_eq!(x.log1p()?.to_vec::<f32>()?[2], f32::NEG_INFINITY);
        Ok(())
    }

    #[test]
    fn integers_are_refused_with_the_cure() {
        let message = Tensor::from([1, 2]).exp().unwrap_err().to_string();
        assert_eq!(message, "exp: the input has dtype i32, expected a float dtype; convert it with cast");
    }
}
