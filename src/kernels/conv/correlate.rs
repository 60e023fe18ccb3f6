//! The forward pass, and the gradient of the input, which is another one.

use super::plan::{Plan, Tile, Window};
use crate::kernels::gemm::{CHUNK_WORK, Real};
use crate::kernels::micro::{Dots, Panel, Rows, Start, panel_width};
use crate::kernels::parallel::{SendPtr, for_each};
use crate::kernels::scratch::with_scratch;

/// Bytes of input that a tile reads: they stay in the first-level cache beside a block of the filter.
const WINDOW_BYTES: usize = 192 << 10;
/// Results in a tile.
const TILE_POSITIONS: usize = 1 << 10;
/// Rows of the filter that are used at a time.
const DEPTH: usize = 256;
/// Chunks of work that are made of few tiles at least, by giving each a part of the channels.
const CHUNKS: usize = 16;

/// Channels of the result up to which, and of the input from which, vectors run along the input.
const FEW_CHANNELS: usize = 4;
const MANY_CHANNELS: usize = 8;

/// Computes `plan` for all items of the batch.
///
/// # Safety
/// `x` and `y` have the sizes that the plan names, `w` holds `[taps, x_channels, y_channels]` in the order of the plan,
/// a bias `y_channels`.
pub(super) unsafe fn correlate<T: Real>(plan: &Plan, x: &[T], w: &[T], start: Start<T>, y: &mut [T]) {
    let channels = plan.y_channels;
    if channels <= FEW_CHANNELS && plan.x_channels >= MANY_CHANNELS {
        let rows = plan.taps() * plan.x_channels;
        with_scratch(rows * channels, |columns: &mut [T]| {
            for (j, column) in columns.chunks_exact_mut(rows.max(1)).enumerate() {
                column.iter_mut().zip(w.chunks_exact(channels)).for_each(|(column, w)| *column = w[j]);
            }
            // SAFETY: the caller's promise; the columns are those of `w`.
            unsafe { tiles(plan, x, Filter::Columns(columns), start, y) };
        });
    } else {
        // SAFETY: the caller's promise.
        unsafe { tiles(plan, x, Filter::Rows(w), start, y) };
    }
}

/// A filter in the order in which the inner loop reads it.
#[derive(Clone, Copy)]
enum Filter<'a, T> {
    /// `[taps, x_channels, y_channels]`.
    Rows(&'a [T]),
    /// `[y_channels, taps, x_channels]`.
    Columns(&'a [T]),
}

/// Shares the tiles out to the threads.
///
/// # Safety
/// As for `correlate`.
unsafe fn tiles<T: Real>(plan: &Plan, x: &[T], w: Filter<'_, T>, start: Start<T>, y: &mut [T]) {
    let size = plan.tile(WINDOW_BYTES / size_of::<T>(), TILE_POSITIONS);
    let tiles = Tile::number(plan, size);
    if tiles == 0 || plan.y_channels == 0 {
        return;
    }
    let width = panel_width::<T>();
    let parts = plan.y_channels.div_ceil(width).min(CHUNKS.div_ceil(tiles));
    let cols = plan.y_channels.div_ceil(parts).next_multiple_of(width);
    let parts = plan.y_channels.div_ceil(cols);
    let work = plan.work() / parts * size.iter().product::<usize>();
    let group = CHUNK_WORK.div_ceil(work.max(1));
    let y = SendPtr(y.as_mut_ptr());
    for_each(tiles.div_ceil(group) * parts, |chunk| {
        let (group_index, first) = (chunk / parts, chunk % parts * cols);
        let channels = (first, cols.min(plan.y_channels - first));
        with_scratch(Window::<T>::size(plan, size), |copy: &mut [T]| {
            with_scratch(2 * size.iter().product::<usize>(), |offsets: &mut [isize]| {
                for index in group_index * group..tiles.min((group_index + 1) * group) {
                    let tile = Tile::new(plan, size, index);
                    let window = Window::new(plan, &tile, x, copy);
                    let (x_offsets, y_offsets) = offsets.split_at_mut(offsets.len() / 2);
                    let y = y.get().wrapping_add(places(plan, &tile, &window, x_offsets, y_offsets));
                    let results = Results { y, x_offsets, y_offsets, channels, start };
                    // SAFETY: the caller's promise; tiles do not overlap in `y`.
                    unsafe {
                        match w {
                            Filter::Rows(w) => by_columns(plan, &tile, &window, w, results),
                            Filter::Columns(w) => by_sums(plan, &tile, &window, w, results),
                        }
                    }
                }
            });
        });
    });
}

/// Writes down where each result of the tile reads and lies, relative to the first; the place of the first in `y`.
fn places<T: Real>(
    plan: &Plan,
    tile: &Tile,
    window: &Window<T>,
    x_offsets: &mut [isize],
    y_offsets: &mut [isize],
) -> usize {
    let axes = &plan.axes;
    tile.offsets([0, 1, 2].map(|d| axes[d].x_step as isize * window.strides[d]), x_offsets);
    let rows = axes[2].y * plan.y_channels;
    let strides = [axes[1].y * rows, rows, plan.y_channels];
    tile.offsets([0, 1, 2].map(|d| (axes[d].y_step * strides[d]) as isize), y_offsets);
    let first = |d: usize| (axes[d].y_first + axes[d].y_step * tile.first[d]) * strides[d];
    tile.item * axes[0].y * strides[0] + first(0) + first(1) + first(2)
}

/// The results of a tile.
#[derive(Clone, Copy)]
struct Results<'a, T> {
    /// The first.
    y: *mut T,
    x_offsets: &'a [isize],
    y_offsets: &'a [isize],
    /// The first of the channels to compute, and how many.
    channels: (usize, usize),
    start: Start<T>,
}

/// One tile, with vectors along the channels of the result.
///
/// # Safety
/// As for `correlate`; `window` and `to` belong to `tile`.
unsafe fn by_columns<T: Real>(plan: &Plan, tile: &Tile, window: &Window<T>, w: &[T], to: Results<'_, T>) {
    let (first, cols) = to.channels;
    let (segments, run) = plan.segments(window.strides);
    let mut panel = Panel {
        a: window.start,
        a_rows: Rows::Table(to.x_offsets),
        a_step: 1,
        segments: &[],
        run: 0,
        b: w.as_ptr(),
        b_stride: plan.y_channels,
        b_segment: run * plan.y_channels,
        c: to.y.wrapping_add(first),
        c_rows: Rows::Table(to.y_offsets),
        rows: tile.positions(),
        cols,
        start: to.start.skip_columns(first),
    };
    if segments.is_empty() || run == 0 {
        // Nothing reaches these results.
        // SAFETY: only the results and the bias are touched.
        return unsafe { panel.compute() };
    }
    // Either several whole runs at a time, or a part of one.
    let group = (DEPTH / run).max(1);
    let part = run.div_ceil(run.div_ceil(DEPTH));
    for (s, segments) in segments.chunks(group).enumerate() {
        for k in (0..run).step_by(part) {
            panel.a = window.start.wrapping_add(k);
            panel.segments = segments;
            panel.run = part.min(run - k);
            panel.b = w.as_ptr().wrapping_add((s * group * run + k) * plan.y_channels + first);
            // SAFETY: the offsets reach what the window covers, `b` the rows of the filter that belong to the runs, and
            // the results are those of this tile.
            unsafe { panel.compute() };
            panel.start = Start::Accumulate;
        }
    }
}

/// One tile, with vectors along the channels of the input; for few channels of the result, which are not cut.
///
/// # Safety
/// As for `by_columns`, `w` being turned into columns.
unsafe fn by_sums<T: Real>(plan: &Plan, tile: &Tile, window: &Window<T>, w: &[T], to: Results<'_, T>) {
    let (segments, run) = plan.segments(window.strides);
    let dots = Dots {
        a: window.start,
        a_rows: Rows::Table(to.x_offsets),
        segments: &segments,
        run,
        b: w.as_ptr(),
        b_col: segments.len() * run,
        c: to.y,
        c_rows: Rows::Table(to.y_offsets),
        rows: tile.positions(),
        cols: plan.y_channels,
        start: to.start,
    };
    // SAFETY: the offsets reach what the window covers, the columns hold one number for each element of the runs, and
    // the results are those of this tile.
    unsafe { dots.compute() };
}
