//! Normalisation by mean and variance: a channel at a time over all rows (batch norm), a group of channels at
//! a time over the rows of an item (group norm), or a row at a time (layer norm).
//!
//! Sums are in double precision. Rows are cut into pieces by size, and what the pieces give is merged in order, so that
//! results do not depend on the number of threads.

mod channels;
mod groups;
mod rows;

pub(crate) use channels::{Channels, channel_gradients, channel_moments, normalise_channels};
pub(crate) use groups::{Groups, group_gradients, normalise_groups};
pub(crate) use rows::{Rows, normalise_rows, row_gradients};

use std::ops::Range;

use super::blocks::{CHUNK, SERIAL};
use super::math::Math;
use super::parallel;
use super::reduce::Number;
use super::scratch::{Plain, with_scratch};

/// Elements of a piece, at least, and the most pieces.
const PIECE: usize = 4 * CHUNK;
const MOST_PIECES: usize = 64;

/// `f32` and `f64`, with sums in `f64`.
pub(crate) trait Normal: Math + Plain + Number<Wide = f64> {}

impl<T: Math + Plain + Number<Wide = f64>> Normal for T {}

/// A matrix cut into pieces of whole rows.
#[derive(Clone, Copy)]
struct Pieces {
    columns: usize,
    rows: usize,
    /// Rows of a piece; the last may have fewer.
    each: usize,
}

impl Pieces {
    fn new(size: usize, columns: usize) -> Self {
        let rows = size.checked_div(columns).unwrap_or(0);
        let each = if size <= SERIAL { rows } else { (PIECE / columns).max(rows.div_ceil(MOST_PIECES)) };
        Self { columns, rows, each: each.max(1) }
    }

    fn count(self) -> usize {
        self.rows.div_ceil(self.each)
    }

    /// The elements of a piece.
    fn range(self, piece: usize) -> Range<usize> {
        let end = self.rows.min((piece + 1) * self.each);
        piece * self.each * self.columns..end * self.columns
    }

    /// Calls `f` with the range of each piece and that part of `y`.
    fn for_each<T: Send>(self, y: &mut [T], f: impl Fn(Range<usize>, &mut [T]) + Sync) {
        match self.count() {
            0 => {}
            1 => f(self.range(0), y),
            _ => parallel::for_each_chunk_mut(y, self.each * self.columns, |i, y| f(self.range(i), y)),
        }
    }

    /// Lets `work` add up two sums a column for each piece, starting from zeros, merges those of the second piece and
    /// on into those of the first by `merge(piece, sums, others)`, and calls `finish(column, sums)`.
    fn sums(
        self,
        work: impl Fn(usize, &mut [f64], &mut [f64]) + Sync,
        merge: impl Fn(usize, &mut [f64; 2], [f64; 2]),
        mut finish: impl FnMut(usize, [f64; 2]),
    ) {
        let (columns, count) = (self.columns, self.count());
        with_scratch(2 * columns * count.max(1), |all: &mut [f64]| {
            all.fill(0.0);
            let sums = |piece: usize, both: &mut [f64]| {
                let (one, other) = both.split_at_mut(columns);
                work(piece, one, other);
            };
            match count {
                0 => {}
                1 => sums(0, all),
                _ => parallel::for_each_chunk_mut(all, 2 * columns, sums),
            }
            for c in 0..columns {
                let of = |piece: usize| [all[2 * piece * columns + c], all[(2 * piece + 1) * columns + c]];
                let mut total = of(0);
                (1..count).for_each(|piece| merge(piece, &mut total, of(piece)));
                finish(c, total);
            }
        });
    }
}

#[cfg(test)]
mod tests;
