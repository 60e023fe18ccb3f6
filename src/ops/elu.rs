//! Exponential linear units.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernels::math::Math;
use crate::tensor::Tensor;

use super::apply;
use super::function::{Function, Of};

/// `y = x` above 0, `exp(x) - 1` below.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Elu;

impl Function for Elu {
    const NAME: &'static str = "elu";
    const SLOPE_NAME: &'static str = "elu_slope";
    const SLOPE_OF: Of = Of::Output;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        if x < R::zero() { x.expm1_() } else { x }
    }

    /// `y + 1` where `y < 0`, else 1.
    #[inline(always)]
    fn slope<R: Math>(&self, y: R) -> R {
        if y < R::zero() { y + R::one() } else { R::one() }
    }

    /// 1 where `y < 0`, else 0.
    fn curvature(&self, y: &Tensor) -> Result<Option<Tensor>> {
        y.less(0.0)?.cast(y.dtype()).map(Some)
    }
}

/// Scale of SELU, with which activations keep mean 0 and variance 1 from layer to layer (Klambauer et al. 2017, eq. 14).
const SCALE: f64 = 1.050_700_987_355_480_5;
/// Scale of SELU times its `alpha` of 1.6732632423543772.
const SCALE_ALPHA: f64 = 1.758_099_340_847_376_6;

/// `y = scale x` above 0, `scale alpha (exp(x) - 1)` below.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Selu;

impl Function for Selu {
    const NAME: &'static str = "selu";
    const SLOPE_NAME: &'static str = "selu_slope";
    const SLOPE_OF: Of = Of::Output;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        if x < R::zero() { R::from_f64(SCALE_ALPHA) * x.expm1_() } else { R::from_f64(SCALE) * x }
    }

    /// `y + scale alpha` where `y < 0`, else `scale`.
    #[inline(always)]
    fn slope<R: Math>(&self, y: R) -> R {
        if y < R::zero() { y + R::from_f64(SCALE_ALPHA) } else { R::from_f64(SCALE) }
    }

    /// 1 where `y < 0`, else 0.
    fn curvature(&self, y: &Tensor) -> Result<Option<Tensor>> {
        y.less(0.0)?.cast(y.dtype()).map(Some)
    }
}

impl Tensor {
    /// `x` above 0 and `exp(x) - 1` below (Clevert et al. 2016).
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn elu(&self) -> Result<Tensor> {
        apply(Elu, [self])
    }

    /// `scale x` above 0 and `scale alpha (exp(x) - 1)` below, with `scale = 1.0507` and `alpha = 1.6733` (Klambauer et al.
    /// 2017).
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn selu(&self) -> Result<Tensor> {
        apply(Selu, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_and_small_inputs_are_exact() -> Result<()> {
        let x = Tensor::from([-1e4f64, -1e-12, 0.0, 5.0]);
        assert_eq!(x.elu()?.to_vec::<f64>()?, [-1.0, (-1e-12f64).exp_m1(), 0.0, 5.0]);
        let y = x.selu()?.to_vec::<f64>()?;
        assert_eq!([y[0], y[2], y[3]], [-SCALE_ALPHA, 0.0, SCALE * 5.0]);
        assert!((SCALE * 1.673_263_242_354_377_2 - SCALE_ALPHA).abs() < 1e-15);
        Ok(())
    }
}
