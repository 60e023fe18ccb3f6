//! Absolute value and sign.

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

use crate::dtype::Element;
use crate::error::Result;
use crate::tensor::Tensor;

use super::apply;
use super::arithmetic::{Number, for_number, map};
use super::op::{Saved, Saves, Unary};
use super::registry::{Listed, Sample, SampleInput};

/// Numbers with a sign, or without one.
trait Signed: Number {
    /// The absolute value; that of the lowest integer wraps around to itself.
    fn magnitude(self) -> Self;
    /// -1, 0 or 1; a NaN stays.
    fn sign(self) -> Self;
}

macro_rules! signed {
    (float $($t:ty)*) => {$(
        impl Signed for $t {
            #[inline(always)]
            fn magnitude(self) -> Self { num_traits::Float::abs(self) }
            #[inline(always)]
            fn sign(self) -> Self {
                let zero = Self::default();
                match self.partial_cmp(&zero) {
                    Some(std::cmp::Ordering::Less) => Self::from_f64(-1.0),
                    Some(std::cmp::Ordering::Equal) => zero,
                    Some(std::cmp::Ordering::Greater) => Self::from_f64(1.0),
                    None => self,
                }
            }
        }
    )*};
    (int $($t:ty)*) => {$(
        impl Signed for $t {
            #[inline(always)]
            fn magnitude(self) -> Self { self.wrapping_abs() }
            #[inline(always)]
            fn sign(self) -> Self { self.signum() }
        }
    )*};
    (unsigned $($t:ty)*) => {$(
        impl Signed for $t {
            #[inline(always)]
            fn magnitude(self) -> Self { self }
            #[inline(always)]
            fn sign(self) -> Self { self.min(1) }
        }
    )*};
}

signed!(float f32 f64 f16 bf16);
signed!(int i8 i16 i32 i64);
signed!(unsigned u8 u16 u32 u64);

/// `y = |x|`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Abs;

impl Unary for Abs {
    const NAME: &'static str = "abs";
    const SAVES: Saves = Saves::INPUTS;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        for_number!("abs", x.dtype(), [x], T => map::<T>(x, T::magnitude))
    }

    /// `dx = dy sign(x)`, which is 0 at 0.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        dy * saved.input(0)?.sign()?
    }
}

impl Listed for Abs {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Abs, [SampleInput::float(&[2, 3])])]
    }
}

/// `y` is -1, 0 or 1 as `x` is below, at or above 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Sign;

impl Unary for Sign {
    const NAME: &'static str = "sign";
    const SAVES: Saves = Saves::NOTHING;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        for_number!("sign", x.dtype(), [x], T => map::<T>(x, T::sign))
    }

    /// `dx = 0`.
    fn gradient(&self, _: &Saved, dy: &Tensor) -> Result<Tensor> {
        Tensor::zeros(dy.shape().clone(), dy.dtype())
    }
}

impl Listed for Sign {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Sign, [SampleInput::float(&[2, 3])])]
    }
}

impl Tensor {
    /// Absolute value of each element; its slope at 0 is taken as 0.
    ///
    /// # Errors
    /// The dtype is bool.
    pub fn abs(&self) -> Result<Tensor> {
        apply(Abs, [self])
    }

    /// -1, 0 or 1 for each element below, at or above 0; NaN stays NaN. Its gradient is 0.
    ///
    /// # Errors
    /// The dtype is bool.
    pub fn sign(&self) -> Result<Tensor> {
        apply(Sign, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_number_has_a_sign() -> Result<()> {
        let x = Tensor::from([-2.0f32, -0.0, 3.0, f32::NAN, f32::NEG_INFINITY]);
        let y = x.sign()?.to_vec::<f32>()?;
        assert_eq!([y[0], y[1], y[2], y[4]], [-1.0, 0.0, 1.0, -1.0]);
        assert!(y[3].is_nan());
        assert_eq!(Tensor::from([i8::MIN, -3, 0]).abs()?.to_vec::<i8>()?, [i8::MIN, 3, 0]);
        assert_eq!(Tensor::from([0u8, 200]).sign()?.to_vec::<u8>()?, [0, 1]);
        assert!(Tensor::from([true]).abs().is_err());
        Ok(())
    }
}
