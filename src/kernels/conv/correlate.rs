//! The forward pass, and the gradient of the input, which is another one.

use super::plan::{Plan, Tile, Window};
use crate::kernels::gemm::{CHUNK_WORK, Real, SendStart};
use crate::kernels::micro::{Panel, Rows, Start, panel_width};
use crate::kernels::parallel::{SendPtr, for_each};
use crate::kernels::scratch::with_scratch;

/// Bytes of input that a tile reads: they stay in the first-level cache beside a block of the filter.
const WINDOW_BYTES: usize = 32 << 10;
/// Results in a tile.
const TILE_POSITIONS: usize = 1 << 10;
/// Rows of the filter that are used at a time.
const DEPTH: usize = 256;
/// Chunks of work that are made of few tiles at least, by giving each a part of the channels.
const CHUNKS: usize = 16;

/// Computes `plan` for all items of the batch.
///
/// # Safety
/// `x` and `y` have the sizes that the plan names, `w` holds `[taps, x_channels, y_channels]` in the order of the plan,
/// a bias `y_channels`.
pub(super) unsafe fn correlate<T: Real>(plan: &Plan, x: &[T], w: &[T], start: Start<T>, y: &mut [T]) {
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
    let start = SendStart(start);
    for_each(tiles.div_ceil(group) * parts, |chunk| {
        let (group_index, first) = (chunk / parts, chunk % parts * cols);
        let channels = (first, cols.min(plan.y_channels - first));
        with_scratch(Window::<T>::size(plan, size), |copy: &mut [T]| {
            with_scratch(2 * size.iter().product::<usize>(), |offsets: &mut [isize]| {
                for index in group_index * group..tiles.min((group_index + 1) * group) {
                    let tile = Tile::new(plan, size, index);
                    let window = Window::new(plan, &tile, x, copy);
                    // SAFETY: the caller's promise; tiles do not overlap in `y`.
                    unsafe { compute_tile(plan, &tile, &window, w, start.get(), y.get(), channels, offsets) };
                }
            });
        });
    });
}

/// One tile, for the channels `first` to `first + cols - 1`.
///
/// # Safety
/// As for `correlate`, and `window` belongs to `tile`.
#[expect(clippy::too_many_arguments, reason = "the body of a loop, cut out for its length")]
unsafe fn compute_tile<T: Real>(
    plan: &Plan,
    tile: &Tile,
    window: &Window<T>,
    w: &[T],
    start: Start<T>,
    y: *mut T,
    (first, cols): (usize, usize),
    offsets: &mut [isize],
) {
    let axes = &plan.axes;
    let (x_offsets, y_offsets) = offsets.split_at_mut(offsets.len() / 2);
    tile.offsets([0, 1, 2].map(|d| axes[d].x_step as isize * window.strides[d]), x_offsets);
    let y_strides = [axes[1].y * axes[2].y * plan.y_channels, axes[2].y * plan.y_channels, plan.y_channels]
        .map(|n| n as isize);
    tile.offsets([0, 1, 2].map(|d| axes[d].y_step as isize * y_strides[d]), y_offsets);
    let y_first: usize = (0..3)
        .map(|d| (axes[d].y_first + axes[d].y_step * tile.first[d]) * y_strides[d] as usize)
        .sum::<usize>()
        + tile.item * axes[0].y * y_strides[0] as usize;

    let (segments, run) = plan.segments(window.strides);
    // Either several whole runs at a time, or a part of one.
    let group = (DEPTH / run.max(1)).max(1);
    let part = run.div_ceil(run.div_ceil(DEPTH).max(1)).max(1);
    let mut start = start.from_column(first);
    for (s, segments) in segments.chunks(group).enumerate() {
        for k in (0..run).step_by(part) {
            let row = s * group * run + k;
            let panel = Panel {
                a: window.start.wrapping_add(k),
                a_rows: Rows::Table(x_offsets),
                a_step: 1,
                segments,
                run: part.min(run - k),
                b: w.as_ptr().wrapping_add(row * plan.y_channels + first),
                b_stride: plan.y_channels,
                b_segment: run * plan.y_channels,
                c: y.wrapping_add(y_first + first),
                c_rows: Rows::Table(y_offsets),
                rows: tile.positions(),
                cols,
                start,
            };
            // SAFETY: the offsets reach what the window covers, the rows of the filter from `row` on, and the results
            // of this tile.
            unsafe { panel.compute() };
            start = Start::Accumulate;
        }
    }
    if segments.is_empty() || run == 0 {
        // Nothing reaches these results.
        let panel = Panel {
            a: window.start,
            a_rows: Rows::Table(x_offsets),
            a_step: 1,
            segments: &[],
            run: 0,
            b: w.as_ptr(),
            b_stride: 0,
            b_segment: 0,
            c: y.wrapping_add(y_first + first),
            c_rows: Rows::Table(y_offsets),
            rows: tile.positions(),
            cols,
            start,
        };
        // SAFETY: only the results are touched.
        unsafe { panel.compute() };
    }
}
