//! Inverse hyperbolic functions.

use std::f64::consts::LN_2;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernels::math::Math;
use crate::tensor::Tensor;

use super::apply;
use super::function::{Function, Of};

/// From here on `x^2 + 1` and `x^2 - 1` are `x^2` to the last digit, and the square is not needed.
const LARGE: f64 = (1u64 << 28) as f64;

/// `y = arsinh(x)`, that is `log(x + sqrt(x^2 + 1))`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Asinh;

impl Function for Asinh {
    const NAME: &'static str = "asinh";
    const SLOPE_NAME: &'static str = "asinh_slope";
    const SLOPE_OF: Of = Of::Input;

    /// `log(1 + a + a^2 / (1 + sqrt(a^2 + 1)))` for `a = |x|`, which keeps the digits of small numbers.
    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        let (a, one) = (x.abs(), R::one());
        let near = (a + a * a / (one + (a * a + one).sqrt())).log1p_();
        let far = a.log_() + R::from_f64(LN_2);
        (if a > R::from_f64(LARGE) { far } else { near }).copysign(x)
    }

    /// `1 / sqrt(x^2 + 1)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        let a = x.abs();
        (if a > R::from_f64(LARGE) { a } else { (a * a + R::one()).sqrt() }).recip()
    }

    /// `-x / (x^2 + 1)^(3/2)`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let slope = (x.square()? + 1.0)?.rsqrt()?;
        ((-(x * &slope)?)? * slope.square()?).map(Some)
    }
}

/// `y = arcosh(x)`, that is `log(x + sqrt(x^2 - 1))`, 0 or more.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Acosh;

impl Function for Acosh {
    const NAME: &'static str = "acosh";
    const SLOPE_NAME: &'static str = "acosh_slope";
    const SLOPE_OF: Of = Of::Input;
    const RANGE: (f64, f64) = (1.2, 3.0);

    /// `log(1 + t + sqrt(t (t + 2)))` for `t = x - 1`, which keeps the digits of numbers near 1.
    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        let t = x - R::one();
        let near = (t + (t * (t + R::from_f64(2.0))).sqrt()).log1p_();
        let far = x.log_() + R::from_f64(LN_2);
        let y = if x > R::from_f64(LARGE) { far } else { near };
        if x < R::one() { R::nan() } else { y }
    }

    /// `1 / sqrt(x^2 - 1)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        ((x - R::one()).sqrt() * (x + R::one()).sqrt()).recip()
    }

    /// `-x / (x^2 - 1)^(3/2)`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let slope = ((x - 1.0)? * (x + 1.0)?)?.rsqrt()?;
        ((-(x * &slope)?)? * slope.square()?).map(Some)
    }
}

/// `y = artanh(x)`, that is `log((1 + x) / (1 - x)) / 2`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Atanh;

impl Function for Atanh {
    const NAME: &'static str = "atanh";
    const SLOPE_NAME: &'static str = "atanh_slope";
    const SLOPE_OF: Of = Of::Input;
    const RANGE: (f64, f64) = (-0.8, 0.8);

    /// `log(1 + 2 a / (1 - a)) / 2` for `a = |x|`.
    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        let a = x.abs();
        let y = ((a + a) / (R::one() - a)).log1p_() * R::from_f64(0.5);
        y.copysign(x)
    }

    /// `1 / (1 - x^2)`.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        ((R::one() - x) * (R::one() + x)).recip()
    }

    /// `2 x / (1 - x^2)^2`.
    fn curvature(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let slope = ((1.0 - x)? * (x + 1.0)?)?.reciprocal()?;
        ((x * 2.0)? * slope.square()?).map(Some)
    }
}

impl Tensor {
    /// Inverse hyperbolic sine of each element.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn asinh(&self) -> Result<Tensor> {
        apply(Asinh, [self])
    }

    /// Inverse hyperbolic cosine of each element, 0 or more; NaN below 1.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn acosh(&self) -> Result<Tensor> {
        apply(Acosh, [self])
    }

    /// Inverse hyperbolic tangent of each element; infinite at -1 and 1, NaN beyond.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn atanh(&self) -> Result<Tensor> {
        apply(Atanh, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: &Tensor, want: &[f64]) {
        for (got, want) in got.to_vec::<f64>().unwrap().iter().zip(want) {
            assert!((got - want).abs() <= 4e-16 * want.abs(), "{got} is not {want}");
        }
    }

    #[test]
    fn small_and_large_inputs_keep_their_digits() -> Result<()> {
        // For small x, arsinh(x) = artanh(x) = x and arcosh(1 + x) = sqrt(2 x); for large x, arsinh(x) = log(2 x).
        let x = Tensor::from([1e-9f64, -1e-9]);
        close(&x.asinh()?, &[1e-9, -1e-9]);
        close(&x.atanh()?, &[1e-9, -1e-9]);
        let tiny = f64::powi(2.0, -40);
        close(&Tensor::from([1.0 + tiny]).acosh()?, &[(2.0 * tiny).sqrt() * (1.0 - tiny / 12.0)]);
        let far = 1e300f64.ln() + LN_2;
        close(&Tensor::from([-1e300f64]).asinh()?, &[-far]);
        close(&Tensor::from([1e300f64]).acosh()?, &[far]);
        // The largest number does not overflow on the way.
        let largest = Tensor::from([f32::MAX]);
        let want = (f64::from(f32::MAX).ln() + LN_2) as f32;
        assert_eq!(largest.asinh()?.to_vec::<f32>()?, [want]);
        assert_eq!(largest.acosh()?.to_vec::<f32>()?, [want]);
        Ok(())
    }

    #[test]
    fn inverses_undo_the_functions() -> Result<()> {
        let x = Tensor::linspace(0.25, 3.0, 12, crate::DType::F64)?;
        for back in [x.sinh()?.asinh()?, x.cosh()?.acosh()?, x.tanh()?.atanh()?] {
            for (back, x) in back.to_vec::<f64>()?.iter().zip(x.to_vec::<f64>()?) {
                assert!((back - x).abs() < 1e-13, "{back} and not {x}");
            }
        }
        Ok(())
    }

    #[test]
    fn the_ends_of_the_domains_are_those_of_ieee() -> Result<()> {
        let infinity = f32::INFINITY;
        let x = Tensor::from([-infinity, -1e20, -1.0, -0.0, 1.0, infinity]);
        let asinh = x.asinh()?.to_vec::<f32>()?;
        assert!(asinh[0] == -infinity && asinh[3].is_sign_negative() && asinh[5] == infinity);
        let acosh = x.acosh()?.to_vec::<f32>()?;
        assert!(acosh[..4].iter().all(|y| y.is_nan()) && acosh[4..] == [0.0, infinity]);
        let atanh = x.atanh()?.to_vec::<f32>()?;
        assert!(atanh[0].is_nan() && atanh[1].is_nan() && atanh[5].is_nan());
        assert!(atanh[2] == -infinity && atanh[3].is_sign_negative() && atanh[4] == infinity);
        Ok(())
    }
}
