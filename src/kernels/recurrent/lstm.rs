//! The gates of an LSTM.

use std::ops::Range;

use super::super::parallel::SendPtr;
use super::super::real::Real;
use super::super::simd::vectorized;
use super::{for_lanes, for_rows, lanes, load, store};

/// `c = f before + i g` and `y = o tanh(c)` with the gates `i, f, o = sigmoid(..)` and `g = tanh(..)` (Hochreiter &
/// Schmidhuber 1997; Gers et al. 2000).
///
/// `gates` holds the arguments `[i, f, g, o]` of each row, `hidden` numbers each, and gets the gates themselves; the others
/// have `hidden` numbers a row.
pub(crate) fn lstm_cell<T: Real>(hidden: usize, gates: &mut [T], before: &[T], cell: &mut [T], y: &mut [T]) {
    let size = before.len();
    assert!(gates.len() == 4 * size && cell.len() == size && y.len() == size, "four gates a unit");
    let rows = size.checked_div(hidden).unwrap_or(0);
    assert_eq!(rows * hidden, size, "whole rows");
    let (gates, cell, y) = (SendPtr(gates.as_mut_ptr()), SendPtr(cell.as_mut_ptr()), SendPtr(y.as_mut_ptr()));
    for_rows(rows, 4 * hidden, |rows| {
        let step = Step { gates: gates.get(), before: before.as_ptr(), cell: cell.get(), y: y.get(), hidden };
        // SAFETY: the sizes are as just checked; ranges of rows do not overlap.
        unsafe { step.run(rows, 0..hidden) };
    });
}

/// Where the numbers of one step lie, as for [`lstm_cell`].
#[derive(Clone, Copy)]
pub(super) struct Step<T> {
    pub(super) gates: *mut T,
    pub(super) before: *const T,
    pub(super) cell: *mut T,
    pub(super) y: *mut T,
    pub(super) hidden: usize,
}

impl<T: Real> Step<T> {
    /// Computes some units of some rows.
    ///
    /// # Safety
    /// Their numbers are readable and writable, and nobody else uses them meanwhile.
    #[inline(never)]
    pub(super) unsafe fn run(self, rows: Range<usize>, units: Range<usize>) {
        vectorized(
            #[inline(always)]
            || {
                for row in rows {
                    let at = row * self.hidden + units.start;
                    // SAFETY: the caller's promise.
                    unsafe { self.run_row(4 * row * self.hidden + units.start, at, units.len()) };
                }
            },
        );
    }

    /// `n` units whose first gate is number `gates`, and whose other numbers begin at `at`.
    ///
    /// # Safety
    /// As for `run`.
    #[inline(always)]
    unsafe fn run_row(self, gates: usize, at: usize, n: usize) {
        for_lanes(
            n,
            #[inline(always)]
            |first, count| {
                // SAFETY: the caller's promise.
                unsafe {
                    let gate = |q: usize| self.gates.add(gates + q * self.hidden + first);
                    let (i, f) = (load(gate(0), count), load(gate(1), count));
                    let (g, o) = (load(gate(2), count), load(gate(3), count));
                    let before = load(self.before.add(at + first), count);
                    let (i, f) = (lanes(|l| i[l].sigmoid_()), lanes(|l| f[l].sigmoid_()));
                    let (g, o) = (lanes(|l| g[l].tanh_()), lanes(|l| o[l].sigmoid_()));
                    let cell = lanes(|l| f[l].mul_add(before[l], i[l] * g[l]));
                    let y = lanes(|l| o[l] * cell[l].tanh_());
                    for (q, x) in [i, f, g, o].into_iter().enumerate() {
                        store(gate(q), count, x);
                    }
                    store(self.cell.add(at + first), count, cell);
                    store(self.y.add(at + first), count, y);
                }
            },
        );
    }
}

/// What the gradients of [`lstm_cell`] start from.
#[derive(Clone, Copy)]
pub(crate) struct CellGradients<'a, T> {
    /// The gates after their functions.
    pub(crate) gates: &'a [T],
    pub(crate) before: &'a [T],
    pub(crate) cell: &'a [T],
    /// What reaches `y`, if anything does.
    pub(crate) dy: Option<&'a [T]>,
    /// What reaches `cell`, if anything does.
    pub(crate) dcell: Option<&'a [T]>,
}

/// Gradients of [`lstm_cell`]: with `t = tanh(c)` and `d = dcell + dy o (1 - t^2)`, the gradients of the gates are `d g`,
/// `d before`, `d i` and `dy t`, those of their arguments the same times `s (1 - s)`, for `g` times `1 - g^2`; `d f` reaches
/// `before`.
pub(crate) fn lstm_cell_gradients<T: Real>(
    hidden: usize,
    forward: CellGradients<'_, T>,
    dgates: &mut [T],
    dbefore: &mut [T],
) {
    let size = forward.before.len();
    assert!(forward.gates.len() == 4 * size && dgates.len() == 4 * size, "four gates a unit");
    assert!(forward.cell.len() == size && dbefore.len() == size, "one cell a unit");
    assert!(forward.dy.is_none_or(|d| d.len() == size), "one output a unit");
    assert!(forward.dcell.is_none_or(|d| d.len() == size), "one cell a unit");
    let rows = size.checked_div(hidden).unwrap_or(0);
    assert_eq!(rows * hidden, size, "whole rows");
    let (dgates, dbefore) = (SendPtr(dgates.as_mut_ptr()), SendPtr(dbefore.as_mut_ptr()));
    let pointer = |x: &[T]| x.as_ptr();
    for_rows(rows, 4 * hidden, |rows| {
        let slopes = Slopes {
            gates: forward.gates.as_ptr(),
            before: forward.before.as_ptr(),
            cell: forward.cell.as_ptr(),
            dy: [forward.dy.map(pointer), None],
            dcell: [forward.dcell.map(pointer), None],
            dgates: dgates.get(),
            dbefore: dbefore.get(),
            hidden,
        };
        // SAFETY: the sizes are as just checked; ranges of rows do not overlap.
        unsafe { slopes.run(rows, 0..hidden) };
    });
}

/// Where the numbers of the gradients of one step lie. What reaches `y` and `cell` is the sum of what is there. `dbefore` may
/// be the second of `dcell`.
#[derive(Clone, Copy)]
pub(super) struct Slopes<T> {
    pub(super) gates: *const T,
    pub(super) before: *const T,
    pub(super) cell: *const T,
    pub(super) dy: [Option<*const T>; 2],
    pub(super) dcell: [Option<*const T>; 2],
    pub(super) dgates: *mut T,
    pub(super) dbefore: *mut T,
    pub(super) hidden: usize,
}

impl<T: Real> Slopes<T> {
    /// Computes some units of some rows.
    ///
    /// # Safety
    /// Their numbers are readable and writable, and nobody else uses them meanwhile.
    #[inline(never)]
    pub(super) unsafe fn run(self, rows: Range<usize>, units: Range<usize>) {
        vectorized(
            #[inline(always)]
            || {
                for row in rows {
                    let at = row * self.hidden + units.start;
                    // SAFETY: the caller's promise.
                    unsafe { self.run_row(4 * row * self.hidden + units.start, at, units.len()) };
                }
            },
        );
    }

    /// `n` units whose first gate is number `gates`, and whose other numbers begin at `at`.
    ///
    /// # Safety
    /// As for `run`.
    #[inline(always)]
    unsafe fn run_row(self, gates: usize, at: usize, n: usize) {
        let one = T::one();
        for_lanes(
            n,
            #[inline(always)]
            |first, count| {
                // SAFETY: the caller's promise.
                unsafe {
                    let gate = |q: usize| load(self.gates.add(gates + q * self.hidden + first), count);
                    let (i, f, g, o) = (gate(0), gate(1), gate(2), gate(3));
                    let before = load(self.before.add(at + first), count);
                    let cell = load(self.cell.add(at + first), count);
                    let sum = |parts: [Option<*const T>; 2]| {
                        let mut sum = [T::zero(); super::LANES];
                        for part in parts.into_iter().flatten() {
                            let x = load(part.add(at + first), count);
                            sum = lanes(|l| sum[l] + x[l]);
                        }
                        sum
                    };
                    let (dy, dcell) = (sum(self.dy), sum(self.dcell));
                    let t = lanes(|l| cell[l].tanh_());
                    let d = lanes(|l| (dy[l] * o[l]).mul_add(one - t[l] * t[l], dcell[l]));
                    let dgates = [
                        lanes(|l| d[l] * g[l] * i[l] * (one - i[l])),
                        lanes(|l| d[l] * before[l] * f[l] * (one - f[l])),
                        lanes(|l| d[l] * i[l] * (one - g[l] * g[l])),
                        lanes(|l| dy[l] * t[l] * o[l] * (one - o[l])),
                    ];
                    for (q, x) in dgates.into_iter().enumerate() {
                        store(self.dgates.add(gates + q * self.hidden + first), count, x);
                    }
                    store(self.dbefore.add(at + first), count, lanes(|l| d[l] * f[l]));
                }
            },
        );
    }
}
