//! Roots, squares and the reciprocal.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernels::math::Math;
use crate::tensor::Tensor;

use super::apply;
use super::arithmetic::{Number, for_number, map};
use super::function::{Function, Of};
use super::op::{Saved, Saves, Unary};
use super::registry::{Listed, Sample, SampleInput};

/// `y = sqrt(x)`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Sqrt;

impl Function for Sqrt {
    const NAME: &'static str = "sqrt";
    const SLOPE_NAME: &'static str = "sqrt_slope";
    const SLOPE_OF: Of = Of::Output;
    const RANGE: (f64, f64) = (0.5, 2.0);

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.sqrt()
    }

    /// `1 / (2 y)`.
    #[inline(always)]
    fn slope<R: Math>(&self, y: R) -> R {
        R::from_f64(0.5) / y
    }

    /// `-1 / (2 y^2)`.
    fn curvature(&self, y: &Tensor) -> Result<Option<Tensor>> {
        ((-0.5 / y)? / y).map(Some)
    }
}

/// `y = 1 / sqrt(x)`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Rsqrt;

impl Function for Rsqrt {
    const NAME: &'static str = "rsqrt";
    const SLOPE_NAME: &'static str = "rsqrt_slope";
    const SLOPE_OF: Of = Of::Output;
    const RANGE: (f64, f64) = (0.5, 2.0);

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.sqrt().recip()
    }

    /// `-y^3 / 2`.
    #[inline(always)]
    fn slope<R: Math>(&self, y: R) -> R {
        R::from_f64(-0.5) * y * (y * y)
    }

    /// `-3 y^2 / 2`.
    fn curvature(&self, y: &Tensor) -> Result<Option<Tensor>> {
        ((y * -1.5)? * y).map(Some)
    }
}

/// `y = 1 / x`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Reciprocal;

impl Function for Reciprocal {
    const NAME: &'static str = "reciprocal";
    const SLOPE_NAME: &'static str = "reciprocal_slope";
    const SLOPE_OF: Of = Of::Output;
    const RANGE: (f64, f64) = (0.5, 2.0);

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.recip()
    }

    /// `-y^2`.
    #[inline(always)]
    fn slope<R: Math>(&self, y: R) -> R {
        -(y * y)
    }

    /// `-2 y`.
    fn curvature(&self, y: &Tensor) -> Result<Option<Tensor>> {
        (y * -2.0).map(Some)
    }
}

/// `y = x^2`; integers wrap around.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Square;

impl Unary for Square {
    const NAME: &'static str = "square";
    const SAVES: Saves = Saves::INPUTS;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        for_number!("square", x.dtype(), [x], T => map::<T>(x, |x| x.times(x)))
    }

    /// `dx = 2 x dy`.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        (saved.input(0)? * 2.0)? * dy
    }
}

impl Listed for Square {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Square, [SampleInput::float(&[2, 3])])]
    }
}

impl Tensor {
    /// Square root of each element: NaN below 0.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn sqrt(&self) -> Result<Tensor> {
        apply(Sqrt, [self])
    }

    /// `1 / sqrt(x)` of each element: infinite at 0 and NaN below.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn rsqrt(&self) -> Result<Tensor> {
        apply(Rsqrt, [self])
    }

    /// `1 / x` of each element.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn reciprocal(&self) -> Result<Tensor> {
        apply(Reciprocal, [self])
    }

    /// `x^2` of each element; integers wrap around.
    ///
    /// # Errors
    /// The dtype is bool.
    pub fn square(&self) -> Result<Tensor> {
        apply(Square, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_negative_numbers_follow_ieee() -> Result<()> {
        let x = Tensor::from([0.0f64, -0.0, -1.0, f64::INFINITY, 4.0]);
        let y = x.rsqrt()?.to_vec::<f64>()?;
        assert!(y[2].is_nan());
        assert_eq!([y[0], y[1], y[3], y[4]], [f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.5]);
        assert!(x.sqrt()?.to_vec::<f64>()?[2].is_nan());
        assert_eq!(x.reciprocal()?.to_vec::<f64>()?[1], f64::NEG_INFINITY);
        Ok(())
    }

    #[test]
    fn integers_are_squared_but_have_no_root() -> Result<()> {
        assert_eq!(Tensor::from([-3i32, 1 << 16]).square()?.to_vec::<i32>()?, [9, 0]);
        assert!(Tensor::from([4i32]).sqrt().is_err());
        assert!(Tensor::from([true]).square().is_err());
        Ok(())
    }
}
