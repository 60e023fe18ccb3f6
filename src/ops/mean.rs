//! Mean, variance and standard deviation over axes.

use serde::{Deserialize, Serialize};

use crate::dtype::Element;
use crate::error::Result;
use crate::kernels::math::Math;
use crate::kernels::reduce;
use crate::tensor::Tensor;

use super::apply;
use super::arithmetic::zip;
use super::function::{for_float, in_wide_float};
use super::op::{Saved, Saves, Unary};
use super::reduction::Reduction;
use super::registry::{Listed, Sample};
use super::sum::Axes;

/// The mean over the marked axes, which stay at size 1; not recorded.
fn reduce_mean<T: Element + reduce::Number>(x: &Tensor, r: &Reduction) -> Result<Tensor> {
    r.fill::<T, T>(x, reduce::mean)?.reshaped(r.kept())
}

/// `y` is the mean of `x` over the marked axes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Mean(Reduction);

impl Unary for Mean {
    const NAME: &'static str = "mean";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        self.0.check("mean", &x)?;
        for_float!("mean", x.dtype(), T => self.0.fill::<T, T>(&x, reduce::mean))
    }

    /// `dx = dy / n`, repeated along the `n` elements.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        self.0.spread(&(dy / self.0.count() as f64)?)
    }
}

impl Listed for Mean {
    fn samples() -> Vec<Sample> {
        Reduction::samples(Mean)
    }
}

/// `y` is the mean over the marked axes of `(x - m)^2`, where `m` is their mean.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Variance(Reduction);

impl Variance {
    fn run<T: Math + Element + reduce::Number>(&self, x: Tensor) -> Result<Tensor> {
        let mean = reduce_mean::<T>(&x, &self.0)?;
        let d = zip::<T>("variance", x, mean, |x, m| x - m)?;
        // The mean was rounded: what the differences still average to is taken off again.
        let rest = reduce_mean::<T>(&d, &self.0)?;
        let squares = self.0.fill::<T, T>(&d, reduce::sum_squares)?.reshaped(self.0.kept())?;
        let count = <T as Math>::from_f64(self.0.count() as f64);
        zip::<T>("variance", squares, rest, move |s, r| s / count - r * r)?.reshaped(self.0.to())
    }
}

impl Unary for Variance {
    const NAME: &'static str = "variance";
    const SAVES: Saves = Saves::INPUTS;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        self.0.check("variance", &x)?;
        in_wide_float("variance", x, |x| self.run::<f32>(x), |x| self.run::<f64>(x))
    }

    /// `dx = 2 dy (x - m) / n`; how `m` depends on `x` cancels out.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        let x = saved.input(0)?;
        let mean = self.0.spread(&apply(Mean(self.0.clone()), [x])?)?;
        (x - mean)? * self.0.spread(&(dy * (2.0 / self.0.count() as f64))?)?
    }
}

impl Listed for Variance {
    fn samples() -> Vec<Sample> {
        Reduction::samples(Variance)
    }
}

impl Tensor {
    /// Mean of all elements, a scalar; NaN if there are none.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn mean(&self) -> Result<Tensor> {
        self.mean_axes((), false)
    }

    /// Mean over `axes`, which are dropped, or stay at size 1 with `keep_dims`; NaN over no elements.
    ///
    /// # Errors
    /// An axis is out of range or named twice, or the dtype is not a float type.
    pub fn mean_axes(&self, axes: impl Axes, keep_dims: bool) -> Result<Tensor> {
        apply(Mean(Reduction::new("mean", self, axes, keep_dims)?), [self])
    }

    /// Variance of all elements, divided by their number, a scalar; NaN if there are none.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn var(&self) -> Result<Tensor> {
        self.var_axes((), false)
    }

    /// Variance over `axes`, divided by the number of elements; the axes are dropped, or stay at size 1 with
    /// `keep_dims`.
    ///
    /// Computed from the differences from the mean, so that it keeps its digits where the mean is large.
    ///
    /// # Errors
    /// An axis is out of range or named twice, or the dtype is not a float type.
    pub fn var_axes(&self, axes: impl Axes, keep_dims: bool) -> Result<Tensor> {
        apply(Variance(Reduction::new("variance", self, axes, keep_dims)?), [self])
    }

    /// Standard deviation of all elements: the root of [`var`](Tensor::var). Its gradient is NaN where all are equal.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn std(&self) -> Result<Tensor> {
        self.var()?.sqrt()
    }

    /// Standard deviation over `axes`: the root of [`var_axes`](Tensor::var_axes).
    ///
    /// # Errors
    /// An axis is out of range or named twice, or the dtype is not a float type.
    pub fn std_axes(&self, axes: impl Axes, keep_dims: bool) -> Result<Tensor> {
        self.var_axes(axes, keep_dims)?.sqrt()
    }

    /// Mean and variance over `axes`.
    ///
    /// # Errors
    /// An axis is out of range or named twice, or the dtype is not a float type.
    pub fn moments(&self, axes: impl Axes, keep_dims: bool) -> Result<(Tensor, Tensor)> {
        let r = Reduction::new("moments", self, axes, keep_dims)?;
        Ok((apply(Mean(r.clone()), [self])?, apply(Variance(r), [self])?))
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn no_elements_have_no_mean_but_an_empty_batch_is_fine() -> Result<()> {
        let x = Tensor::from_vec(Vec::<f32>::new(), [2, 0, 3])?;
        assert!(x.mean_axes(1, false)?.to_vec::<f32>()?.iter().all(|v| v.is_nan()));
        assert_eq!(x.var_axes(-1, true)?.shape(), &[2, 0, 1]);
        Ok(())
    }

    #[test]
    fn half_precision_means_do_not_overflow() -> Result<()> {
        // The sum, 1024 * 60000, is far beyond the largest f16, 65504.
        let x = Tensor::from(vec![f16::from_f32(60_000.0); 1024]);
        assert_eq!(x.mean()?.item::<f16>()?, f16::from_f32(60_000.0));
        assert_eq!(x.var()?.item::<f16>()?, f16::from_f32(0.0));
        Ok(())
    }

    #[test]
    fn variance_keeps_its_digits_beside_a_large_mean() -> Result<()> {
        // 1e6 + {0, 1}: variance 1/4; the mean of squares would have no digit left in f32.
        let x: Vec<f32> = (0..1000).map(|i| 1e6 + (i % 2) as f32).collect();
        assert_eq!(Tensor::from(x).var()?.item::<f32>()?, 0.25);
        Ok(())
    }

    #[test]
    fn wrong_axes_and_dtypes_are_refused() {
        let x = Tensor::from([[1.0f32, 2.0]]);
        assert!(x.mean_axes(2, false).is_err() && x.mean_axes([0, -2], false).is_err());
        let message = Tensor::from([1, 2]).mean().unwrap_err().to_string();
        assert!(message.contains("i32") && message.contains("cast"), "{message}");
    }
}
