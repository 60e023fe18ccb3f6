//! Rectified linear units.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernels::real::Real;
use crate::tensor::Tensor;

use super::apply;
use super::function::{Function, Of};

/// `y = max(x, 0)`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Relu;

impl Function for Relu {
    const NAME: &'static str = "relu";
    const SLOPE_NAME: &'static str = "relu_slope";
    const SLOPE_OF: Of = Of::Output;

    fn samples() -> Vec<Self> {
        vec![Relu]
    }

    #[inline(always)]
    fn value<R: Real>(&self, x: R) -> R {
        let zero = R::of(0.0);
        // NaN is not at most 0, and stays.
        if x <= zero { zero } else { x }
    }

    /// 1 where `y > 0`, else 0.
    #[inline(always)]
    fn slope<R: Real>(&self, y: R) -> R {
        if y > R::of(0.0) { R::of(1.0) } else { R::of(0.0) }
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
}
