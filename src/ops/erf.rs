//! The error function and its complement.

use std::f64::consts::FRAC_2_SQRT_PI;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernels::math::Math;
use crate::tensor::Tensor;

use super::apply;
use super::function::{Function, Of};

/// `y = erf(x) = 2 / sqrt(pi)` times the integral of `exp(-t^2)` from 0 to `x`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Erf;

impl Function for Erf {
    const NAME: &'static str = "erf";
    const SLOPE_NAME: &'static str = "erf_slope";
    const SLOPE_OF: Of = Of::Input;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.erf_()
    }

    /// `2 / sqrt(pi) exp(-x^2)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        R::from_f64(FRAC_2_SQRT_PI) * (-x * x).exp_()
    }

    /// `-4 / sqrt(pi) x exp(-x^2)`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        ((x * (-2.0 * FRAC_2_SQRT_PI))? * (-x.square()?)?.exp()?).map(Some)
    }
}

/// `y = 1 - erf(x)`, exact where it is small.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Erfc;

impl Function for Erfc {
    const NAME: &'static str = "erfc";
    const SLOPE_NAME: &'static str = "erfc_slope";
    const SLOPE_OF: Of = Of::Input;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.erfc_()
    }

    /// `-2 / sqrt(pi) exp(-x^2)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        R::from_f64(-FRAC_2_SQRT_PI) * (-x * x).exp_()
    }

    /// `4 / sqrt(pi) x exp(-x^2)`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        ((x * (2.0 * FRAC_2_SQRT_PI))? * (-x.square()?)?.exp()?).map(Some)
    }
}

impl Tensor {
    /// The error function of each element: `2 / sqrt(pi)` times the integral of `exp(-t^2)` from 0 to `x`.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn erf(&self) -> Result<Tensor> {
        apply(Erf, [self])
    }

    /// `1 - erf(x)` of each element, with all its digits where it is small.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn erfc(&self) -> Result<Tensor> {
        apply(Erfc, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_and_limits_are_met() -> Result<()> {
        // Abramowitz & Stegun 1964, table 7.1: erf(0.5) = 0.5204998778; erfc(5) = 1.5374597944e-12 (table 7.2).
        let x = Tensor::from([0.0f64, 0.5, 5.0, f64::INFINITY, f64::NEG_INFINITY]);
        let (y, z) = (x.erf()?.to_vec::<f64>()?, x.erfc()?.to_vec::<f64>()?);
        assert_eq!([y[0], y[3], y[4], z[0], z[3], z[4]], [0.0, 1.0, -1.0, 1.0, 0.0, 2.0]);
        assert!((y[1] - 0.520_499_877_8).abs() < 1e-10);
        assert!((z[2] / 1.537_459_794_4e-12 - 1.0).abs() < 1e-10);
        Ok(())
    }
}
