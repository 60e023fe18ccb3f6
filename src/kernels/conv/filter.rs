//! The gradients of the filter and of the bias.

use super::plan::{Plan, Tile, Window};
use crate::kernels::gemm::{CHUNK_WORK, Real};
use crate::kernels::micro::{Panel, Rows, Start, panel_width};
use crate::kernels::parallel::{SendPtr, for_each, for_each_chunk_mut};
use crate::kernels::scratch::with_scratch;
use crate::kernels::simd::vectorized;

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
    let with_bias = db.is_some();
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

    with_scratch(groups * part, |parts: &mut [T]| {
        let partial = SendPtr(parts.as_mut_ptr());
        for_each(groups * cuts, |chunk| {
            let (index, first) = (chunk / cuts, chunk % cuts * cols);
            let tiles = index * group..tiles.min((index + 1) * group);
            let cols = cols.min(channels - first);
            // SAFETY: the caller's promise; each chunk has its own columns of its own partial sum.
            unsafe {
                let partial = partial.get().add(index * part + first);
                sum_tiles(plan, size, tiles, x, dy, (partial, dw_rows(plan)), (first, cols), with_bias);
            }
        });
        let parts = &*parts;
        for_each_chunk_mut(dw, (1 << 14) / groups + 1, |chunk, dw| {
            add_parts(parts, part, chunk * ((1 << 14) / groups + 1), dw);
        });
        if let Some(db) = db {
            add_parts(parts, part, part - channels, db);
        }
    });
}

fn dw_rows(plan: &Plan) -> usize {
    plan.taps() * plan.x_channels
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

/// Sums the tiles for the columns from `first` on into `partial`, whose rows lie `y_channels` apart; the bias comes after
/// the `rows` rows of the filter.
///
/// # Safety
/// As for `filter_gradient`; `partial` is writable for `rows + 1` rows.
#[expect(clippy::too_many_arguments, reason = "the body of a loop, cut out for its length")]
unsafe fn sum_tiles<T: Real>(
    plan: &Plan,
    size: [usize; 3],
    tiles: std::ops::Range<usize>,
    x: &[T],
    dy: &[T],
    (partial, rows): (*mut T, usize),
    (first, cols): (usize, usize),
    with_bias: bool,
) {
    let channels = plan.y_channels;
    // SAFETY: the rows that the caller promises.
    unsafe {
        for row in 0..rows + 1 {
            std::slice::from_raw_parts_mut(partial.add(row * channels), cols).fill(T::zero());
        }
    }
    with_scratch(Window::<T>::size(plan, size), |copy: &mut [T]| {
        with_scratch(rows + size[0] * size[1], |offsets: &mut [isize]| {
            let (row_offsets, starts) = offsets.split_at_mut(rows);
            for index in tiles {
                let tile = Tile::new(plan, size, index);
                let window = Window::new(plan, &tile, x, copy);
                let (segments, run) = plan.segments(window.strides);
                for (s, segment) in segments.iter().enumerate() {
                    for (k, offset) in row_offsets[s * run..(s + 1) * run].iter_mut().enumerate() {
                        *offset = segment + k as isize;
                    }
                }
                let axes = &plan.axes;
                let lines = tile.count[0] * tile.count[1];
                let lead = Tile { count: [tile.count[0], tile.count[1], 1], ..tile };
                lead.offsets([0, 1, 2].map(|d| axes[d].x_step as isize * window.strides[d]), starts);
                let dy_at = |i: usize, j: usize| {
                    let plane = tile.item * axes[0].y + tile.first[0] + i;
                    let line = plane * axes[1].y + tile.first[1] + j;
                    ((line * axes[2].y) + tile.first[2]) * channels + first
                };
                // Lines of `dy` in one plane are at equal distances; those of several planes are if planes are whole.
                let even = tile.count[0] == 1 || tile.count[1] == axes[1].y;
                let planes = if even { 1 } else { tile.count[0] };
                for i in 0..planes {
                    let lines = lines / planes;
                    let panel = Panel {
                        a: window.start,
                        a_rows: Rows::Table(row_offsets),
                        a_step: axes[2].x_step as isize * window.strides[2],
                        segments: &starts[i * lines..(i + 1) * lines],
                        run: tile.count[2],
                        b: dy.as_ptr().wrapping_add(dy_at(i, 0)),
                        b_stride: channels,
                        b_segment: axes[2].y * channels,
                        c: partial,
                        c_rows: Rows::Stride(channels as isize),
                        rows,
                        cols,
                        start: Start::Accumulate,
                    };
                    // SAFETY: the rows of the panel are those of the filter, its columns lie in `dy`, its inner
                    // positions are the results of this tile.
                    unsafe { panel.compute() };
                }
                if with_bias {
                    let lines = (0..lines).map(|line| {
                        let at = dy_at(line / tile.count[1], line % tile.count[1]);
                        &dy[at..at + (tile.count[2] - 1) * channels + cols]
                    });
                    // SAFETY: the row after those of the filter.
                    let db = unsafe { std::slice::from_raw_parts_mut(partial.add(rows * channels), cols) };
                    with_scratch(cols, |sum: &mut [T]| add_columns(lines, channels, sum, db));
                }
            }
        });
    });
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
