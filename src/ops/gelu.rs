//! Gaussian error linear units, exact and by tanh.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernels::math::Math;
use crate::tensor::Tensor;

use super::apply;
use super::function::{Function, Of};

/// `1 / sqrt(2 pi)`.
const INVERSE_ROOT_2_PI: f64 = 0.398_942_280_401_432_7;
/// `sqrt(2 / pi)`.
const ROOT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
/// Share of the cube in the approximation by tanh.
const CUBE: f64 = 0.044_715;

/// `y = x P(x)`, where `P` is the standard normal distribution function.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Gelu;

impl Function for Gelu {
    const NAME: &'static str = "gelu";
    const SLOPE_NAME: &'static str = "gelu_slope";
    const SLOPE_OF: Of = Of::Input;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x * x.normal_().0
    }

    /// `P(x) + x p(x)`, where `p` is the standard normal density.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        let (share, density) = x.normal_();
        // The density is 0 far out, where x may be infinite.
        let far = R::from_f64(40.0);
        let x = if x > far { far } else { x };
        let x = if x < -far { -far } else { x };
        share + x * density
    }

    /// `p(x) (2 - x^2)`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let square = x.square()?;
        let density = ((&square * -0.5)?.exp()? * INVERSE_ROOT_2_PI)?;
        (density * (2.0 - square)).map(Some)
    }
}

/// `y = x / 2 (1 + tanh(u))` with `u = sqrt(2 / pi) (x + 0.044715 x^3)`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct GeluTanh;

impl Function for GeluTanh {
    const NAME: &'static str = "gelu_tanh";
    const SLOPE_NAME: &'static str = "gelu_tanh_slope";
    const SLOPE_OF: Of = Of::Input;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        let u = R::from_f64(ROOT_2_OVER_PI) * x * (R::one() + R::from_f64(CUBE) * x * x);
        R::from_f64(0.5) * x * (R::one() + u.tanh_())
    }

    /// `(1 + t) / 2 + x / 2 (1 - t^2) u'` for `t = tanh(u)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        let square = R::from_f64(CUBE) * x * x;
        let t = (R::from_f64(ROOT_2_OVER_PI) * x * (R::one() + square)).tanh_();
        let du = R::from_f64(ROOT_2_OVER_PI) * (R::one() + R::from_f64(3.0) * square);
        R::from_f64(0.5) * (R::one() + t + x * (R::one() - t * t) * du)
    }

    /// `(1 - t^2) (u' + x / 2 u'' - x t u'^2)` for `t = tanh(u)`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let square = (x.square()? * CUBE)?;
        let t = ((x * (&square + 1.0))? * ROOT_2_OVER_PI)?.tanh()?;
        let du = (((&square * 3.0)? + 1.0)? * ROOT_2_OVER_PI)?;
        // x / 2 u'' = 3 sqrt(2 / pi) 0.044715 x^2.
        let bend = (&du + (square * (3.0 * ROOT_2_OVER_PI)))?;
        let bend = (bend - ((x * &t)? * du.square()?)?)?;
        ((1.0 - t.square()?)? * bend).map(Some)
    }
}

impl Tensor {
    /// `x P(x)` of each element, where `P` is the standard normal distribution function (Hendrycks & Gimpel 2016).
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn gelu(&self) -> Result<Tensor> {
        apply(Gelu, [self])
    }

    /// `x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))` of each element, within 5e-4 of [`gelu`](Tensor::gelu); the
    /// form that many published weights were trained with.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn gelu_tanh(&self) -> Result<Tensor> {
        apply(GeluTanh, [self])
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    #[test]
    fn constants_are_the_roots_they_stand_for() {
        assert!((INVERSE_ROOT_2_PI - 1.0 / (2.0 * PI).sqrt()).abs() < 1e-16);
        assert!((ROOT_2_OVER_PI - (2.0 / PI).sqrt()).abs() < 2e-16);
    }

    #[test]
    fn far_inputs_are_passed_or_blocked_and_tails_keep_their_digits() -> Result<()> {
        let x = Tensor::from([-100.0f64, -10.0, 0.0, 100.0]);
        let y = x.gelu()?.to_vec::<f64>()?;
        assert_eq!([y[2], y[3]], [0.0, 100.0]);
        // P(-10) = 7.619853024160527e-24.
        assert!((y[1] / -7.619_853_024_160_527e-23 - 1.0).abs() < 1e-13);
        let infinite = Tensor::from([f32::NEG_INFINITY, -1e4, 1e4, f32::INFINITY]);
        let tape = crate::GradientTape::new();
        tape.watch(&infinite);
        let slope = tape.gradient_of_all(&[(&infinite.gelu()?, None)], &[&infinite])?.remove(0);
        assert_eq!(slope.expect("depends on x").dense()?.to_vec::<f32>()?, [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(x.gelu_tanh()?.to_vec::<f64>()?[2..], [0.0, 100.0]);
        Ok(())
    }

    #[test]
    fn both_forms_are_close() -> Result<()> {
        let x = Tensor::linspace(-6.0, 6.0, 241, crate::DType::F64)?;
        assert!((x.gelu()? - x.gelu_tanh()?)?.abs()?.max()?.item::<f64>()? < 5e-4);
        Ok(())
    }
}
