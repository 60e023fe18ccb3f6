//! Reductions of any set of axes.
//!
//! All take a view `x`, a mark for each dim whether it is reduced, and the results `y`, row-major over the other dims.
//! Without elements a result is that of none: 0, 1, false, the lowest number.

mod index;
mod number;
mod op;
mod walk;

pub(crate) use index::{argmax, argmin};
pub(crate) use number::Number;
pub(crate) use op::Op;

use super::layout::View;
use super::math::Math;
use super::simd::vectorized;

/// Sums. Those of floats are computed in double precision, integers wrap.
pub(crate) fn sum<T: Number>(x: View<T>, reduced: &[bool], y: &mut [T]) {
    sum_over(x, reduced, y, 1);
}

/// Means: NaN of no floats. Those of integers round towards 0.
pub(crate) fn mean<T: Number>(x: View<T>, reduced: &[bool], y: &mut [T]) {
    let count = |(&dim, &reduced): (&usize, &bool)| if reduced { dim } else { 1 };
    sum_over(x, reduced, y, x.shape().iter().zip(reduced).map(count).product());
}

/// Sums divided by `count`: one function, so that it is compiled once.
fn sum_over<T: Number>(x: View<T>, reduced: &[bool], y: &mut [T], count: usize) {
    let finish = |sum| T::narrow(T::divide(sum, count));
    Op::new(T::ZERO, |sum, x: T| T::plus(sum, x.widen()), T::plus, finish).reduce(x, reduced, y);
}

/// Sums of squares.
pub(crate) fn sum_squares<T: Number>(x: View<T>, reduced: &[bool], y: &mut [T]) {
    let add = |sum, x: T| T::plus(sum, T::times(x.widen(), x.widen()));
    Op::new(T::ZERO, add, T::plus, T::narrow).reduce(x, reduced, y);
}

/// Products.
pub(crate) fn product<T: Number>(x: View<T>, reduced: &[bool], y: &mut [T]) {
    Op::new(T::ONE, |all, x: T| T::times(all, x.widen()), T::times, T::narrow).reduce(x, reduced, y);
}

/// The largest elements; NaN if there is one.
pub(crate) fn max<T: Number>(x: View<T>, reduced: &[bool], y: &mut [T]) {
    Op::new(T::LOWEST, larger, larger, |x| x).reduce(x, reduced, y);
}

/// The smallest elements; NaN if there is one.
pub(crate) fn min<T: Number>(x: View<T>, reduced: &[bool], y: &mut [T]) {
    Op::new(T::HIGHEST, smaller, smaller, |x| x).reduce(x, reduced, y);
}

/// Whether any element is true.
pub(crate) fn any(x: View<bool>, reduced: &[bool], y: &mut [bool]) {
    Op::new(false, |a, b| a | b, |a, b| a | b, |x| x).reduce(x, reduced, y);
}

/// Whether all elements are true.
pub(crate) fn all(x: View<bool>, reduced: &[bool], y: &mut [bool]) {
    Op::new(true, |a, b| a & b, |a, b| a & b, |x| x).reduce(x, reduced, y);
}

/// The sum of all, in wide precision.
pub(crate) fn sum_of<T: Number>(x: &[T]) -> T::Wide {
    Op::new(T::ZERO, |sum, x: T| T::plus(sum, x.widen()), T::plus, |sum| sum).of(x)
}

/// `sum(a b)`, added up in the precision of the elements over 16 of them at most before it is widened.
pub(crate) fn dot_of<T: Math + Number<Wide = f64>>(a: &[T], b: &[T]) -> f64 {
    const LANES: usize = 32;
    let (chunks_a, rest_a) = a.as_chunks::<LANES>();
    let (chunks_b, rest_b) = b.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for (a, b) in chunks_a.chunks(16).zip(chunks_b.chunks(16)) {
        add_products(a, b, &mut lanes);
    }
    let rest: f64 = rest_a.iter().zip(rest_b).map(|(&a, &b)| (a * b).widen()).sum();
    lanes.iter().sum::<f64>() + rest
}

/// Adds the products of element `i` of each chunk to lane `i`.
#[inline(never)]
fn add_products<T: Math + Number<Wide = f64>, const N: usize>(
    a: &[[T; N]],
    b: &[[T; N]],
    lanes: &mut [f64; N],
) {
    vectorized(
        #[inline(always)]
        move || {
            let mut sums = [<T as num_traits::Zero>::zero(); N];
            for (a, b) in a.iter().zip(b) {
                for lane in 0..N {
                    sums[lane] = a[lane].mul_add(b[lane], sums[lane]);
                }
            }
            for lane in 0..N {
                lanes[lane] += sums[lane].widen();
            }
        },
    );
}

/// The largest of all; NaN if there is one.
pub(crate) fn max_of<T: Number>(x: &[T]) -> T {
    Op::new(T::LOWEST, larger, larger, |x| x).of(x)
}

/// The larger of two, or the one that is NaN.
#[inline(always)]
pub(super) fn larger<T: Number>(a: T, b: T) -> T {
    if (b > a) | is_nan(b) { b } else { a }
}

/// The smaller of two, or the one that is NaN.
#[inline(always)]
fn smaller<T: Number>(a: T, b: T) -> T {
    if (b < a) | is_nan(b) { b } else { a }
}

/// Whether `x` is NaN; never for integers.
#[inline(always)]
#[expect(clippy::eq_op, reason = "NaN alone differs from itself")]
fn is_nan<T: Number>(x: T) -> bool {
    x != x
}

#[cfg(test)]
mod tests;
