//! The gradients of the filter and of the bias.

use super::plan::{Plan, Tile, Window};
use crate::kernels::gemm::{CHUNK_WORK, Real};
use crate::kernels::micro::{Panel, Rows, Start, panel_width};
use crate::kernels::pack::fetch;
use crate::kernels::parallel::{SendPtr, for_each, for_each_chunk_mut};
use crate::kernels::scratch::with_scratch;
use crate::kernels::simd::vectorized;
use std::ops::Range;

/// Bytes of `x` and of `dy` that a tile reads: both stay in the first-level cache.
const WINDOW_BYTES: usize = 192 << 10;
/// Elements of all partial sums together.
const PARTIAL_ELEMENTS: usize = 1 << 21;
/// Partial sums at most, and chunks of work at least if the filter can be cut.
const CHUNKS: usize = 32;

/// Computes `dw[t, ci, co] = sum of x * dy` over all results of the forward `plan`, and `db[co] = sum of dy`.
///
/// Tiles are summed in groups of a size that depends on the geometry alone, the groups then in their order.
///
/// # Safety
/// `x` and `dy` have the sizes that the plan names, `dw` those of its filter, `db` has `y_channels`.
pub(super) unsafe fn filter_gradient<T: Real>(
    plan: &Plan,
    x: &[T],
    dy: &[T],
    dw: &mut [T],
    db: Option<&mut [T]>,
) {
    let channels = plan.y_channels;
    if channels == 0 {
        return;
    }
    let most = WINDOW_BYTES / size_of::<T>() / channels.min(panel_width::<T>());
    let size = plan.tile(WINDOW_BYTES / size_of::<T>(), most.max(1));
    let tiles = Tile::number(plan, size);
    // A partial sum is a filter and a row for the bias.
    let part = dw.len() + channels;
    let work = plan.work() * size.iter().product::<usize>();
    let groups =
        CHUNKS.min(tiles.div_ceil(CHUNK_WORK.div_ceil(work.max(1)))).min(PARTIAL_ELEMENTS / part).max(1);
    let group = tiles.div_ceil(groups).max(1);
    let groups = tiles.div_ceil(group).max(1);
    let width = panel_width::<T>();
    let cuts = channels.div_ceil(width).min(CHUNKS.div_ceil(groups));
    let cols = channels.div_ceil(cuts).next_multiple_of(width);
    let cuts = channels.div_ceil(cols);

    let sums = Sums { plan, size, x, dy, with_bias: db.is_some() };
    with_scratch(groups * part, |parts: &mut [T]| {
        let partial = SendPtr(parts.as_mut_ptr());
        for_each(groups * cuts, |chunk| {
            let (index, first) = (chunk / cuts, chunk % cuts * cols);
            let tiles = index * group..tiles.min((index + 1) * group);
            let channels = (first, cols.min(channels - first));
            // SAFETY: the caller's promise; each chunk has its own columns of its own partial sum.
            unsafe { sums.compute(tiles, channels, partial.get().add(index * part + first)) };
        });
        let (parts, chunk) = (&*parts, (1 << 14) / groups + 1);
        for_each_chunk_mut(dw, chunk, |i, dw| add_parts(parts, part, i * chunk, dw));
        if let Some(db) = db {
            add_parts(parts, part, part - channels, db);
        }
    });
}

/// `y = sum of parts[i * part + offset..]` over all parts, in their order.
fn add_parts<T: Real>(parts: &[T], part: usize, offset: usize, y: &mut [T]) {
    vectorized(
        #[inline(always)]
        || {
            y.fill(T::zero());
            for part in parts.chunks_exact(part) {
                for (y, &x) in y.iter_mut().zip(&part[offset..]) {
                    *y = *y + x;
                }
            }
        },
    );
}

/// What all partial sums have in common.
struct Sums<'a, T> {
    plan: &'a Plan,
    size: [usize; 3],
    x: &'a [T],
    dy: &'a [T],
    with_bias: bool,
}

impl<T: Real> Sums<'_, T> {
    /// Sums the tiles for `cols` channels from channel `first` on into `partial`: the rows of the filter, then one for the
    /// bias, each `y_channels` after the one before.
    ///
    /// # Safety
    /// As for `filter_gradient`; the elements of `partial` are writable.
    unsafe fn compute(&self, tiles: Range<usize>, (first, cols): (usize, usize), partial: *mut T) {
        let (plan, stride) = (self.plan, self.plan.y_channels);
        let rows = plan.taps() * plan.x_channels;
        for row in 0..rows + 1 {
            // SAFETY: the caller's promise.
            unsafe { std::slice::from_raw_parts_mut(partial.add(row * stride), cols) }.fill(T::zero());
        }
        with_scratch(Window::<T>::size(plan, self.size), |copy: &mut [T]| {
            with_scratch(rows + self.size[0] * self.size[1], |offsets: &mut [isize]| {
                for index in tiles {
                    let tile = Tile::new(plan, self.size, index);
                    // SAFETY: the row after those of the filter.
                    let db = unsafe { std::slice::from_raw_parts_mut(partial.add(rows * stride), cols) };
                    self.add_bias(&tile, first, db);
                    let window = Window::new(plan, &tile, self.x, copy);
                    // SAFETY: `x` and `copy` are alive; the caller's promise.
                    unsafe {
                        window.fetch();
                        self.add_filter(&tile, &window, (first, cols), partial, offsets);
                    }
                }
            });
        });
    }

    /// Where channel `first` of line `line` of the tile begins in `dy`.
    fn line(&self, tile: &Tile, line: usize, first: usize) -> usize {
        let axes = &self.plan.axes;
        let plane = tile.item * axes[0].y + tile.first[0] + line / tile.count[1];
        let row = plane * axes[1].y + tile.first[1] + line % tile.count[1];
        (row * axes[2].y + tile.first[2]) * self.plan.y_channels + first
    }

    /// Adds the sums over the tile to `db`, or at least brings its part of `dy` into the caches.
    fn add_bias(&self, tile: &Tile, first: usize, db: &mut [T]) {
        let (stride, cols) = (self.plan.y_channels, db.len());
        let lines = (0..tile.count[0] * tile.count[1]).map(|line| {
            let at = self.line(tile, line, first);
            &self.dy[at..at + (tile.count[2] - 1) * stride + cols]
        });
        if self.with_bias {
            with_scratch(cols, |sum: &mut [T]| add_columns(lines, stride, sum, db));
        } else {
            // SAFETY: a slice.
            lines.for_each(|line| unsafe { fetch(line.as_ptr(), (1, line.len()), 0) });
        }
    }

    /// Adds the products of the tile to the rows of the filter.
    ///
    /// # Safety
    /// As for `compute`, and `window` belongs to `tile`.
    unsafe fn add_filter(
        &self,
        tile: &Tile,
        window: &Window<T>,
        (first, cols): (usize, usize),
        partial: *mut T,
        offsets: &mut [isize],
    ) {
        let (axes, stride) = (&self.plan.axes, self.plan.y_channels);
        let (rows, starts) = offsets.split_at_mut(self.plan.taps() * self.plan.x_channels);
        let (segments, run) = self.plan.segments(window.strides);
        for (segment, rows) in segments.iter().zip(rows.chunks_exact_mut(run.max(1))) {
            for (k, row) in rows.iter_mut().enumerate() {
                *row = segment + k as isize;
            }
        }
        let step = [0, 1, 2].map(|d| axes[d].x_step as isize * window.strides[d]);
        Tile { count: [tile.count[0], tile.count[1], 1], ..*tile }.offsets(step, starts);
        // Lines of one plane lie at equal distances in `dy`, those of several planes only if the planes are whole.
        let even = tile.count[0] == 1 || tile.count[1] == axes[1].y;
        let lines = if even { tile.count[0] * tile.count[1] } else { tile.count[1] };
        for (i, starts) in starts[..tile.count[0] * tile.count[1]].chunks(lines).enumerate() {
            let panel = Panel {
                a: window.start,
                a_rows: Rows::Table(rows),
                a_step: step[2],
                segments: starts,
                run: tile.count[2],
                b: self.dy.as_ptr().wrapping_add(self.line(tile, i * lines, first)),
                b_stride: stride,
                b_segment: axes[2].y * stride,
                c: partial,
                c_rows: Rows::Stride(stride as isize),
                rows: rows.len(),
                cols,
                start: Start::Accumulate,
            };
            // SAFETY: the rows of the panel are those of the filter, its columns are channels of `dy`, and its sums run
            // over results of this tile.
            unsafe { panel.compute() };
        }
    }
}

/// Adds the sums of the columns of all lines to `db`; rows of a line lie `stride` apart. The tile is summed by itself
/// first, which keeps long sums accurate.
fn add_columns<'a, T: Real>(
    lines: impl Iterator<Item = &'a [T]>,
    stride: usize,
    sum: &mut [T],
    db: &mut [T],
) {
    vectorized(
        #[inline(always)]
        || {
            sum.fill(T::zero());
            for line in lines {
                for row in line.chunks(stride) {
                    for (sum, &x) in sum.iter_mut().zip(row) {
                        *sum = *sum + x;
                    }
                }
            }
            for (db, &x) in db.iter_mut().zip(&*sum) {
                *db = *db + x;
            }
        },
    );
}
