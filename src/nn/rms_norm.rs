//! Root mean square normalisation.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::init::{self, Initializer};
use crate::module::{Forward, Once};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

/// Divides the last axis by its root mean square and scales each channel (Zhang and Sennrich 2019, "Root mean square layer
/// normalization"): `y = x / sqrt(mean(x^2) + eps) * scale`.
///
/// Layer normalisation without the mean: cheaper, and as good in most transformers. `scale`, of shape `[channels]`, starts
/// at 1.
///
/// ```
/// use couplet::prelude::*;
/// let y = RMSNorm::new().eps(0.0).forward(&Tensor::from([[3.0f64, 4.0]]))?;
/// assert!((y.to_vec::<f64>()?[0] - 3.0 / 12.5f64.sqrt()).abs() < 1e-15);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct RMSNorm {
    scope: Scope,
    #[module(default = true)]
    create_scale: bool,
    #[module(default = 1e-6)]
    eps: f64,
    scale_init: Option<Arc<dyn Initializer>>,
    scale: Once<Variable>,
}

impl Default for RMSNorm {
    fn default() -> Self {
        Self::new()
    }
}

impl RMSNorm {
    /// Normalisation of the last axis, with a scale.
    pub fn new() -> Self {
        RMSNorm {
            scope: Scope::of::<Self>(),
            create_scale: true,
            eps: 1e-6,
            scale_init: None,
            scale: Once::new(),
        }
    }

    /// Whether there is a scale. Default: yes.
    #[must_use]
    pub fn create_scale(mut self, create_scale: bool) -> Self {
        self.create_scale = create_scale;
        self
    }

    /// Added to the mean of the squares, so that zeros do not divide by 0. Default: 1e-6.
    #[must_use]
    pub fn eps(mut self, eps: f64) -> Self {
        self.eps = eps;
        self
    }

    /// Initialiser of `scale`, only with `create_scale`. Default: `Ones`.
    #[must_use]
    pub fn scale_init(mut self, init: impl Initializer) -> Self {
        self.scale_init = Some(Arc::new(init));
        self
    }
}

#[scoped]
impl Forward for RMSNorm {
    /// # Errors
    /// `x` is a scalar or not of a float dtype, its channels or dtype are not those of the first call, or there is an
    /// initialiser without a scale. Nothing is created then.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        const OP: &str = "rms_norm";
        if self.scale_init.is_some() && !self.create_scale {
            let problem = "scale_init is given although create_scale is false";
            return Err(Error::usage(OP, problem, "leave one of them out"));
        }
        if x.rank() == 0 {
            return Err(Error::shape(OP, "x", x.shape(), "rank 1 or more"));
        }
        if !x.dtype().is_float() {
            return Err(Error::dtype(OP, "x", x.dtype(), "a float dtype"));
        }
        let channels = x.dim(-1)?;
        if let Some(size) = self.scale.get().map(|v| v.shape()[0]).filter(|&size| size != channels) {
            let expected = format!("{size} as its last dim, as in the first call");
            return Err(Error::shape(OP, "x", x.shape(), expected));
        }
        let y = (x * (x.square()?.mean_axes(-1, true)? + self.eps)?.rsqrt()?)?;
        if !self.create_scale {
            return Ok(y);
        }
        let init = || self.scale_init.clone().unwrap_or_else(|| Arc::new(init::Ones));
        y * self.scale.get_or_init(|| Variable::new("scale", &[channels], x.dtype(), init()))?
    }
}
