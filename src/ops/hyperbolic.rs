//! Hyperbolic functions.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernels::real::Real;
use crate::tensor::Tensor;

use super::apply;
use super::function::{Function, Of};

/// `y = tanh(x)`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Tanh;

impl Function for Tanh {
    const NAME: &'static str = "tanh";
    const SLOPE_NAME: &'static str = "tanh_slope";
    const SLOPE_OF: Of = Of::Output;

    fn samples() -> Vec<Self> {
        vec![Tanh]
    }

    #[inline(always)]
    fn value<R: Real>(&self, x: R) -> R {
        x.tanh()
    }

    /// `1 - y^2`.
    #[inline(always)]
    fn slope<R: Real>(&self, y: R) -> R {
        R::of(1.0) - y * y
    }

    /// `-2 y`.
    fn curvature(&self, y: &Tensor) -> Result<Option<Tensor>> {
        (y * -2.0).map(Some)
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
}
