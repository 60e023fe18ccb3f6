//! Logarithm of a sum of exponentials over axes.

use serde::{Deserialize, Serialize};

use crate::dtype::Element;
use crate::error::Result;
use crate::kernels::lanes;
use crate::kernels::math::Math;
use crate::tensor::{Tensor, take};

use super::apply;
use super::function::in_wide_float;
use super::op::{Saved, Saves, Unary};
use super::reduction::Reduction;
use super::registry::{Listed, Sample};
use super::sum::Axes;

/// `y = ln(sum(exp(x)))` over the marked axes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LogSumExp(Reduction);

impl LogSumExp {
    fn run<T: Math + Element>(&self, x: &Tensor) -> Result<Tensor> {
        let (to, rows) = (self.0.to(), self.0.lanes(x));
        let mut y = take::<T>(to.size());
        lanes::fold(rows.as_slice::<T>()?.unwrap_or(&[]), self.0.count(), &mut y, lanes::log_sum_exp);
        Ok(Tensor::from_taken(y, to))
    }
}

impl Unary for LogSumExp {
    const NAME: &'static str = "logsumexp";
    const SAVES: Saves = Saves::INPUTS;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        self.0.check("logsumexp", &x)?;
        in_wide_float("logsumexp", x, |x| self.run::<f32>(&x), |x| self.run::<f64>(&x))
    }

    /// `dx = dy e / sum(e)` with `e = exp(x - m)`, where `m` is the largest element (0 if that is infinite);
    /// `exp(x - y)` would lose the digits that `y` was rounded by.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        let x = saved.input(0)?;
        // The quotient does not depend on `m`.
        let largest = x.stop_gradient().max_axes(self.0.axes(), true)?;
        let largest = largest.is_finite()?.where_else(&largest, 0.0)?;
        let e = (x - largest)?.exp()?;
        let each = (dy.reshape(self.0.kept())? / e.sum_axes(self.0.axes(), true)?)?;
        e * each
    }
}

impl Listed for LogSumExp {
    fn samples() -> Vec<Sample> {
        Reduction::samples(LogSumExp)
    }
}

impl Tensor {
    /// `ln(sum(exp(x)))` of all elements, a scalar; -inf if there are none.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn logsumexp(&self) -> Result<Tensor> {
        self.logsumexp_axes((), false)
    }

    /// `ln(sum(exp(x)))` over `axes`, which are dropped, or stay at size 1 with `keep_dims`.
    ///
    /// The largest element is taken out of the sum first, so that it is finite wherever that is.
    ///
    /// # Errors
    /// An axis is out of range or named twice, or the dtype is not a float type.
    pub fn logsumexp_axes(&self, axes: impl Axes, keep_dims: bool) -> Result<Tensor> {
        apply(LogSumExp(Reduction::new("logsumexp", self, axes, keep_dims)?), [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_elements_and_masks_are_fine() -> Result<()> {
        let inf = f32::INFINITY;
        let x =
            Tensor::from([[1e4, 1e4], [-1e4, -1e4], [-inf, 3.0], [-inf, -inf], [inf, 0.0], [f32::NAN, 0.0]]);
        let y = x.logsumexp_axes(-1, false)?.to_vec::<f32>()?;
        assert_eq!(y[..5], [1e4 + 2f32.ln(), -1e4 + 2f32.ln(), 3.0, -inf, inf]);
        assert!(y[5].is_nan());
        assert_eq!(Tensor::zeros([0], crate::DType::F64)?.logsumexp()?.item::<f64>()?, f64::NEG_INFINITY);
        Ok(())
    }

    #[test]
    fn shares_of_huge_and_masked_elements_are_exact() -> Result<()> {
        let x = Tensor::from([[1e4f32, 1e4], [f32::NEG_INFINITY, 3.0]]);
        let tape = crate::GradientTape::new();
        tape.watch(&x);
        let y = x.logsumexp_axes(1, false)?.sum()?;
        let dx = tape.gradient(&y, &[&x])?.remove(0).unwrap().to_dense()?;
        assert_eq!(dx.to_vec::<f32>()?, [0.5, 0.5, 0.0, 1.0]);
        Ok(())
    }
}
