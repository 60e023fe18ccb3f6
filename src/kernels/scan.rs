//! Running sums and products along lanes.

use super::math::Math;

/// A number with an accumulator that sums and products lose little in: `f64` for floats; integers wrap around.
pub(crate) trait Running: Copy + Default + Send + Sync + 'static {
    /// The type of the running value.
    type Total: Copy + Send + Sync;
    /// 0, the empty sum.
    const ZERO: Self::Total;
    /// 1, the empty product.
    const ONE: Self::Total;
    fn add_to(self, total: Self::Total) -> Self::Total;
    fn multiply_to(self, total: Self::Total) -> Self::Total;
    fn from_total(total: Self::Total) -> Self;
}

macro_rules! running {
    (float $($t:ty)*) => {$(
        impl Running for $t {
            type Total = f64;
            const ZERO: f64 = 0.0;
            const ONE: f64 = 1.0;
            #[inline(always)]
            fn add_to(self, total: f64) -> f64 { total + f64::from(self) }
            #[inline(always)]
            fn multiply_to(self, total: f64) -> f64 { total * f64::from(self) }
            #[inline(always)]
            fn from_total(total: f64) -> Self { total as $t }
        }
    )*};
    (int $($t:ty)*) => {$(
        impl Running for $t {
            type Total = $t;
            const ZERO: $t = 0;
            const ONE: $t = 1;
            #[inline(always)]
            fn add_to(self, total: $t) -> $t { total.wrapping_add(self) }
            #[inline(always)]
            fn multiply_to(self, total: $t) -> $t { total.wrapping_mul(self) }
            #[inline(always)]
            fn from_total(total: $t) -> Self { total }
        }
    )*};
}

running!(float f32 f64);
running!(int i8 i16 i32 i64 u8 u16 u32 u64);

/// `y[i] = f(x[i], .. f(x[0], start))`, without `x[i]` if `exclusive`, from the last element on if `reverse`.
pub(crate) fn accumulate<T: Running>(
    x: &[T],
    y: &mut [T],
    start: T::Total,
    exclusive: bool,
    reverse: bool,
    f: impl Fn(T, T::Total) -> T::Total,
) {
    let mut total = start;
    let mut step = |x: T, y: &mut T| {
        let next = f(x, total);
        *y = T::from_total(if exclusive { total } else { next });
        total = next;
    };
    if reverse {
        x.iter().zip(y).rev().for_each(|(&x, y)| step(x, y));
    } else {
        x.iter().zip(y).for_each(|(&x, y)| step(x, y));
    }
}

/// `y[i] = a[i] y[i - 1] + b[i]`, from `y[-1] = 0` on.
pub(crate) fn linear<T: Math>(a: &[T], b: &[T], y: &mut [T]) {
    let mut last = 0.0;
    for ((a, b), y) in a.iter().zip(b).zip(y) {
        last = a.as_f64() * last + b.as_f64();
        *y = T::from_f64(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_run_in_both_directions_with_and_without_the_element() {
        let run = |exclusive, reverse| {
            let mut y = [0; 4];
            accumulate(&[1, 2, 3, 4], &mut y, 0, exclusive, reverse, i32::add_to);
            y
        };
        assert_eq!(run(false, false), [1, 3, 6, 10]);
        assert_eq!(run(true, false), [0, 1, 3, 6]);
        assert_eq!(run(false, true), [10, 9, 7, 4]);
        assert_eq!(run(true, true), [9, 7, 4, 0]);
    }

    #[test]
    fn long_sums_of_single_precision_keep_their_digits() {
        // A million times 0.1f32, which is 0.10000000149011612.
        let (x, mut y) = (vec![0.1f32; 1_000_000], vec![0.0; 1_000_000]);
        accumulate(&x, &mut y, 0.0, false, false, f32::add_to);
        assert_eq!(y[999_999], 100_000.0);
    }

    #[test]
    fn a_linear_recurrence_starts_from_nothing() {
        let mut y = [0.0f32; 3];
        linear(&[9.0, 2.0, -1.0], &[1.0, 3.0, 4.0], &mut y);
        assert_eq!(y, [1.0, 5.0, -1.0]); // 1; 2 * 1 + 3; -5 + 4
    }
}
