//! The steps of recurrent layers: gates of an LSTM or a GRU, and an LSTM over a whole sequence.

mod gru;
mod lstm;
mod sequence;
#[cfg(test)]
mod tests;

pub(crate) use gru::{gru_candidate, gru_candidate_gradients, gru_gates, gru_reset_gradients};
pub(crate) use lstm::{CellGradients, lstm_cell, lstm_cell_gradients};
pub(crate) use sequence::{Sequence, SequenceGradients, lstm_sequence, lstm_sequence_gradients};

use std::ops::Range;

use super::blocks::{CHUNK, SERIAL};
use super::parallel;
use super::real::Real;

/// Numbers that are computed together: a vector or two.
const LANES: usize = 16;

/// Calls `f` with ranges that make up `0..rows`, each worth a thread; a row has `size` numbers.
fn for_rows(rows: usize, size: usize, f: impl Fn(Range<usize>) + Sync) {
    let each = if rows * size <= SERIAL { rows.max(1) } else { CHUNK.div_ceil(size.max(1)) };
    parallel::for_each(rows.div_ceil(each), |i| f(i * each..rows.min((i + 1) * each)));
}

/// Calls `f` with the start and the count of each group of up to [`LANES`] of `n` numbers.
#[inline(always)]
fn for_lanes(n: usize, mut f: impl FnMut(usize, usize)) {
    let whole = n - n % LANES;
    for at in (0..whole).step_by(LANES) {
        f(at, LANES);
    }
    if whole < n {
        f(whole, n - whole);
    }
}

/// The `count` numbers at `p`, zeros after them.
///
/// # Safety
/// They are readable.
#[inline(always)]
unsafe fn load<T: Real>(p: *const T, count: usize) -> [T; LANES] {
    // SAFETY: the caller's promise.
    unsafe {
        if count == LANES {
            return p.cast::<[T; LANES]>().read();
        }
        let mut x = [T::zero(); LANES];
        for (l, x) in x.iter_mut().enumerate().take(count) {
            *x = *p.add(l);
        }
        x
    }
}

/// Writes the first `count` numbers of `x`.
///
/// # Safety
/// As many are writable at `p`.
#[inline(always)]
unsafe fn store<T: Real>(p: *mut T, count: usize, x: [T; LANES]) {
    // SAFETY: the caller's promise.
    unsafe {
        if count == LANES {
            return p.cast::<[T; LANES]>().write(x);
        }
        for (l, &x) in x.iter().enumerate().take(count) {
            *p.add(l) = x;
        }
    }
}

/// `f` of each lane.
#[inline(always)]
fn lanes<T: Real>(mut f: impl FnMut(usize) -> T) -> [T; LANES] {
    let mut y = [T::zero(); LANES];
    for (l, y) in y.iter_mut().enumerate() {
        *y = f(l);
    }
    y
}
