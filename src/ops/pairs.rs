//! Functions of two numbers: powers, squared differences, angles and remainders.

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::tensor::Tensor;

use super::apply;
use super::arithmetic::{Number, for_number, same_dtype, zip};
use super::function::{Float, for_float};
use super::op::{Binary, Input, Mask, NarrowBinary, Saved, Saves};
use super::operand::Operand;
use super::registry::{Listed, Sample, SampleInput};
use super::select::kept_where;

/// Samples of three broadcasts, with both inputs in a range.
fn samples<O: Binary>(op: impl Fn() -> O, a: (f64, f64), b: (f64, f64)) -> Vec<Sample> {
    let sample = |(left, right): (&[usize], &[usize])| {
        let inputs = [SampleInput::within(left, a.0, a.1), SampleInput::within(right, b.0, b.1)];
        Sample::new::<NarrowBinary, O>(op(), inputs)
    };
    let shapes: [(&[usize], &[usize]); 3] = [(&[2, 3], &[2, 3]), (&[2, 1, 3], &[4, 1]), (&[2, 3], &[])];
    shapes.into_iter().map(sample).collect()
}

/// `y = a^b`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pow;

impl Binary for Pow {
    const NAME: &'static str = "pow";

    fn saves(&self, tracked: Mask) -> Saves {
        if tracked.has(1) { Saves::INPUTS_AND_OUTPUT } else { Saves::INPUTS }
    }

    fn forward(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        for_float!("pow", same_dtype("pow", &a, &b)?, T => {
            zip::<T>("pow", a, b, |a, b| T::narrow(a.widen().powf(b.widen())))
        })
    }

    /// `da = dy b a^(b - 1)`, `db = dy y ln a`, with 0 for the logarithm where `a` is not above 0.
    fn gradient(&self, saved: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        let (a, b) = (saved.input(0)?, saved.input(1)?);
        let da = if needs.has(0) { Some(((dy * b)? * a.pow((b - 1.0)?)?)?) } else { None };
        let db = if needs.has(1) {
            let positive = a.greater(0.0)?;
            let log = kept_where(&positive, &positive.where_else(a, 1.0)?.log()?)?;
            Some(((dy * saved.output()?)? * log)?)
        } else {
            None
        };
        Ok([da, db])
    }
}

impl Listed for Pow {
    fn samples() -> Vec<Sample> {
        samples(|| Pow, (0.5, 2.0), (-2.0, 3.0))
    }
}

/// `y = (a - b)^2`; integers wrap around.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SquaredDifference;

impl Binary for SquaredDifference {
    const NAME: &'static str = "squared_difference";

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        let op = "squared_difference";
        for_number!(op, same_dtype(op, &a, &b)?, [a, b], T => zip::<T>(op, a, b, |a, b| {
            let d = a.minus(b);
            d.times(d)
        }))
    }

    /// `da = 2 dy (a - b)`, `db = -da`.
    fn gradient(&self, saved: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        let da = (((saved.input(0)? - saved.input(1)?)? * 2.0)? * dy)?;
        let db = if needs.has(1) { Some((-&da)?) } else { None };
        Ok([needs.has(0).then_some(da), db])
    }
}

impl Listed for SquaredDifference {
    fn samples() -> Vec<Sample> {
        samples(|| SquaredDifference, (-2.0, 2.0), (-2.0, 2.0))
    }
}

/// `y` is the angle of the point `(b, a)`, in radians from the first axis.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Atan2;

impl Binary for Atan2 {
    const NAME: &'static str = "atan2";

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        for_float!("atan2", same_dtype("atan2", &a, &b)?, T => {
            zip::<T>("atan2", a, b, |a, b| T::narrow(a.widen().atan2(b.widen())))
        })
    }

    /// `da = dy b / (a^2 + b^2)`, `db = -dy a / (a^2 + b^2)`.
    fn gradient(&self, saved: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        let (a, b) = (saved.input(0)?, saved.input(1)?);
        let part = (dy / (a.square()? + b.square()?)?)?;
        let da = if needs.has(0) { Some((&part * b)?) } else { None };
        let db = if needs.has(1) { Some((-(part * a)?)?) } else { None };
        Ok([da, db])
    }
}

impl Listed for Atan2 {
    fn samples() -> Vec<Sample> {
        samples(|| Atan2, (0.5, 2.0), (-2.0, 2.0))
    }
}

/// Remainders with the sign of the divisor.
trait Modulo: Number {
    /// `self - n floor(self / n)`; 0 for integers where `n` is 0.
    fn modulo(self, n: Self) -> Self;
}

macro_rules! modulo {
    (float $($t:ty)*) => {$(
        impl Modulo for $t {
            #[inline(always)]
            fn modulo(self, n: Self) -> Self {
                let (x, n) = (self.widen(), n.widen());
                let rest = x % n;
                // The remainder of the processor has the sign of `x`.
                Self::narrow(if rest != 0.0 && (rest < 0.0) != (n < 0.0) { rest + n } else { rest })
            }
        }
    )*};
    (int $($t:ty)*) => {$(
        impl Modulo for $t {
            #[inline(always)]
            #[allow(unused_comparisons, reason = "the same lines serve integers without a sign")]
            fn modulo(self, n: Self) -> Self {
                if n == 0 {
                    return 0;
                }
                let rest = self.wrapping_rem(n);
                if rest != 0 && (rest < 0) != (n < 0) { rest + n } else { rest }
            }
        }
    )*};
}

modulo!(float f32 f64 f16 bf16);
modulo!(int i8 i16 i32 i64 u8 u16 u32 u64);

/// `y = a - b floor(a / b)`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FloorMod;

impl Binary for FloorMod {
    const NAME: &'static str = "floormod";

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        for_number!("floormod", same_dtype("floormod", &a, &b)?, T => zip::<T>("floormod", a, b, T::modulo))
    }

    /// `da = dy`, `db = -dy floor(a / b)`.
    fn gradient(&self, saved: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        let db = if needs.has(1) {
            let whole = (saved.input(0)? / saved.input(1)?)?.floor()?;
            Some((-(dy * whole)?)?)
        } else {
            None
        };
        Ok([needs.has(0).then(|| dy.clone()), db])
    }
}

impl Listed for FloorMod {
    fn samples() -> Vec<Sample> {
        samples(|| FloorMod, (-2.0, 2.0), (0.3, 0.9))
    }
}

impl Tensor {
    /// Each element to the power of that of `exponent`, broadcast: NaN for a fractional power of a negative number,
    /// 1 for the power 0 of anything.
    ///
    /// # Errors
    /// The dtypes differ or are not a float type, or the shapes do not broadcast.
    pub fn pow<'a>(&'a self, exponent: impl Operand<'a>) -> Result<Tensor> {
        apply(Pow, [Input::Ref(self), exponent.into_input(self)?])
    }

    /// `(a - b)^2` of each pair of elements, broadcast; integers wrap around.
    ///
    /// # Errors
    /// The dtypes differ or are bool, or the shapes do not broadcast.
    pub fn squared_difference<'a>(&'a self, other: impl Operand<'a>) -> Result<Tensor> {
        apply(SquaredDifference, [Input::Ref(self), other.into_input(self)?])
    }

    /// Angle in radians, from -pi to pi, of the point whose second coordinate is the element and whose first is that
    /// of `x`, broadcast.
    ///
    /// # Errors
    /// The dtypes differ or are not a float type, or the shapes do not broadcast.
    pub fn atan2<'a>(&'a self, x: impl Operand<'a>) -> Result<Tensor> {
        apply(Atan2, [Input::Ref(self), x.into_input(self)?])
    }

    /// `a - b floor(a / b)` of each pair of elements, broadcast: the remainder with the sign of `b`. Integers give 0
    /// where `b` is 0, floats NaN.
    ///
    /// # Errors
    /// The dtypes differ or are bool, or the shapes do not broadcast.
    pub fn floormod<'a>(&'a self, other: impl Operand<'a>) -> Result<Tensor> {
        apply(FloorMod, [Input::Ref(self), other.into_input(self)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GradientTape;

    #[test]
    fn powers_of_zero_and_of_negative_numbers_follow_ieee() -> Result<()> {
        let (a, b) =
            (Tensor::from([0.0f64, 0.0, -8.0, -2.0, 0.0]), Tensor::from([0.0f64, 2.0, 1.0 / 3.0, 2.0, -1.0]));
        let y = a.pow(&b)?.to_vec::<f64>()?;
        assert!(y[2].is_nan());
        assert_eq!([y[0], y[1], y[3], y[4]], [1.0, 0.0, 4.0, f64::INFINITY]);
        assert!(Tensor::from([2]).pow(2).is_err());
        Ok(())
    }

    #[test]
    fn a_square_has_its_slopes_at_zero() -> Result<()> {
        let x = Tensor::from([0.0f64, -3.0]);
        let (outer, inner) = (GradientTape::new(), GradientTape::new());
        outer.watch(&x);
        inner.watch(&x);
        let dx = inner.gradient(&x.pow(2.0)?.sum()?, &[&x])?.remove(0).unwrap().to_dense()?;
        assert_eq!(dx.to_vec::<f64>()?, [0.0, -6.0]);
        let ddx = outer.gradient(&dx.sum()?, &[&x])?.remove(0).unwrap().to_dense()?;
        assert_eq!(ddx.to_vec::<f64>()?, [2.0, 2.0]);
        Ok(())
    }

    #[test]
    fn remainders_take_the_sign_of_the_divisor() -> Result<()> {
        let (a, b) = ([-7, 7, -7, 7, 6, i32::MIN, 5], [3, -3, -3, 3, -3, -1, 0]);
        let y = Tensor::from(a).floormod(Tensor::from(b))?;
        assert_eq!(y.to_vec::<i32>()?, [2, -2, -1, 1, 0, 0, 0]);
        let (a, b) = (Tensor::from([-7.5f32, 7.5, -0.5, 1.0]), Tensor::from([2.0f32, -2.0, 1e9, 0.0]));
        let y = a.floormod(&b)?.to_vec::<f32>()?;
        assert!(y[..3] == [0.5, -0.5, 1e9] && y[3].is_nan());
        assert_eq!(Tensor::from([200u8]).floormod(7)?.to_vec::<u8>()?, [4]);
        Ok(())
    }

    #[test]
    fn angles_reach_all_quadrants() -> Result<()> {
        use std::f64::consts::PI;
        let y = Tensor::from([1.0f64, 1.0, -1.0, 0.0]).atan2(Tensor::from([1.0f64, -1.0, -1.0, -1.0]))?;
        assert_eq!(y.to_vec::<f64>()?, [PI / 4.0, 3.0 * PI / 4.0, -3.0 * PI / 4.0, PI]);
        Ok(())
    }
}
