//! Rounding to whole numbers, and tests of what a float is.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::tensor::Tensor;

use super::apply;
use super::arithmetic::map;
use super::function::{Float, for_float};
use super::op::{Saved, Saves, Unary};
use super::registry::{Listed, Sample, SampleInput};

/// `y` is the largest whole number that is at most `x`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Floor;

impl Unary for Floor {
    const NAME: &'static str = "floor";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        for_float!("floor", x.dtype(), T => map::<T>(x, |x| T::narrow(x.widen().floor())))
    }

    /// `dx = 0`.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        Tensor::zeros(dy.shape().clone(), dy.dtype())
    }
}

impl Listed for Floor {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Floor, [SampleInput::float(&[2, 3])])]
    }
}

/// `y` is the smallest whole number that is at least `x`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ceil;

impl Unary for Ceil {
    const NAME: &'static str = "ceil";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        for_float!("ceil", x.dtype(), T => map::<T>(x, |x| T::narrow(x.widen().ceil())))
    }

    /// `dx = 0`.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        Tensor::zeros(dy.shape().clone(), dy.dtype())
    }
}

impl Listed for Ceil {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Ceil, [SampleInput::float(&[2, 3])])]
    }
}

/// `y` is the whole number nearest to `x`, the even one of two.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Round;

impl Unary for Round {
    const NAME: &'static str = "round";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        for_float!("round", x.dtype(), T => map::<T>(x, |x| T::narrow(x.widen().round_ties_even())))
    }

    /// `dx = 0`.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        Tensor::zeros(dy.shape().clone(), dy.dtype())
    }
}

impl Listed for Round {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Round, [SampleInput::float(&[2, 3])])]
    }
}

/// Refuses what is not a float.
fn check_float(op: &'static str, x: &Tensor) -> Result<()> {
    if x.dtype().is_float() {
        return Ok(());
    }
    Err(Error::dtype(op, "the input", x.dtype(), "a float dtype; convert it with cast"))
}

impl Tensor {
    /// The largest whole number that is at most the element. Its gradient is 0.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn floor(&self) -> Result<Tensor> {
        apply(Floor, [self])
    }

    /// The smallest whole number that is at least the element. Its gradient is 0.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn ceil(&self) -> Result<Tensor> {
        apply(Ceil, [self])
    }

    /// The whole number nearest to the element; a half goes to the even one, so 0.5 to 0 and 1.5 to 2. Its gradient is 0.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn round(&self) -> Result<Tensor> {
        apply(Round, [self])
    }

    /// Whether each element is NaN, as bool.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn is_nan(&self) -> Result<Tensor> {
        check_float("is_nan", self)?;
        self.not_equal(self)
    }

    /// Whether each element is infinite, as bool.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn is_inf(&self) -> Result<Tensor> {
        check_float("is_inf", self)?;
        self.abs()?.equal(f64::INFINITY)
    }

    /// Whether each element is neither infinite nor NaN, as bool.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn is_finite(&self) -> Result<Tensor> {
        check_float("is_finite", self)?;
        self.abs()?.less(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn halves_go_to_the_even_neighbour() -> Result<()> {
        let x = Tensor::from([-2.5f64, -1.5, -0.5, 0.5, 1.5, 2.5]);
        assert_eq!(x.round()?.to_vec::<f64>()?, [-2.0, -2.0, 0.0, 0.0, 2.0, 2.0]);
        assert_eq!(x.floor()?.to_vec::<f64>()?, [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0]);
        assert_eq!(x.ceil()?.to_vec::<f64>()?, [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0]);
        Ok(())
    }

    #[test]
    fn every_float_is_finite_infinite_or_nan() -> Result<()> {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            let x = Tensor::from([1.0f64, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]).cast(dtype)?;
            assert_eq!(x.is_finite()?.to_vec::<bool>()?, [true, false, false, false]);
            assert_eq!(x.is_inf()?.to_vec::<bool>()?, [false, true, true, false]);
            assert_eq!(x.is_nan()?.to_vec::<bool>()?, [false, false, false, true]);
        }
        assert!(Tensor::from([1]).is_finite().unwrap_err().to_string().starts_with("is_finite"));
        Ok(())
    }
}
