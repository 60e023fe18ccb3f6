//! Largest and mean values of windows, in one, two and three dimensions, channels last.

mod average;
mod max;

use super::parallel::{SendPtr, for_each};
use super::real::Real;
use super::simd::vectorized;
pub(crate) use average::{average_pool, average_pool_gradient};
pub(crate) use max::{max_pool, max_pool_gradient, max_pool_select};
use std::ops::Range;

/// Elements of `x` that a chunk of work reads at least.
const CHUNK_ELEMENTS: usize = 1 << 16;

/// Channels that are taken together: a full vector of `f32` on the widest machines.
const LANES: usize = 16;

/// `y[b, o, c]` is taken over `x[b, i, c]` with `o * stride - before <= i < o * stride - before + window`.
///
/// What lies outside of `x` takes no part: it is never the largest, and it does not count for the mean. There are always
/// three spatial dims; those that are missing have size 1 in `input`, `window` and `output`. `x` is contiguous with shape
/// `[batch, *input, channels]`, `y` with `[batch, *output, channels]`.
#[derive(Debug, Clone)]
pub(crate) struct PoolGeometry {
    pub batch: usize,
    pub input: [usize; 3],
    pub channels: usize,
    pub window: [usize; 3],
    pub output: [usize; 3],
    /// At least 1.
    pub stride: [usize; 3],
    /// Positions of the first window that lie before the input.
    pub before: [isize; 3],
}

impl PoolGeometry {
    fn x_positions(&self) -> usize {
        self.input.iter().product()
    }

    fn y_positions(&self) -> usize {
        self.output.iter().product()
    }

    fn check(&self, x_len: usize, y_len: usize) {
        assert!(self.stride.iter().all(|&n| n > 0), "stride of {self:?}");
        assert_eq!(x_len, self.batch * self.x_positions() * self.channels, "elements of x for {self:?}");
        assert_eq!(y_len, self.batch * self.y_positions() * self.channels, "elements of y for {self:?}");
        assert!(
            u32::try_from(self.x_positions()).is_ok_and(|n| n < u32::MAX),
            "positions of {self:?} fit into u32"
        );
    }

    /// Positions of `x` under result `o` of one axis.
    fn reach(&self, axis: usize, o: usize) -> Range<usize> {
        let first = (o * self.stride[axis]) as isize - self.before[axis];
        let clip = |at: isize| at.clamp(0, self.input[axis] as isize) as usize;
        clip(first)..clip(first.saturating_add_unsigned(self.window[axis]))
    }

    /// Calls `f(o, window)` for the results of one line, the number `o` counted within the line.
    #[inline(always)]
    fn line(&self, line: usize, mut f: impl FnMut(usize, Window)) {
        let (i, j) = (line / self.output[1], line % self.output[1]);
        let (planes, rows) = (self.reach(0, i), self.reach(1, j));
        for o in 0..self.output[2] {
            f(
                o,
                Window {
                    planes: planes.clone(),
                    rows: rows.clone(),
                    columns: self.reach(2, o),
                    input: self.input,
                },
            );
        }
    }

    /// Lines of results that make one chunk.
    fn lines(&self) -> usize {
        let work = self.output[2] * self.channels * self.window.iter().product::<usize>();
        CHUNK_ELEMENTS.div_ceil(work.max(1))
    }

    /// Calls `f(item, channels)` in parallel for parts of `dx` that share no element and no result.
    fn for_each_part(&self, f: impl Fn(usize, Range<usize>) + Sync) {
        // Few items are cut into ranges of whole vectors of channels.
        let wanted = 16_usize.div_ceil(self.batch.max(1));
        let channels = self.channels.div_ceil(wanted).max(32);
        let cuts = self.channels.div_ceil(channels);
        let work =
            (self.x_positions() + self.y_positions() * self.window.iter().product::<usize>()) * channels;
        let group = CHUNK_ELEMENTS.div_ceil(work.max(1));
        let parts = self.batch * cuts;
        for_each(parts.div_ceil(group), |chunk| {
            for part in chunk * group..parts.min((chunk + 1) * group) {
                let first = part % cuts * channels;
                f(part / cuts, first..self.channels.min(first + channels));
            }
        });
    }
}

/// The positions of `x` under one result.
struct Window {
    planes: Range<usize>,
    rows: Range<usize>,
    columns: Range<usize>,
    input: [usize; 3],
}

impl Window {
    fn count(&self) -> usize {
        self.planes.len() * self.rows.len() * self.columns.len()
    }

    /// Calls `f` with each position, counted row by row through the input.
    #[inline(always)]
    fn each(&self, mut f: impl FnMut(usize)) {
        for i in self.planes.clone() {
            for j in self.rows.clone() {
                let row = (i * self.input[1] + j) * self.input[2];
                for k in self.columns.clone() {
                    f(row + k);
                }
            }
        }
    }
}

/// Fills `dx` with zeros, then calls `f(start of the result in y, position, channels, dx at that position)` for every
/// position of every window, in an order that is the same for each element of `dx`.
#[inline(always)]
fn scatter<T: Real>(g: &PoolGeometry, dx: &mut [T], f: impl Fn(usize, u32, Range<usize>, &mut [T]) + Sync) {
    let (all, positions, lines) = (g.channels, g.x_positions(), g.output[0] * g.output[1]);
    let dx = SendPtr(dx.as_mut_ptr());
    g.for_each_part(|item, channels| {
        // SAFETY: the items lie one after the other in `dx`, whose length `check` has seen. Parts share no channel of an
        // item, and `part_of` is used for the channels of this part only.
        let x = unsafe { dx.get().add(item * positions * all) };
        vectorized(
            #[inline(always)]
            || {
                if channels.len() == all {
                    part_of(x, 0, &(0..positions * all)).fill(T::zero());
                } else {
                    for at in 0..positions {
                        part_of(x, at * all, &channels).fill(T::zero());
                    }
                }
                for line in 0..lines {
                    g.line(
                        line,
                        #[inline(always)]
                        |o, window| {
                            let o = ((item * lines + line) * g.output[2] + o) * all;
                            window.each(
                                #[inline(always)]
                                |at| f(o, at as u32, channels.clone(), part_of(x, at * all, &channels)),
                            );
                        },
                    );
                }
            },
        );
    });
}

/// `channels` of the position that begins at `start`.
#[inline(always)]
fn part_of<'a, T>(x: *mut T, start: usize, channels: &Range<usize>) -> &'a mut [T] {
    // SAFETY: see `scatter`, the only caller, which holds one slice at a time.
    unsafe { std::slice::from_raw_parts_mut(x.add(start + channels.start), channels.len()) }
}

/// The `N` elements of `x` from `start` on.
#[inline(always)]
fn channel_block<T: Copy, const N: usize>(x: &[T], start: usize) -> [T; N] {
    x[start..start + N].try_into().expect("a slice of N elements")
}

#[cfg(test)]
mod tests;
