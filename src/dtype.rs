//! Element types of tensors.

use std::fmt;

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// Element type of a tensor: thirteen of them.
///
/// Float arithmetic runs on the four float types (`f16` and `bf16` are computed in `f32` and rounded once);
/// integers and bools serve as labels, indices, masks and counters.
///
/// What integers do at the ends of their range is defined, and is the same in debug and release builds:
///
/// | what                                              | result                                                    |
/// |---------------------------------------------------|-----------------------------------------------------------|
/// | `+ - *`, minus, `abs`, sums, products, `matmul`   | wrap around: the lower bits of the exact result           |
/// | `a / b`                                           | rounds towards 0; `lowest / -1` wraps around to `lowest`  |
/// | `a / 0` and `a.floormod(0)`                       | 0                                                         |
/// | cast of an integer or float that does not fit     | the nearest number that does; NaN becomes 0               |
/// | cast of a float with a fraction                   | the fraction is dropped                                   |
/// | cast to bool, from bool                           | whether it is not 0; 0 or 1                               |
/// | a plain number beside a tensor, a filling value   | an error if the dtype cannot hold it                      |
/// | largest or smallest of no elements                | the lowest or highest number                              |
///
/// ```
/// use couplet::{DType, Tensor};
/// let x = Tensor::from([250u8, 7]);
/// assert_eq!((&x + 10)?.to_vec::<u8>()?, [4, 17]);
/// assert_eq!((&x / 0)?.to_vec::<u8>()?, [0, 0]);
/// assert_eq!(x.cast(DType::I8)?.to_vec::<i8>()?, [127, 7]);
/// assert!((&x + 300).is_err());
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant's name is its documentation")]
pub enum DType {
    F32,
    F64,
    F16,
    BF16,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Bool,
}

impl DType {
    /// All dtypes.
    pub const ALL: [DType; 13] = [
        DType::F32,
        DType::F64,
        DType::F16,
        DType::BF16,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::Bool,
    ];

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::F64 | DType::I64 | DType::U64 => 8,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 | DType::BF16 | DType::I16 | DType::U16 => 2,
            DType::I8 | DType::U8 | DType::Bool => 1,
        }
    }

    /// Whether this is `f32`, `f64`, `f16` or `bf16`.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64 | DType::F16 | DType::BF16)
    }

    /// Whether this is a signed or unsigned integer (bool is not).
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, DType::Bool)
    }

    /// Short name as printed in tables and messages: `f32`, `i64`, `bool`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::Bool => "bool",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A Rust type that tensors can hold.
///
/// Sealed: the thirteen types of [`DType`].
pub trait Element:
    Copy + Default + PartialEq + PartialOrd + fmt::Debug + fmt::Display + Send + Sync + 'static + sealed::Stored
{
    /// The dtype of this type.
    const DTYPE: DType;

    /// The value as `f64`; integers beyond 2^53 are rounded.
    fn to_f64(self) -> f64;

    /// From `f64`: floats round to nearest, integers truncate towards zero and saturate (NaN gives 0), bool is `v != 0`.
    fn from_f64(v: f64) -> Self;

    /// The value as `i64`, saturating; floats truncate towards zero and NaN gives 0.
    fn to_i64(self) -> i64;

    /// From `i64`, saturating; bool is `v != 0`.
    fn from_i64(v: i64) -> Self;
}

pub(crate) mod sealed {
    /// How a type's vector is kept in a buffer.
    pub trait Stored: Sized {
        fn wrap(data: Vec<Self>) -> crate::tensor::Storage;
        fn slice(storage: &crate::tensor::Storage) -> Option<&[Self]>;
        fn slice_mut(storage: &mut crate::tensor::Storage) -> Option<&mut [Self]>;
        fn unwrap(storage: crate::tensor::Storage) -> Option<Vec<Self>>;
    }
}

/// A number of `f32` that rounds to the same `f16` and `bf16` as `v` does: the nearest towards 0, with its last bit set where
/// something was cut off, so that no tie is seen where there is none. (`half` looks at the upper half of an `f64` alone.)
fn odd(v: f64) -> f32 {
    let nearest = v as f32;
    let back = f64::from(nearest);
    if back == v || v.is_nan() {
        return nearest;
    }
    let towards_zero = nearest.to_bits() - u32::from(back.abs() > v.abs());
    f32::from_bits(towards_zero | 1)
}

macro_rules! element {
    ($($t:ty, $variant:ident, $to_f64:expr, $from_f64:expr, $to_i64:expr, $from_i64:expr;)*) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$variant;
            fn to_f64(self) -> f64 { ($to_f64)(self) }
            fn from_f64(v: f64) -> Self { ($from_f64)(v) }
            fn to_i64(self) -> i64 { ($to_i64)(self) }
            fn from_i64(v: i64) -> Self { ($from_i64)(v) }
        }

        impl sealed::Stored for $t {
            fn wrap(data: Vec<Self>) -> crate::tensor::Storage { crate::tensor::Storage::$variant(data) }
            fn slice(storage: &crate::tensor::Storage) -> Option<&[Self]> {
                match storage { crate::tensor::Storage::$variant(v) => Some(v), _ => None }
            }
            fn slice_mut(storage: &mut crate::tensor::Storage) -> Option<&mut [Self]> {
                match storage { crate::tensor::Storage::$variant(v) => Some(v), _ => None }
            }
            fn unwrap(storage: crate::tensor::Storage) -> Option<Vec<Self>> {
                match storage { crate::tensor::Storage::$variant(v) => Some(v), _ => None }
            }
        }
    )*};
}

element! {
    f32, F32, |v| v as f64, |v| v as f32, |v| v as i64, |v| v as f32;
    f64, F64, |v| v, |v| v, |v| v as i64, |v| v as f64;
    f16, F16, |v: f16| v.to_f64(), |v| f16::from_f32(odd(v)), |v: f16| v.to_f32() as i64, |v| f16::from_f32(odd(v as f64));
    bf16, BF16, |v: bf16| v.to_f64(), |v| bf16::from_f32(odd(v)), |v: bf16| v.to_f32() as i64, |v| bf16::from_f32(odd(v as f64));
    i8, I8, |v| v as f64, |v| v as i8, |v| v as i64, |v: i64| v.clamp(i8::MIN as i64, i8::MAX as i64) as i8;
    i16, I16, |v| v as f64, |v| v as i16, |v| v as i64, |v: i64| v.clamp(i16::MIN as i64, i16::MAX as i64) as i16;
    i32, I32, |v| v as f64, |v| v as i32, |v| v as i64, |v: i64| v.clamp(i32::MIN as i64, i32::MAX as i64) as i32;
    i64, I64, |v| v as f64, |v| v as i64, |v| v, |v| v;
    u8, U8, |v| v as f64, |v| v as u8, |v| v as i64, |v: i64| v.clamp(0, u8::MAX as i64) as u8;
    u16, U16, |v| v as f64, |v| v as u16, |v| v as i64, |v: i64| v.clamp(0, u16::MAX as i64) as u16;
    u32, U32, |v| v as f64, |v| v as u32, |v| v as i64, |v: i64| v.clamp(0, u32::MAX as i64) as u32;
    u64, U64, |v| v as f64, |v| v as u64, |v: u64| v.min(i64::MAX as u64) as i64, |v: i64| v.max(0) as u64;
    bool, Bool, |v| v as u8 as f64, |v| v != 0.0, |v| v as i64, |v| v != 0;
}

/// Runs the body with `$T` bound to the Rust type of a dtype.
macro_rules! for_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::dtype::DType;
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::F16 => {
                type $T = half::f16;
                $body
            }
            DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            DType::I8 => {
                type $T = i8;
                $body
            }
            DType::I16 => {
                type $T = i16;
                $body
            }
            DType::I32 => {
                type $T = i32;
                $body
            }
            DType::I64 => {
                type $T = i64;
                $body
            }
            DType::U8 => {
                type $T = u8;
                $body
            }
            DType::U16 => {
                type $T = u16;
                $body
            }
            DType::U32 => {
                type $T = u32;
                $body
            }
            DType::U64 => {
                type $T = u64;
                $body
            }
            DType::Bool => {
                type $T = bool;
                $body
            }
        }
    }};
}
pub(crate) use for_dtype;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats_are_rounded_once() {
        // 1 + 2^-11 lies halfway between two f16, 1 + 2^-8 between two bf16; what f32 has no digit for decides.
        let tiny = 2f64.powi(-40);
        for (bits, step) in [(11, 2f64.powi(-10)), (8, 2f64.powi(-7))] {
            let tie = 1.0 + 2f64.powi(-bits);
            let round = |v| if bits == 11 { f16::from_f64(v).to_f64() } else { bf16::from_f64(v).to_f64() };
            let ours = |v| match bits {
                11 => <f16 as Element>::from_f64(v).to_f64(),
                _ => <bf16 as Element>::from_f64(v).to_f64(),
            };
            assert_eq!([ours(tie), ours(tie - tiny), ours(tie + tiny)], [1.0, 1.0, 1.0 + step]);
            assert_eq!([ours(-tie), ours(-tie - tiny)], [-1.0, -1.0 - step]);
            // Where f32 has all digits, `half` agrees.
            for i in -2000..2000 {
                let v = f64::from((f64::from(i) * 0.37).exp() as f32) * if i % 2 == 0 { 1.0 } else { -1.0 };
                assert_eq!(ours(v), round(v), "{v:e}");
            }
        }
        let infinite = |v: f64| <f16 as Element>::from_f64(v).is_infinite();
        assert!(infinite(1e300) && infinite(f64::INFINITY) && !infinite(65519.9) && infinite(65520.0));
        assert!(<bf16 as Element>::from_f64(f64::NAN).is_nan());
        assert_eq!(<bf16 as Element>::from_f64(-1e-300).to_bits(), 0x8000);
    }
}
