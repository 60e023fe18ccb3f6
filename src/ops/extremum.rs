//! The larger and the smaller of two, and clipping.

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernels::math::Math;
use crate::tensor::Tensor;

use super::apply;
use super::arithmetic::{Number, for_number, same_dtype, zip};
use super::function::{Function, Of};
use super::op::{Binary, Input, Mask, NarrowBinary, Saved, Saves};
use super::operand::Operand;
use super::registry::{Listed, Sample, SampleInput};
use super::select::{kept_unless, kept_where};

/// Numbers of which one is the larger; NaN wins against every number.
pub(crate) trait Ordered: Number {
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
}

macro_rules! ordered {
    ($($t:ty)*) => {$(
        impl Ordered for $t {
            // A value that is unequal to itself is NaN; for integers that never holds.
            #[inline(always)]
            #[allow(clippy::eq_op, reason = "the one test for NaN that all these types have")]
            fn larger(self, other: Self) -> Self { if self >= other || self != self { self } else { other } }
            #[inline(always)]
            #[allow(clippy::eq_op, reason = "the one test for NaN that all these types have")]
            fn smaller(self, other: Self) -> Self { if self <= other || self != self { self } else { other } }
        }
    )*};
}

ordered!(f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64);

/// `y = max(a, b)`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Maximum;

impl Binary for Maximum {
    const NAME: &'static str = "maximum";

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        for_number!("maximum", same_dtype("maximum", &a, &b)?, [a, b], T => zip::<T>("maximum", a, b, T::larger))
    }

    /// `dy` goes to `a` where `a >= b`, else to `b`.
    fn gradient(&self, saved: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        shared_out(&saved.input(0)?.greater_equal(saved.input(1)?)?, dy, needs)
    }
}

impl Listed for Maximum {
    fn samples() -> Vec<Sample> {
        pairs(|| Maximum)
    }
}

/// `y = min(a, b)`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Minimum;

impl Binary for Minimum {
    const NAME: &'static str = "minimum";

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        for_number!("minimum", same_dtype("minimum", &a, &b)?, [a, b], T => zip::<T>("minimum", a, b, T::smaller))
    }

    /// `dy` goes to `a` where `a <= b`, else to `b`.
    fn gradient(&self, saved: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        shared_out(&saved.input(0)?.less_equal(saved.input(1)?)?, dy, needs)
    }
}

impl Listed for Minimum {
    fn samples() -> Vec<Sample> {
        pairs(|| Minimum)
    }
}

/// `dy` where `first` holds and `dy` where it does not.
fn shared_out(first: &Tensor, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
    let da = if needs.has(0) { Some(kept_where(first, dy)?) } else { None };
    let db = if needs.has(1) { Some(kept_unless(first, dy)?) } else { None };
    Ok([da, db])
}

fn pairs<O: Binary>(op: impl Fn() -> O) -> Vec<Sample> {
    let sample = |a: &[usize], b: &[usize]| {
        Sample::new::<NarrowBinary, O>(op(), [SampleInput::float(a), SampleInput::float(b)])
    };
    vec![sample(&[2, 3], &[2, 3]), sample(&[2, 1, 3], &[4, 1])]
}

/// `y = min(max(x, low), high)`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct ClipByValue {
    low: f64,
    high: f64,
}

impl Function for ClipByValue {
    const NAME: &'static str = "clip_by_value";
    const SLOPE_NAME: &'static str = "clip_by_value_slope";
    const SLOPE_OF: Of = Of::Input;

    fn samples() -> Vec<Self> {
        vec![ClipByValue { low: -0.5, high: 1.0 }]
    }

    #[inline(always)]
    fn value<R: Math>(&self, x: R) -> R {
        let (low, high) = (R::from_f64(self.low), R::from_f64(self.high));
        if x < low {
            low
        } else if x > high {
            high
        } else {
            x
        }
    }

    /// 1 from limit to limit, both included, else 0.
    #[inline(always)]
    fn slope<R: Math>(&self, x: R) -> R {
        if x >= R::from_f64(self.low) && x <= R::from_f64(self.high) {
            R::from_f64(1.0)
        } else {
            R::from_f64(0.0)
        }
    }

    fn curvature(&self, _: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }
}

impl Tensor {
    /// The larger of each pair of elements, broadcast; NaN where either is NaN.
    ///
    /// Where both are equal, the whole gradient goes to `self`.
    ///
    /// # Errors
    /// The dtypes differ or are bool, or the shapes do not broadcast.
    pub fn maximum<'a>(&'a self, other: impl Operand<'a>) -> Result<Tensor> {
        apply(Maximum, [Input::Ref(self), other.into_input(self)?])
    }

    /// The smaller of each pair of elements, broadcast; NaN where either is NaN.
    ///
    /// Where both are equal, the whole gradient goes to `self`.
    ///
    /// # Errors
    /// The dtypes differ or are bool, or the shapes do not broadcast.
    pub fn minimum<'a>(&'a self, other: impl Operand<'a>) -> Result<Tensor> {
        apply(Minimum, [Input::Ref(self), other.into_input(self)?])
    }

    /// Each element moved into `low..=high`; NaN stays NaN. The gradient passes where nothing was moved.
    ///
    /// # Errors
    /// The dtype is not a float type, a limit is NaN, or `low` is above `high`.
    pub fn clip_by_value(&self, low: f64, high: f64) -> Result<Tensor> {
        if low.is_nan() || high.is_nan() || low > high {
            let got = format!("{low} to {high}");
            return Err(Error::argument("clip_by_value", "limits", got, "low at most high"));
        }
        apply(ClipByValue { low, high }, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_wins_on_either_side() -> Result<()> {
        let (a, b) = (Tensor::from([f32::NAN, 1.0, 2.0]), Tensor::from([1.0f32, f32::NAN, 3.0]));
        for y in [a.maximum(&b)?, b.maximum(&a)?, a.minimum(&b)?, b.minimum(&a)?] {
            let y = y.to_vec::<f32>()?;
            assert!(y[0].is_nan() && y[1].is_nan() && !y[2].is_nan());
        }
        Ok(())
    }

    #[test]
    fn integers_and_numbers_are_compared_too() -> Result<()> {
        let x = Tensor::from([-3i8, 5]);
        assert_eq!(x.maximum(0)?.to_vec::<i8>()?, [0, 5]);
        assert_eq!(x.minimum(0)?.to_vec::<i8>()?, [-3, 0]);
        assert!(Tensor::from([true]).maximum(Tensor::from([true])).is_err());
        Ok(())
    }

    #[test]
    fn limits_the_wrong_way_round_are_refused() {
        let x = Tensor::from([1.0f32]);
        assert!(x.clip_by_value(1.0, 0.0).is_err() && x.clip_by_value(f64::NAN, 0.0).is_err());
        let y =
            Tensor::from([f32::NAN, -1e9, 1e9]).clip_by_value(-1.0, 2.0).unwrap().to_vec::<f32>().unwrap();
        assert!(y[0].is_nan() && y[1..] == [-1.0, 2.0]);
    }
}
