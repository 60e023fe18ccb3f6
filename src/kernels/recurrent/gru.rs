//! The gates of a GRU.

use std::ops::Range;

use super::super::parallel::SendPtr;
use super::super::real::Real;
use super::super::simd::vectorized;
use super::{for_lanes, for_rows, lanes, load, store};

/// Rows and columns, and the check that slices have so many times as many numbers.
fn rows_of(hidden: usize, size: usize, parts: &[(usize, usize)]) -> usize {
    assert!(parts.iter().all(|&(len, times)| len == times * size), "all parts have the same units");
    let rows = size.checked_div(hidden).unwrap_or(0);
    assert_eq!(rows * hidden, size, "whole rows");
    rows
}

/// Calls `f(three, two, one, count)` for each group of up to `count` units of some rows: where its first number lies in
/// parts of three, two and one numbers a unit.
#[inline(always)]
fn for_units(rows: Range<usize>, hidden: usize, mut f: impl FnMut(usize, usize, usize, usize)) {
    for row in rows {
        let at = row * hidden;
        for_lanes(
            hidden,
            #[inline(always)]
            |first, count| f(3 * at + first, 2 * at + first, at + first, count),
        );
    }
}

/// `z = sigmoid(gates_z + sums_z)` and `r = sigmoid(gates_r + sums_r)`, written to `gates`, and `reset = r h`
/// (Cho et al. 2014).
///
/// `gates` has `[z, r, a]` a row, `hidden` numbers each, `sums` `[z, r]`, the others `hidden` numbers.
pub(crate) fn gru_gates<T: Real>(hidden: usize, gates: &mut [T], sums: &[T], h: &[T], reset: &mut [T]) {
    let rows = rows_of(hidden, h.len(), &[(gates.len(), 3), (sums.len(), 2), (reset.len(), 1)]);
    let (gates, reset) = (SendPtr(gates.as_mut_ptr()), SendPtr(reset.as_mut_ptr()));
    for_rows(rows, 3 * hidden, |rows| {
        let (gates, sums, h, reset) = (gates.get(), sums.as_ptr(), h.as_ptr(), reset.get());
        vectorized(
            #[inline(always)]
            || {
                for_units(
                    rows,
                    hidden,
                    #[inline(always)]
                    |three, two, one, n| {
                        // SAFETY: the sizes are as just checked; ranges of rows do not overlap.
                        unsafe {
                            let (z, r) = (load(gates.add(three), n), load(gates.add(three + hidden), n));
                            let (more_z, more_r) = (load(sums.add(two), n), load(sums.add(two + hidden), n));
                            let h = load(h.add(one), n);
                            let r = lanes(|l| (r[l] + more_r[l]).sigmoid_());
                            store(gates.add(three), n, lanes(|l| (z[l] + more_z[l]).sigmoid_()));
                            store(gates.add(three + hidden), n, r);
                            store(reset.add(one), n, lanes(|l| r[l] * h[l]));
                        }
                    },
                );
            },
        );
    });
}

/// `a = tanh(gates_a + sums)`, written to `gates`, and `y = (1 - z) h + z a`.
pub(crate) fn gru_candidate<T: Real>(hidden: usize, gates: &mut [T], sums: &[T], h: &[T], y: &mut [T]) {
    let rows = rows_of(hidden, h.len(), &[(gates.len(), 3), (sums.len(), 1), (y.len(), 1)]);
    let (gates, y) = (SendPtr(gates.as_mut_ptr()), SendPtr(y.as_mut_ptr()));
    for_rows(rows, 3 * hidden, |rows| {
        let (gates, sums, h, y) = (gates.get(), sums.as_ptr(), h.as_ptr(), y.get());
        vectorized(
            #[inline(always)]
            || {
                for_units(
                    rows,
                    hidden,
                    #[inline(always)]
                    |three, _, one, n| {
                        // SAFETY: as in `gru_gates`.
                        unsafe {
                            let (z, a) = (load(gates.add(three), n), load(gates.add(three + 2 * hidden), n));
                            let (more, h) = (load(sums.add(one), n), load(h.add(one), n));
                            let a = lanes(|l| (a[l] + more[l]).tanh_());
                            store(gates.add(three + 2 * hidden), n, a);
                            store(y.add(one), n, lanes(|l| z[l].mul_add(a[l] - h[l], h[l])));
                        }
                    },
                );
            },
        );
    });
}

/// First part of the gradients: of the arguments of `a` and `z`, `dy z (1 - a^2)` and `dy (a - h) z (1 - z)`, into
/// `dgates`.
pub(crate) fn gru_candidate_gradients<T: Real>(
    hidden: usize,
    gates: &[T],
    h: &[T],
    dy: &[T],
    dgates: &mut [T],
) {
    let rows = rows_of(hidden, h.len(), &[(gates.len(), 3), (dy.len(), 1), (dgates.len(), 3)]);
    let dgates = SendPtr(dgates.as_mut_ptr());
    for_rows(rows, 3 * hidden, |rows| {
        let (gates, h, dy, dgates) = (gates.as_ptr(), h.as_ptr(), dy.as_ptr(), dgates.get());
        vectorized(
            #[inline(always)]
            || {
                for_units(
                    rows,
                    hidden,
                    #[inline(always)]
                    |three, _, at, n| {
                        let one = T::one();
                        // SAFETY: as in `gru_gates`.
                        unsafe {
                            let (z, a) = (load(gates.add(three), n), load(gates.add(three + 2 * hidden), n));
                            let (h, dy) = (load(h.add(at), n), load(dy.add(at), n));
                            let dz = lanes(|l| dy[l] * (a[l] - h[l]) * z[l] * (one - z[l]));
                            store(dgates.add(three), n, dz);
                            let da = lanes(|l| dy[l] * z[l] * (one - a[l] * a[l]));
                            store(dgates.add(three + 2 * hidden), n, da);
                        }
                    },
                );
            },
        );
    });
}

/// Second part, given what reaches `reset`: of the argument of `r`, `dreset h r (1 - r)`, into `dgates`, and
/// `dh = dy (1 - z) + dreset r`; `dreset` becomes `reset` itself, `r h`.
pub(crate) fn gru_reset_gradients<T: Real>(
    hidden: usize,
    gates: &[T],
    (h, dy): (&[T], &[T]),
    dreset: &mut [T],
    dgates: &mut [T],
    dh: &mut [T],
) {
    let parts = [(gates.len(), 3), (dy.len(), 1), (dreset.len(), 1), (dgates.len(), 3), (dh.len(), 1)];
    let rows = rows_of(hidden, h.len(), &parts);
    let (dreset, dgates, dh) =
        (SendPtr(dreset.as_mut_ptr()), SendPtr(dgates.as_mut_ptr()), SendPtr(dh.as_mut_ptr()));
    for_rows(rows, 3 * hidden, |rows| {
        let (gates, h, dy) = (gates.as_ptr(), h.as_ptr(), dy.as_ptr());
        let (dreset, dgates, dh) = (dreset.get(), dgates.get(), dh.get());
        vectorized(
            #[inline(always)]
            || {
                for_units(
                    rows,
                    hidden,
                    #[inline(always)]
                    |three, _, at, n| {
                        let one = T::one();
                        // SAFETY: as in `gru_gates`.
                        unsafe {
                            let (z, r) = (load(gates.add(three), n), load(gates.add(three + hidden), n));
                            let (h, dy, d) =
                                (load(h.add(at), n), load(dy.add(at), n), load(dreset.add(at), n));
                            let dr = lanes(|l| d[l] * h[l] * r[l] * (one - r[l]));
                            store(dgates.add(three + hidden), n, dr);
                            store(dh.add(at), n, lanes(|l| dy[l].mul_add(one - z[l], d[l] * r[l])));
                            store(dreset.add(at), n, lanes(|l| r[l] * h[l]));
                        }
                    },
                );
            },
        );
    });
}
