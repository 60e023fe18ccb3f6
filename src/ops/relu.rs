//! Rectified linear units.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernels::math::Math;
use crate::tensor::Tensor;

use super::apply;
use super::function::{Function, Of};

/// `y = max(x, 0)`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Relu;

impl Function for Relu {
    const NAME: &'static str = "relu";
    const SLOPE_NAME: &'static str = "relu_slope";
    const SLOPE_OF: Of = Of::Output;

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        let zero = R::zero();
        // NaN is not at most 0, and stays.
        if x <= zero { zero } else { x }
    }

    /// 1 where `y > 0`, else 0.
    #[inline(always)]
    fn slope<R: Math>(&self, y: R) -> R {
        if y > R::zero() { R::one() } else { R::zero() }
    }

    fn curvature(&self, _: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }
}

/// `y = min(max(x, 0), 6)`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Relu6;

impl Function for Relu6 {
    const NAME: &'static str = "relu6";
    const SLOPE_NAME: &'static str = "relu6_slope";
    const SLOPE_OF: Of = Of::Output;
    const RANGE: (f64, f64) = (-2.0, 8.0);

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        let (zero, six) = (R::zero(), R::from_f64(6.0));
        let x = if x <= zero { zero } else { x };
        if x > six { six } else { x }
    }

    /// 1 where `0 < y < 6`, else 0.
    #[inline(always)]
    fn slope<R: Math>(&self, y: R) -> R {
        if y > R::zero() && y < R::from_f64(6.0) { R::one() } else { R::zero() }
    }

    fn curvature(&self, _: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }
}

/// `y = x` above 0, `slope x` below.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct LeakyRelu {
    slope: f64,
}

impl Function for LeakyRelu {
    const NAME: &'static str = "leaky_relu";
    const SLOPE_NAME: &'static str = "leaky_relu_slope";
    const SLOPE_OF: Of = Of::Input;

    fn samples() -> Vec<Self> {
        vec![LeakyRelu { slope: 0.2 }, LeakyRelu { slope: -1.5 }]
    }

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        if x > R::zero() { x } else { x * R::from_f64(self.slope) }
    }

    /// 1 where `x > 0`, else `slope`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        if x > R::zero() { R::one() } else { R::from_f64(self.slope) }
    }

    fn curvature(&self, _: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }
}

impl Tensor {
    /// `max(x, 0)` of each element; NaN stays NaN. Its slope is 0 at 0 and at NaN.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn relu(&self) -> Result<Tensor> {
        apply(Relu, [self])
    }

    /// `x` cut to 0 at the lower end and to 6 at the upper (Krizhevsky 2010); NaN stays NaN. Its slope is 0 at both ends.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn relu6(&self) -> Result<Tensor> {
        apply(Relu6, [self])
    }

    /// `x` above 0 and `slope x` at 0 and below (Maas et al. 2013); the reference's `slope` is 0.2.
    ///
    /// # Errors
    /// The dtype is not a float type, or `slope` is not finite.
    pub fn leaky_relu(&self, slope: f64) -> Result<Tensor> {
        if !slope.is_finite() {
            return Err(Error::argument("leaky_relu", "slope", slope, "a finite number"));
        }
        apply(LeakyRelu { slope }, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GradientTape;

    #[test]
    fn nan_passes_but_lets_no_gradient_through() -> Result<()> {
        let x = Tensor::from([f32::NAN, -0.0, 0.0, 2.0, -3.0]);
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = x.relu()?;
        let values = y.to_vec::<f32>()?;
        assert!(values[0].is_nan());
        assert_eq!(values[1..], [0.0, 0.0, 2.0, 0.0]);
        let dx = tape.gradient_with_seed(&y, &Tensor::ones([5], y.dtype())?, &[&x])?;
        assert_eq!(dx[0].as_ref().unwrap().dense()?.to_vec::<f32>()?, [0.0, 0.0, 0.0, 1.0, 0.0]);
        Ok(())
    }

    #[test]
    fn the_relatives_follow_their_formulas() -> Result<()> {
        let x = Tensor::from([f32::NAN, -2.0, 0.0, 3.0, 7.0]);
        assert_eq!(x.relu6()?.to_vec::<f32>()?[1..], [0.0, 0.0, 3.0, 6.0]);
        assert_eq!(x.leaky_relu(0.25)?.to_vec::<f32>()?[1..], [-0.5, 0.0, 3.0, 7.0]);
        assert!(x.relu6()?.to_vec::<f32>()?[0].is_nan() && x.leaky_relu(0.25)?.to_vec::<f32>()?[0].is_nan());
        assert!(x.leaky_relu(f64::NAN).is_err() && Tensor::from([1]).relu().is_err());
        Ok(())
    }
}
