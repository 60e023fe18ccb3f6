//! Hyperbolic functions.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernels::math::Math;
use crate::tensor::Tensor;

use super::apply;
use super::function::{Function, Of};

/// `y = tanh(x)`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Tanh;

impl Function for Tanh {
    const NAME: &'static str = "tanh";
    const SLOPE_NAME: &'static str = "tanh_slope";
    const SLOPE_OF: Of = Of::Output;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.tanh_()
    }

    /// `1 - y^2`.
    #[inline(always)]
    fn slope<R: Math>(&self, y: R) -> R {
        R::from_f64(1.0) - y * y
    }

    /// `-2 y`.
    fn curvature(&self, y: &Tensor) -> Result<Option<Tensor>> {
        (y * -2.0).map(Some)
    }
}

/// `y = sinh(x)`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Sinh;

impl Function for Sinh {
    const NAME: &'static str = "sinh";
    const SLOPE_NAME: &'static str = "sinh_slope";
    const SLOPE_OF: Of = Of::Input;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.sinh()
    }

    /// `cosh(x)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        x.cosh()
    }

    /// `sinh(x)`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        x.sinh().map(Some)
    }
}

/// `y = cosh(x)`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Cosh;

impl Function for Cosh {
    const NAME: &'static str = "cosh";
    const SLOPE_NAME: &'static str = "cosh_slope";
    const SLOPE_OF: Of = Of::Input;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x.cosh()
    }

    /// `sinh(x)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        x.sinh()
    }

    /// `cosh(x)`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        x.cosh().map(Some)
    }
}

impl Tensor {
    /// Hyperbolic tangent of each element.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn tanh(&self) -> Result<Tensor> {
        apply(Tanh, [self])
    }

    /// Hyperbolic sine of each element.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn sinh(&self) -> Result<Tensor> {
        apply(Sinh, [self])
    }

    /// Hyperbolic cosine of each element.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn cosh(&self) -> Result<Tensor> {
        apply(Cosh, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_inputs_reach_their_limits() -> Result<()> {
        let x = Tensor::from([-1e4f32, 0.0, 1e4]);
        assert_eq!(x.tanh()?.to_vec::<f32>()?, [-1.0, 0.0, 1.0]);
        assert_eq!(x.sinh()?.to_vec::<f32>()?, [f32::NEG_INFINITY, 0.0, f32::INFINITY]);
        assert_eq!(x.cosh()?.to_vec::<f32>()?, [f32::INFINITY, 1.0, f32::INFINITY]);
        Ok(())
    }

    #[test]
    fn small_inputs_keep_their_digits() -> Result<()> {
        // sinh(x) = tanh(x) = x to the last digit below 1e-9.
        let x = Tensor::from(1e-9f64);
        assert_eq!((x.tanh()?.item::<f64>()?, x.sinh()?.item::<f64>()?), (1e-9, 1e-9));
        Ok(())
    }
}
