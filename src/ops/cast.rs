//! Conversion between dtypes, and cutting the gradient.

use half::bf16;
use serde::{Deserialize, Serialize};

use crate::dtype::{DType, Element, for_dtype};
use crate::error::Result;
use crate::tensor::{Tensor, take};

use super::apply;
use super::gradient::Gradient;
use super::op::{Computed, Inputs, Mask, Op, Saved};
use super::registry::{Listed, Sample, SampleInput};

/// `y = x` in another dtype.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cast {
    from: DType,
    to: DType,
}

impl Op for Cast {
    fn name(&self) -> &'static str {
        "cast"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        Ok(inputs.get(0)?.converted(self.to)?.into())
    }

    /// `dx` is `dy` in the dtype of `x`; nothing flows through an integer or bool.
    fn gradient(&self, _: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        match dy.first() {
            Some(Some(dy)) if self.from.is_float() && self.to.is_float() => {
                Ok(vec![Some(Gradient::Dense(dy.cast(self.from)?))])
            }
            _ => Ok(vec![None]),
        }
    }
}

impl Listed for Cast {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(Cast { from: DType::F64, to: DType::F64 }, [SampleInput::float(&[2, 3])])]
    }
}

/// Instantiated for every pair of dtypes, hence no more than a loop.
fn convert<T: Element, U: Element>(x: &[T], y: &mut [U], whole: bool) {
    let pairs = y.iter_mut().zip(x);
    if whole {
        pairs.for_each(|(y, x)| *y = U::from_i64(x.to_i64()));
    } else {
        pairs.for_each(|(y, x)| *y = U::from_f64(x.to_f64()));
    }
}

/// A number that rounds to the same as `magnitude` in every float type shorter than `f64`, whose digits may be too few for
/// it: what is cut off is left as one bit, so that no tie is seen where there is none.
fn uncut(magnitude: u64) -> f64 {
    const CUT: u64 = (1 << 11) - 1;
    if magnitude < 1 << 53 {
        return magnitude as f64;
    }
    ((magnitude & !CUT) | (u64::from(magnitude & CUT != 0) << 11)) as f64
}

/// Integers of 64 bits as a float shorter than `f64`, rounded once.
fn shorten<T: Element, U: Element>(x: &Tensor, number: impl Fn(T) -> f64) -> Result<Tensor> {
    let mut y = take::<U>(x.size());
    let x_list = x.as_slice::<T>()?.unwrap_or(&[]);
    y.iter_mut().zip(x_list).for_each(|(y, &x)| *y = U::from_f64(number(x)));
    Ok(Tensor::from_taken(y, x.shape().clone()))
}

impl Tensor {
    /// The elements of an `i64` tensor cut to the lower bits of a shorter integer dtype; not recorded.
    pub(crate) fn wrapped(&self, to: DType) -> Result<Tensor> {
        let x = self.to_contiguous();
        let x = x.as_slice::<i64>()?.unwrap_or(&[]);
        macro_rules! cut {
            ($t:ty) => {{
                let mut y = take::<$t>(x.len());
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = x as $t);
                Ok(Tensor::from_taken(y, self.shape().clone()))
            }};
        }
        match to {
            DType::I8 => cut!(i8),
            DType::I16 => cut!(i16),
            DType::U8 => cut!(u8),
            DType::U16 => cut!(u16),
            DType::U32 => cut!(u32),
            to => self.converted(to),
        }
    }

    /// The elements in another dtype; not recorded.
    pub(crate) fn converted(&self, to: DType) -> Result<Tensor> {
        if self.dtype() == to {
            return Ok(self.clone());
        }
        let whole = !self.dtype().is_float() && !to.is_float();
        let x = self.to_contiguous();
        let signed = |x: i64| uncut(x.unsigned_abs()).copysign(x as f64);
        match (self.dtype(), to) {
            (DType::I64, DType::F32) => return shorten::<i64, f32>(&x, signed),
            (DType::I64, DType::BF16) => return shorten::<i64, bf16>(&x, signed),
            (DType::U64, DType::F32) => return shorten::<u64, f32>(&x, uncut),
            (DType::U64, DType::BF16) => return shorten::<u64, bf16>(&x, uncut),
            _ => {}
        }
        for_dtype!(self.dtype(), T => for_dtype!(to, U => {
            let mut y = take::<U>(x.size());
            convert::<T, U>(x.as_slice::<T>()?.unwrap_or(&[]), &mut y, whole);
            Ok(Tensor::from_taken(y, x.shape().clone()))
        }))
    }

    /// The elements in another dtype.
    ///
    /// Floats round to nearest even, and so do integers that a float has no digits for; a float becomes an integer by dropping its fraction, values outside the
    /// range become the nearest bound and NaN becomes 0; integers that do not fit become the nearest bound; bool
    /// is 0 or 1, and anything but 0 becomes true.
    ///
    /// # Errors
    /// None today; the result is for symmetry with the other ops.
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        apply(Cast { from: self.dtype(), to: dtype }, [self])
    }

    /// The same value, through which no gradient flows.
    pub fn stop_gradient(&self) -> Tensor {
        self.fresh()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_saturate_truncate_and_map_nan_to_zero() -> Result<()> {
        let x = Tensor::from([1.9f64, -1.9, 300.0, f64::NAN, f64::NEG_INFINITY]);
        assert_eq!(x.cast(DType::U8)?.to_vec::<u8>()?, [1, 0, 255, 0, 0]);
        assert_eq!(x.cast(DType::I8)?.to_vec::<i8>()?, [1, -1, 127, 0, -128]);
        assert_eq!(x.cast(DType::Bool)?.to_vec::<bool>()?, [true; 5]);
        let big = Tensor::from([i64::MAX, i64::MIN]);
        assert_eq!(big.cast(DType::U64)?.to_vec::<u64>()?, [i64::MAX as u64, 0]);
        assert_eq!(big.cast(DType::I32)?.to_vec::<i32>()?, [i32::MAX, i32::MIN]);
        Ok(())
    }

    #[test]
    fn long_integers_are_rounded_once() -> Result<()> {
        // 2^62 + 2^38 lies halfway between two neighbours of f32, 2^62 + 2^54 between two of bf16; one more, which f64 has no
        // digit for, decides.
        let (f32_tie, bf16_tie) = ((1i64 << 62) + (1 << 38), (1i64 << 62) + (1 << 54));
        let x = Tensor::from([f32_tie, f32_tie + 1, -f32_tie - 1]);
        let up = 2f32.powi(62) + 2f32.powi(39);
        assert_eq!(x.cast(DType::F32)?.to_vec::<f32>()?, [2f32.powi(62), up, -up]);
        let x = Tensor::from([bf16_tie as u64, bf16_tie as u64 + 1]);
        let up = 2f32.powi(62) + 2f32.powi(55);
        assert_eq!(x.cast(DType::BF16)?.cast(DType::F32)?.to_vec::<f32>()?, [2f32.powi(62), up]);
        assert_eq!(Tensor::from([u64::MAX]).cast(DType::F32)?.to_vec::<f32>()?, [2f32.powi(64)]);
        Ok(())
    }
}
