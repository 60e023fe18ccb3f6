//! What reductions need to know of the element types.

use half::{bf16, f16};

use crate::dtype::Element;

/// An element type with sums and an order.
pub(crate) trait Number: Copy + PartialOrd + Send + Sync + 'static {
    /// What sums and products are computed in: `f64` for floats; integers wrap.
    type Wide: Copy + Send + Sync;
    /// 0.
    const ZERO: Self::Wide;
    /// 1.
    const ONE: Self::Wide;
    /// The largest of no numbers: `-inf`, or the least integer.
    const LOWEST: Self;
    /// The least of no numbers: `inf`, or the largest integer.
    const HIGHEST: Self;
    /// The same number.
    fn widen(self) -> Self::Wide;
    /// The nearest number.
    fn narrow(x: Self::Wide) -> Self;
    /// `a + b`.
    fn plus(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// `a b`.
    fn times(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// `a / n`; integers round towards 0.
    fn divide(a: Self::Wide, n: usize) -> Self::Wide;
}

macro_rules! floats {
    ($($t:ident: $widen:expr, $narrow:expr, $infinity:expr, $minus:expr;)+) => {$(
        impl Number for $t {
            type Wide = f64;
            const ZERO: f64 = 0.0;
            const ONE: f64 = 1.0;
            const LOWEST: Self = $minus;
            const HIGHEST: Self = $infinity;
            #[inline(always)]
            fn widen(self) -> f64 {
                $widen(self)
            }
            #[inline(always)]
            fn narrow(x: f64) -> Self {
                $narrow(x)
            }
            #[inline(always)]
            fn plus(a: f64, b: f64) -> f64 {
                a + b
            }
            #[inline(always)]
            fn times(a: f64, b: f64) -> f64 {
                a * b
            }
            #[inline(always)]
            fn divide(a: f64, n: usize) -> f64 {
                a / n as f64
            }
        }
    )+};
}

floats! {
    f32: f64::from, |x| x as f32, f32::INFINITY, f32::NEG_INFINITY;
    f64: |x| x, |x| x, f64::INFINITY, f64::NEG_INFINITY;
    f16: f64::from, <f16 as Element>::from_f64, f16::INFINITY, f16::NEG_INFINITY;
    bf16: f64::from, <bf16 as Element>::from_f64, bf16::INFINITY, bf16::NEG_INFINITY;
}

macro_rules! integers {
    ($($t:ident),+) => {$(
        impl Number for $t {
            type Wide = Self;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = Self::MIN;
            const HIGHEST: Self = Self::MAX;
            #[inline(always)]
            fn widen(self) -> Self {
                self
            }
            #[inline(always)]
            fn narrow(x: Self) -> Self {
                x
            }
            #[inline(always)]
            fn plus(a: Self, b: Self) -> Self {
                a.wrapping_add(b)
            }
            #[inline(always)]
            fn times(a: Self, b: Self) -> Self {
                a.wrapping_mul(b)
            }
            #[inline(always)]
            fn divide(a: Self, n: usize) -> Self {
                // A count beyond the type's range exceeds every sum.
                Self::try_from(n).map_or(0, |n| a.checked_div(n).unwrap_or(0))
            }
        }
    )+};
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);
