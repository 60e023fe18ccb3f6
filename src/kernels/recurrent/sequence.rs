//! An LSTM over a sequence.
//!
//! Each step is cut into blocks of units with all four of their gates. The weights of a block are packed once for all steps;
//! a chunk multiplies the last outputs with them and computes the gates of its block while they are in the caches.

use std::ops::Range;

use super::super::gemm::{CHUNK_WORK, Matrix, gemm};
use super::super::micro::{Panel, Rows, Start, panel_width};
use super::super::pack::pack_panel;
use super::super::parallel::{SendPtr, for_each, for_each_chunk_mut};
use super::super::real::Real;
use super::super::scratch::with_scratch;
use super::lstm::{Slopes, Step};

/// Rows of weights that are multiplied at a time: a panel of them stays in a first-level cache.
const DEPTH: usize = 256;
/// Rows of the batch in a chunk, so that the last outputs stay in the second-level cache.
const CHUNK_ROWS: usize = 240;
/// Arguments of gates that are computed before the steps that need them.
const AHEAD: usize = 1 << 18;
const GATES: usize = 4;

/// The sizes of a sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence {
    pub(crate) steps: usize,
    pub(crate) batch: usize,
    pub(crate) hidden: usize,
}

/// A step cut into chunks of rows and blocks of units.
struct Grid {
    batch: usize,
    rows: usize,
    blocks: usize,
    each: usize,
}

impl Grid {
    /// `work`: multiplications for one row of one block.
    fn new(batch: usize, blocks: usize, work: usize) -> Self {
        let rows = batch.div_ceil(batch.div_ceil(CHUNK_ROWS).max(1)).max(1);
        let each = CHUNK_WORK.div_ceil((rows * work).max(1)).clamp(1, blocks.max(1));
        Grid { batch, rows, blocks, each }
    }

    /// Calls `f` with rows and a block of each chunk, block after block.
    fn for_each(&self, f: impl Fn(Range<usize>, usize) + Sync) {
        let right = self.blocks.div_ceil(self.each);
        for_each(self.batch.div_ceil(self.rows) * right, |chunk| {
            let (i, j) = (chunk / right * self.rows, chunk % right * self.each);
            for block in j..self.blocks.min(j + self.each) {
                f(i..self.batch.min(i + self.rows), block);
            }
        });
    }
}

/// A matrix cut into panels of columns, each of which lies together.
struct Panels<'a, T> {
    packed: &'a [T],
    depth: usize,
    width: usize,
}

impl<T: Real> Panels<'_, T> {
    /// Calls `f` with panels of the columns that `columns` gives for each number from 0 to `count`.
    fn with<R>(
        w: Matrix<'_, T>,
        count: usize,
        columns: impl Fn(usize) -> Range<usize> + Sync,
        f: impl FnOnce(Panels<'_, T>) -> R,
    ) -> R {
        let (depth, width) = (w.rows, panel_width::<T>());
        with_scratch(count * depth * width, |packed: &mut [T]| {
            for_each_chunk_mut(packed, depth * width, |number, panel| {
                let columns = columns(number);
                assert!(columns.end <= w.cols, "panels lie within the matrix");
                let strides = (w.row_stride, w.col_stride);
                // SAFETY: the columns are those of the matrix, which has checked that its elements exist.
                unsafe { pack_panel(w.at(0, columns.start), (depth, columns.len()), strides, panel, width) };
            });
            f(Panels { packed, depth, width })
        })
    }

    /// `c = a w` or `c += a w` for some rows and the columns of panel `number`. Rows of `a` are `depth` numbers long, those of
    /// `c` begin every `c_stride` numbers.
    ///
    /// # Safety
    /// The rows of `a` are readable, and `cols` numbers of each row of `c` writable; nobody else writes them meanwhile.
    unsafe fn multiply(
        &self,
        a: *const T,
        rows: usize,
        (number, cols): (usize, usize),
        (c, c_stride): (*mut T, usize),
        start: Start<T>,
    ) {
        let panel = &self.packed[number * self.depth * self.width..(number + 1) * self.depth * self.width];
        for k in (0..self.depth.max(1)).step_by(DEPTH) {
            let part = Panel {
                a: a.wrapping_add(k),
                a_rows: Rows::Stride(self.depth as isize),
                a_step: 1,
                segments: &[0],
                run: DEPTH.min(self.depth - k),
                b: panel.as_ptr().wrapping_add(k * self.width),
                b_stride: self.width,
                b_segment: 0,
                c,
                c_rows: Rows::Stride(c_stride as isize),
                rows,
                cols,
                start: if k == 0 { start } else { Start::Accumulate },
            };
            // SAFETY: the caller's promise; the panel has `depth` rows.
            unsafe { part.compute() };
        }
    }
}

/// The units of a block.
fn units(block: usize, width: usize, hidden: usize) -> Range<usize> {
    block * width..hidden.min((block + 1) * width)
}

/// An LSTM over a sequence: `gates[t] = x[t] w_i + y[t - 1] w_h + b`, then [`lstm_cell`](super::lstm_cell), from the first step
/// to the last.
///
/// The rows of `x`, `gates`, `cells` and `ys` lie step by step; `h` and `c` are the output and the cell before the first one.
pub(crate) fn lstm_sequence<T: Real>(
    size: Sequence,
    x: Matrix<'_, T>,
    (w_i, w, b): (Matrix<'_, T>, Matrix<'_, T>, &[T]),
    (h, c): (&[T], &[T]),
    gates: &mut [T],
    cells: &mut [T],
    ys: &mut [T],
) {
    let Sequence { steps, batch, hidden } = size;
    let step = batch * hidden;
    assert!(w.rows == hidden && w.cols == GATES * hidden, "weights of the state");
    assert!(h.len() == step && c.len() == step, "the state before the first step");
    assert!(gates.len() == GATES * steps * step && cells.len() == steps * step && ys.len() == steps * step);
    let width = panel_width::<T>();
    let blocks = hidden.div_ceil(width);
    let columns = |panel: usize| {
        let (units, gate) = (units(panel / GATES, width, hidden), panel % GATES);
        gate * hidden + units.start..gate * hidden + units.end
    };
    let grid = Grid::new(batch, blocks, GATES * hidden * width);
    let (cells, ys) = (SendPtr(cells.as_mut_ptr()), SendPtr(ys.as_mut_ptr()));
    // As many steps as stay in a cache until it is their turn.
    let ahead = AHEAD.div_ceil((GATES * step).max(1));
    Panels::with(w, GATES * blocks, columns, |panels| {
        for t in 0..steps {
            if t % ahead == 0 {
                let count = ahead.min(steps - t);
                let to = &mut gates[GATES * t * step..GATES * (t + count) * step];
                gemm(x.rows_from(t * batch, count * batch), w_i, to, false, Some(b));
            }
            let gates = SendPtr(gates.as_mut_ptr());
            grid.for_each(|rows, block| {
                // SAFETY: all offsets lie within slices whose sizes were just checked. Chunks write different rows or units of
                // step `t`; what they read of the step before was written when its loop ended.
                unsafe {
                    let (gates, cell, y) = (
                        gates.get().add(GATES * t * step),
                        cells.get().add(t * step),
                        ys.get().add(t * step),
                    );
                    let (last, before) = match t {
                        0 => (h.as_ptr(), c.as_ptr()),
                        _ => (y.cast_const().sub(step), cell.cast_const().sub(step)),
                    };
                    let units = units(block, width, hidden);
                    for gate in 0..GATES {
                        let to = gates.add((GATES * rows.start + gate) * hidden + units.start);
                        panels.multiply(
                            last.add(rows.start * hidden),
                            rows.len(),
                            (GATES * block + gate, units.len()),
                            (to, GATES * hidden),
                            Start::Accumulate,
                        );
                    }
                    Step { gates, before, cell, y, hidden }.run(rows, units);
                }
            });
        }
    });
}

/// What the gradients of [`lstm_sequence`] start from.
#[derive(Clone, Copy)]
pub(crate) struct SequenceGradients<'a, T> {
    pub(crate) size: Sequence,
    /// The weights.
    pub(crate) w: Matrix<'a, T>,
    /// The cell before the first step.
    pub(crate) c: &'a [T],
    /// The gates after their functions.
    pub(crate) gates: &'a [T],
    pub(crate) cells: &'a [T],
    /// What reaches the outputs, if anything does.
    pub(crate) dys: Option<&'a [T]>,
    /// What reaches the cells, if anything does.
    pub(crate) dcells: Option<&'a [T]>,
}

/// Gradients of [`lstm_sequence`] from the last step to the first: of the arguments of the gates, and of the state before
/// the first step.
pub(crate) fn lstm_sequence_gradients<T: Real>(
    forward: SequenceGradients<'_, T>,
    dgates: &mut [T],
    dh: &mut [T],
    dc: &mut [T],
) {
    let SequenceGradients { size: Sequence { steps, batch, hidden }, w, c, gates, cells, dys, dcells } =
        forward;
    let step = batch * hidden;
    assert!(w.rows == hidden && w.cols == GATES * hidden, "weights of the state");
    assert!(c.len() == step && dh.len() == step && dc.len() == step, "the state before the first step");
    assert!(
        gates.len() == GATES * steps * step && dgates.len() == gates.len() && cells.len() == steps * step
    );
    assert!(dys.is_none_or(|d| d.len() == steps * step) && dcells.is_none_or(|d| d.len() == steps * step));
    let width = panel_width::<T>();
    let blocks = hidden.div_ceil(width);
    let grid = Grid::new(batch, blocks, GATES * hidden * width);
    dh.fill(T::zero());
    dc.fill(T::zero());
    let (dgates, dh, dc) = (SendPtr(dgates.as_mut_ptr()), SendPtr(dh.as_mut_ptr()), SendPtr(dc.as_mut_ptr()));
    Panels::with(
        w.transposed(),
        blocks,
        |block| units(block, width, hidden),
        |panels| {
            // Before step `t`, `dh` is what reaches its output from the steps behind it.
            let back = |t: usize, rows: Range<usize>, block: usize| {
                let units = units(block, width, hidden);
                // SAFETY: all offsets lie within slices whose sizes were just checked. Chunks write different rows or units of
                // `dh`; the gradients of the gates of step `t` were written when its loop ended.
                unsafe {
                    panels.multiply(
                        dgates.get().add(GATES * (t * step + rows.start * hidden)),
                        rows.len(),
                        (block, units.len()),
                        (dh.get().add(rows.start * hidden + units.start), hidden),
                        Start::Zero,
                    );
                }
            };
            for t in (0..steps).rev() {
                grid.for_each(|rows, block| {
                    if t + 1 < steps {
                        back(t + 1, rows.clone(), block);
                    }
                    // SAFETY: as above; chunks write different rows or units of step `t` and of `dc`.
                    unsafe {
                        let at = |x: &[T]| x.as_ptr().add(t * step);
                        let slopes = Slopes {
                            gates: gates.as_ptr().add(GATES * t * step),
                            before: if t == 0 { c.as_ptr() } else { cells.as_ptr().add((t - 1) * step) },
                            cell: at(cells),
                            dy: [dys.map(at), Some(dh.get().cast_const())],
                            dcell: [dcells.map(at), Some(dc.get().cast_const())],
                            dgates: dgates.get().add(GATES * t * step),
                            dbefore: dc.get(),
                            hidden,
                        };
                        slopes.run(rows, units(block, width, hidden));
                    }
                });
            }
            if steps > 0 {
                grid.for_each(|rows, block| back(0, rows, block));
            }
        },
    );
}
