//! Trigonometric functions and their inverses.

use serde::{Deserialize, Serialize};

use crate::dtype::Element;
use crate::error::Result;
use crate::kernels::layout::View;
use crate::kernels::math::{self, Math};
use crate::tensor::{Tensor, take};

use super::apply;
use super::function::{Function, Of, in_wide_float};
use super::op::{Saved, Saves, Unary};
use super::registry::{Listed, Sample, SampleInput};

/// `y = sin(x)`, `x` in radians.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Sin;

impl Unary for Sin {
    const NAME: &'static str = "sin";
    const SAVES: Saves = Saves::INPUTS;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        in_wide_float("sin", x, |x| filled(&x, math::sin::<f32>), |x| filled(&x, math::sin::<f64>))
    }

    /// `dx = dy cos(x)`.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        dy * saved.input(0)?.cos()?
    }
}

impl Listed for Sin {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Sin, [SampleInput::float(&[2, 3])])]
    }
}

/// `y = cos(x)`, `x` in radians.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cos;

impl Unary for Cos {
    const NAME: &'static str = "cos";
    const SAVES: Saves = Saves::INPUTS;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        in_wide_float("cos", x, |x| filled(&x, math::cos::<f32>), |x| filled(&x, math::cos::<f64>))
    }

    /// `dx = -dy sin(x)`.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        (-dy)? * saved.input(0)?.sin()?
    }
}

impl Listed for Cos {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Cos, [SampleInput::float(&[2, 3])])]
    }
}

/// A tensor of the shape of `x` that `fill` writes.
fn filled<T: Element>(x: &Tensor, fill: impl Fn(View<'_, T>, &mut [T])) -> Result<Tensor> {
    let mut y = take::<T>(x.size());
    fill(x.view::<T>()?, &mut y);
    Ok(Tensor::from_taken(y, x.shape().clone()))
}

/// `y = tan(x)`, `x` in radians.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Tan;

impl Function for Tan {
    const NAME: &'static str = "tan";
    const SLOPE_NAME: &'static str = "tan_slope";
    const SLOPE_OF: Of = Of::Output;
    const RANGE: (f64, f64) = (-1.2, 1.2);

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.tan()
    }

    /// `1 + y^2`.
    #[inline(always)]
    fn slope<R: Math>(&self, y: R) -> R {
        R::one() + y * y
    }

    /// `2 y`.
    fn curvature(&self, y: &Tensor) -> Result<Option<Tensor>> {
        (y * 2.0).map(Some)
    }
}

/// `y = arcsin(x)`, from -pi/2 to pi/2.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Asin;

impl Function for Asin {
    const NAME: &'static str = "asin";
    const SLOPE_NAME: &'static str = "asin_slope";
    const SLOPE_OF: Of = Of::Input;
    const RANGE: (f64, f64) = (-0.8, 0.8);

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.asin()
    }

    /// `1 / sqrt(1 - x^2)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        ((R::one() - x) * (R::one() + x)).sqrt().recip()
    }

    /// `x / (1 - x^2)^(3/2)`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let slope = (1.0 - x.square()?)?.rsqrt()?;
        ((x * &slope)? * slope.square()?).map(Some)
    }
}

/// `y = arccos(x)`, from 0 to pi.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Acos;

impl Function for Acos {
    const NAME: &'static str = "acos";
    const SLOPE_NAME: &'static str = "acos_slope";
    const SLOPE_OF: Of = Of::Input;
    const RANGE: (f64, f64) = (-0.8, 0.8);

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.acos()
    }

    /// `-1 / sqrt(1 - x^2)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        -((R::one() - x) * (R::one() + x)).sqrt().recip()
    }

    /// `-x / (1 - x^2)^(3/2)`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let slope = (1.0 - x.square()?)?.rsqrt()?;
        (((-x)? * &slope)? * slope.square()?).map(Some)
    }
}

/// `y = arctan(x)`, from -pi/2 to pi/2.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Atan;

impl Function for Atan {
    const NAME: &'static str = "atan";
    const SLOPE_NAME: &'static str = "atan_slope";
    const SLOPE_OF: Of = Of::Input;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.atan()
    }

    /// `1 / (1 + x^2)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        (R::one() + x * x).recip()
    }

    /// `-2 x / (1 + x^2)^2`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let base = (x.square()? + 1.0)?;
        ((x * -2.0)? / base.square()?).map(Some)
    }
}

impl Tensor {
    /// Sine of each element, an angle in radians.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn sin(&self) -> Result<Tensor> {
        apply(Sin, [self])
    }

    /// Cosine of each element, an angle in radians.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn cos(&self) -> Result<Tensor> {
        apply(Cos, [self])
    }

    /// Tangent of each element, an angle in radians.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn tan(&self) -> Result<Tensor> {
        apply(Tan, [self])
    }

    /// Angle in radians whose sine is the element, from -pi/2 to pi/2; NaN outside -1 to 1.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn asin(&self) -> Result<Tensor> {
        apply(Asin, [self])
    }

    /// Angle in radians whose cosine is the element, from 0 to pi; NaN outside -1 to 1.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn acos(&self) -> Result<Tensor> {
        apply(Acos, [self])
    }

    /// Angle in radians whose tangent is the element, from -pi/2 to pi/2.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn atan(&self) -> Result<Tensor> {
        apply(Atan, [self])
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    #[test]
    fn angles_have_their_known_sines_and_back() -> Result<()> {
        let x = Tensor::from([0.0, FRAC_PI_2, -FRAC_PI_2]);
        assert_eq!(x.sin()?.to_vec::<f64>()?, [0.0, 1.0, -1.0]);
        assert_eq!(x.sin()?.asin()?.to_vec::<f64>()?, [0.0, FRAC_PI_2, -FRAC_PI_2]);
        assert_eq!(x.cos()?.acos()?.to_vec::<f64>()?[0], 0.0);
        assert!((Tensor::from(1.0f64).tan()?.atan()?.item::<f64>()? - 1.0).abs() < 1e-15);
        Ok(())
    }

    #[test]
    fn infinite_angles_and_impossible_sines_are_nan() -> Result<()> {
        let x = Tensor::from([f32::INFINITY, 1.5]);
        assert!(x.sin()?.to_vec::<f32>()?[0].is_nan() && x.cos()?.to_vec::<f32>()?[0].is_nan());
        assert!(x.asin()?.to_vec::<f32>()?[1].is_nan() && x.acos()?.to_vec::<f32>()?[1].is_nan());
        Ok(())
    }
}
