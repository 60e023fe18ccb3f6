//! Swish, mish, softsign and the hard sigmoid.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernels::math::Math;
use crate::tensor::Tensor;

use super::apply;
use super::function::{Function, Of};

/// `y = x sigmoid(beta x)`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Swish {
    beta: f64,
}

impl Function for Swish {
    const NAME: &'static str = "swish";
    const SLOPE_NAME: &'static str = "swish_slope";
    const SLOPE_OF: Of = Of::Input;

    fn samples() -> Vec<Self> {
        vec![Swish { beta: 1.0 }, Swish { beta: -1.7 }]
    }

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x * (R::from_f64(self.beta) * x).sigmoid_()
    }

    /// `s + beta x s (1 - s)` for `s = sigmoid(beta x)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        let z = R::from_f64(self.beta) * x;
        let s = z.sigmoid_();
        s + z * s * (R::one() - s)
    }

    /// `beta s (1 - s) (2 + beta x (1 - 2 s))`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let z = (x * self.beta)?;
        let s = z.sigmoid()?;
        let bend = ((z * (1.0 - (&s * 2.0)?))? + 2.0)?;
        (((&s * (1.0 - &s))? * bend)? * self.beta).map(Some)
    }
}

/// `y = x tanh(ln(1 + exp(x)))`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Mish;

impl Function for Mish {
    const NAME: &'static str = "mish";
    const SLOPE_NAME: &'static str = "mish_slope";
    const SLOPE_OF: Of = Of::Input;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x * x.softplus_().tanh_()
    }

    /// `t + x s (1 - t^2)` for `s = sigmoid(x)` and `t = tanh(ln(1 + exp(x)))`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        let (s, t) = (x.sigmoid_(), x.softplus_().tanh_());
        t + x * s * (R::one() - t * t)
    }

    /// `(1 - t^2) s (2 + x (1 - s - 2 t s))`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let (s, t) = (x.sigmoid()?, x.softplus()?.tanh()?);
        let bend = ((((1.0 - &s)? - ((&t * 2.0)? * &s)?)? * x)? + 2.0)?;
        (((1.0 - t.square()?)? * s)? * bend).map(Some)
    }
}

/// `y = x / (1 + |x|)`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Softsign;

impl Function for Softsign {
    const NAME: &'static str = "softsign";
    const SLOPE_NAME: &'static str = "softsign_slope";
    const SLOPE_OF: Of = Of::Input;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        x / (R::one() + x.abs())
    }

    /// `1 / (1 + |x|)^2`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        let base = R::one() + x.abs();
        (base * base).recip()
    }

    /// `-2 sign(x) / (1 + |x|)^3`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let base = (x.abs()? + 1.0)?;
        ((x.sign()? * -2.0)? / (base.square()? * base)?).map(Some)
    }
}

/// `y = min(max(x + 3, 0), 6) / 6`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct HardSigmoid;

impl Function for HardSigmoid {
    const NAME: &'static str = "hard_sigmoid";
    const SLOPE_NAME: &'static str = "hard_sigmoid_slope";
    const SLOPE_OF: Of = Of::Output;
    const RANGE: (f64, f64) = (-4.0, 4.0);

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        let y = (x + R::from_f64(3.0)) / R::from_f64(6.0);
        let y = if y <= R::zero() { R::zero() } else { y };
        if y > R::one() { R::one() } else { y }
    }

    /// 1/6 where `0 < y < 1`, else 0.
    #[inline(always)]
    fn slope<R: Math>(&self, y: R) -> R {
        if y > R::zero() && y < R::one() { R::from_f64(1.0 / 6.0) } else { R::zero() }
    }

    fn curvature(&self, _: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }
}

impl Tensor {
    /// `x sigmoid(beta x)` of each element (Ramachandran et al. 2017); with `beta = 1` it is [`silu`](Tensor::silu).
    ///
    /// # Errors
    /// The dtype is not a float type, or `beta` is not finite.
    pub fn swish(&self, beta: f64) -> Result<Tensor> {
        if !beta.is_finite() {
            return Err(Error::argument("swish", "beta", beta, "a finite number"));
        }
        apply(Swish { beta }, [self])
    }

    /// `x sigmoid(x)` of each element (Elfwing et al. 2018).
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn silu(&self) -> Result<Tensor> {
        self.swish(1.0)
    }

    /// `x tanh(ln(1 + exp(x)))` of each element (Misra 2020).
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn mish(&self) -> Result<Tensor> {
        apply(Mish, [self])
    }

    /// `x / (1 + |x|)` of each element.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn softsign(&self) -> Result<Tensor> {
        apply(Softsign, [self])
    }

    /// `x / 6 + 1/2` of each element, cut to 0 at the lower end and to 1 at the upper; NaN stays NaN.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn hard_sigmoid(&self) -> Result<Tensor> {
        apply(HardSigmoid, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_inputs_stay_finite() -> Result<()> {
        let x = Tensor::from([-1e4f32, 0.0, 1e4]);
        for y in [x.silu()?, x.mish()?] {
            assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0, 1e4]);
        }
        assert_eq!(x.hard_sigmoid()?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
        assert_eq!(x.softsign()?.to_vec::<f32>()?[1], 0.0);
        assert!(x.swish(f64::INFINITY).is_err());
        Ok(())
    }
}
