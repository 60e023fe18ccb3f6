//! The walk that all reductions share.
//!
//! The walk knows neither op nor element type: it handles addresses, and a [`Fold`] does the arithmetic. It folds either
//! runs of elements that belong to one result, or rows of elements that belong to neighbouring results; what lies
//! otherwise is gathered into a small buffer first. Long reductions are cut into pieces, by size alone, and the pieces
//! merged in order, so that results do not depend on the number of threads.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::super::blocks::{CHUNK, SERIAL};
use super::super::gather::{self, distance};
use super::super::layout::{Loops, MAX_DIMS, View};
use super::super::parallel::{self, SendPtr};

/// Results folded at a time.
const BLOCK: usize = 256;
/// Elements gathered at a time.
const GATHERED: usize = 2048;
/// Elements of a piece of a long reduction, at least, and the most pieces.
const PIECE: usize = 4 * CHUNK;
const MOST_PIECES: usize = 64;
/// With this many tasks there is no need for pieces.
const MANY_TASKS: usize = 16;
/// Runs of this length and more are folded one after the other.
const LONG_RUN: usize = 32;
/// With fewer neighbouring results than this, runs are folded even if they have to be gathered.
const FEW_RESULTS: usize = 8;
/// Narrow rows that follow each other are taken together, up to this width.
const WIDE: usize = 64;
/// Bytes of an element or a state, at most.
const LARGEST: usize = 16;

/// The arithmetic of a reduction. Elements are folded into states, one a result; the states of parts are merged.
///
/// # Safety
/// Methods touch only the elements, states and results that their arguments describe, all of the sizes in `sizes`.
pub(super) unsafe trait Fold: Sync {
    /// Bytes of an element, of a state and of a result; at most 16, and so aligned.
    fn sizes(&self) -> [usize; 3];

    /// Whether states depend on the positions of elements, as an index of the largest does.
    fn positional(&self) -> bool;

    /// Writes `n` states of nothing.
    ///
    /// # Safety
    /// There is room for them.
    unsafe fn start(&self, states: *mut u8, n: usize);

    /// Folds `n` elements side by side at `x`, the first at position `first`, into one state.
    ///
    /// # Safety
    /// The elements and the state are there and do not change meanwhile.
    unsafe fn run(&self, state: *mut u8, x: *const u8, n: usize, first: usize);

    /// Folds `rows` rows of `columns` elements, `pitch` bytes apart, the first at position `first`, into one state a
    /// column.
    ///
    /// # Safety
    /// The elements and the states are there and do not change meanwhile.
    unsafe fn rows(
        &self,
        states: *mut u8,
        x: *const u8,
        pitch: isize,
        rows: usize,
        columns: usize,
        first: usize,
    );

    /// Folds `n` states at `others` into those at `states`, which stand for earlier elements.
    ///
    /// # Safety
    /// Both are there and apart.
    unsafe fn merge(&self, states: *mut u8, others: *const u8, n: usize);

    /// Writes the results of `n` states, `step` results apart.
    ///
    /// # Safety
    /// The states are there, and room for the results.
    unsafe fn finish(&self, states: *const u8, n: usize, y: *mut u8, step: usize);
}

/// Reduces `x` over the dims marked in `reduced`. The results go to `y`, row-major over the other dims. `None`, with
/// nothing written, if there are too many loops; a dense `x` with the reduced dims last never has.
///
/// # Safety
/// Elements of `x` have the size that `fold` works on, and `y` has room for all results and is not used meanwhile.
pub(super) unsafe fn reduce<T: Sync>(
    x: View<T>,
    reduced: &[bool],
    y: *mut u8,
    fold: &dyn Fold,
) -> Option<()> {
    let mut walk = Walk::new(x.origin().cast(), x.shape(), x.strides(), reduced, fold)?;
    walk.choose();
    walk.run(y);
    Some(())
}

/// A buffer on the stack, for `N` elements or states.
#[repr(C, align(64))]
struct Room<const N: usize>([MaybeUninit<[u8; LARGEST]>; N]);

impl<const N: usize> Room<N> {
    #[inline(always)]
    fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; N])
    }

    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

struct Walk<'a> {
    fold: &'a dyn Fold,
    origin: *const u8,
    size: usize,
    state: usize,
    result: usize,
    /// The kept dims, with strides in `x` and `y`; the last loop is the one whose results are neighbours.
    kept: Loops<2>,
    reduced: Loops<1>,
    results: usize,
    elements: usize,
    /// Whether runs are folded, else rows.
    runs: bool,
    /// Results of a task and the number of tasks a loop over them takes.
    block: usize,
    blocks: usize,
    /// Elements that a task folds into each of its results, and the number of such pieces.
    piece: usize,
    pieces: usize,
}

// SAFETY: `reduce` demands `T: Sync`, and the address is read from only.
unsafe impl Sync for Walk<'_> {}

impl<'a> Walk<'a> {
    fn new(
        mut origin: *const u8,
        shape: &[usize],
        strides: &[isize],
        reduced: &[bool],
        fold: &'a dyn Fold,
    ) -> Option<Self> {
        let [size, state, result] = fold.sizes();
        let elements = shape.iter().product::<usize>();
        let (mut kept_dims, mut kept_count) = ([(1, [0; 2]); MAX_DIMS], 0);
        let (mut reduced_dims, mut reduced_count) = ([(1, [0; 1]); MAX_DIMS], 0);
        let mut step = 1;
        for d in (0..shape.len()).rev() {
            let (dim, mut stride) = (shape[d], strides[d]);
            if dim == 1 {
                continue;
            }
            if reduced[d] {
                if stride < 0 && elements > 0 && !fold.positional() {
                    origin = origin.wrapping_offset(distance(dim - 1, stride, size));
                    stride = -stride;
                }
                *reduced_dims.get_mut(reduced_count)? = (dim, [stride]);
                reduced_count += 1;
            } else {
                *kept_dims.get_mut(kept_count)? = (dim, [stride, step]);
                kept_count += 1;
                step *= dim.cast_signed();
            }
        }
        let reduced_dims = &mut reduced_dims[..reduced_count];
        if !fold.positional() {
            // The order of a sum is free: follow memory, repeats outermost.
            reduced_dims
                .sort_by_key(|(_, [stride])| if *stride == 0 { usize::MAX } else { stride.unsigned_abs() });
        }
        let reduced = Loops::new(reduced_dims.iter().rev().copied())?;
        let kept = Loops::new(kept_dims[..kept_count].iter().rev().copied())?;
        let results = step.cast_unsigned();
        Some(Self {
            fold,
            origin,
            size,
            state,
            result,
            kept,
            reduced,
            results,
            elements: reduced.shape[..reduced.rank].iter().product(),
            runs: true,
            block: 1,
            blocks: 1,
            piece: 1,
            pieces: 1,
        })
    }

    /// Chooses the loop of neighbouring results, runs or rows, and the tasks.
    fn choose(&mut self) {
        let last = self.kept.rank.max(1) - 1;
        let shape = &self.kept.shape[..=last];
        let (run, stride) = self.inner();
        let narrow =
            |d: usize| self.kept.strides[0][d] == 1 && stride == shape[d].cast_signed() && run > WIDE;
        let unit = |d: &usize| self.kept.strides[0][*d] == 1 && (shape[*d] >= FEW_RESULTS || narrow(*d));
        let unit = (0..=last).find(unit);
        let neighbours = unit.or_else(|| (0..=last).max_by_key(|&d| shape[d])).unwrap_or(0);
        self.kept.shape[neighbours..=last].rotate_left(1);
        self.kept.strides.iter_mut().for_each(|strides| strides[neighbours..=last].rotate_left(1));
        let columns = self.kept.shape[last];
        self.runs = (stride == 1 && run >= LONG_RUN) || (columns < FEW_RESULTS && unit.is_none());
        self.block = columns.clamp(1, BLOCK);
        self.blocks = columns.div_ceil(self.block);
        let (outer, total) = (self.results / columns.max(1), self.results.saturating_mul(self.elements));
        self.piece = self.elements;
        if total > SERIAL && outer * self.blocks < MANY_TASKS {
            self.piece = (PIECE / self.block).max(self.elements.div_ceil(MOST_PIECES)).min(self.elements);
        }
        self.pieces = self.elements.div_ceil(self.piece.max(1)).max(1);
    }

    /// Length and stride of the innermost reduced loop.
    fn inner(&self) -> (usize, isize) {
        let last = self.reduced.rank.max(1) - 1;
        (self.reduced.shape[last], self.reduced.strides[0][last])
    }

    fn run(&self, y: *mut u8) {
        if self.results == 0 {
            return;
        }
        let y = SendPtr(y);
        let outer = self.results / self.kept.shape[self.kept.rank.max(1) - 1];
        let tasks = outer * self.blocks * self.pieces;
        let mut partial = Vec::new();
        if self.pieces > 1 {
            let bytes = self.pieces * self.results * self.state;
            partial.resize(bytes.div_ceil(LARGEST), MaybeUninit::<u128>::uninit());
        }
        let partial = SendPtr(partial.as_mut_ptr());
        let work = |task: usize| {
            let mut room = Room::<BLOCK>::new();
            let (task, piece) = (task / self.pieces, task % self.pieces);
            let (outer, block) = (task / self.blocks, task % self.blocks);
            let part = piece * self.piece..self.elements.min((piece + 1) * self.piece);
            let (states, n) = (room.start(), self.block_len(block));
            self.task(outer, block * self.block, n, part, states);
            // SAFETY: the task has left `n` states. Every task has its own place among the partial states; without
            // them it has its own results.
            unsafe {
                if self.pieces == 1 {
                    let (_, y_offset) = self.locate(outer, block * self.block);
                    self.finish(states, n, y.get().offset(y_offset));
                } else {
                    let at = (piece * self.results + self.first(outer, block)) * self.state;
                    states.copy_to_nonoverlapping(partial.get().cast::<u8>().add(at), n * self.state);
                }
            }
        };
        let each = CHUNK.div_ceil((self.block * self.piece).max(1));
        if self.results.saturating_mul(self.elements) <= SERIAL {
            (0..tasks).for_each(work);
        } else {
            parallel::for_each(tasks.div_ceil(each), |i| {
                (i * each..tasks.min((i + 1) * each)).for_each(work)
            });
        }
        if self.pieces > 1 {
            let states = partial.get().cast::<u8>();
            // SAFETY: the tasks have written `pieces * results` states, and have ended.
            unsafe {
                for piece in 1..self.pieces {
                    self.fold.merge(states, states.add(piece * self.results * self.state), self.results);
                }
                for (outer, block) in (0..outer).flat_map(|o| (0..self.blocks).map(move |b| (o, b))) {
                    let (_, y_offset) = self.locate(outer, block * self.block);
                    let states = states.add(self.first(outer, block) * self.state);
                    self.finish(states, self.block_len(block), y.get().offset(y_offset));
                }
            }
        }
    }

    fn block_len(&self, block: usize) -> usize {
        self.block.min(self.kept.shape[self.kept.rank.max(1) - 1] - block * self.block)
    }

    /// Number of results in front of a block, in the order of tasks.
    fn first(&self, outer: usize, block: usize) -> usize {
        outer * self.kept.shape[self.kept.rank.max(1) - 1] + block * self.block
    }

    /// Offsets in bytes, in `x` and `y`, of a result.
    fn locate(&self, mut outer: usize, column: usize) -> (isize, isize) {
        let last = self.kept.rank.max(1) - 1;
        let [x, y] = &self.kept.strides;
        let mut at = (distance(column, x[last], self.size), distance(column, y[last], self.result));
        for d in (0..last).rev() {
            let i = if d == 0 { outer } else { outer % self.kept.shape[d] };
            outer /= self.kept.shape[d];
            at = (at.0 + distance(i, x[d], self.size), at.1 + distance(i, y[d], self.result));
        }
        at
    }

    /// # Safety
    /// `n` states lie at `states`, and their results from `y` on are ours.
    unsafe fn finish(&self, states: *const u8, n: usize, y: *mut u8) {
        let step = self.kept.strides[1][self.kept.rank.max(1) - 1];
        // SAFETY: the caller's promise.
        unsafe { self.fold.finish(states, n, y, step.cast_unsigned()) };
    }

    /// Folds elements `part` of `n` results from `column` on into fresh states.
    fn task(&self, outer: usize, column: usize, n: usize, part: Range<usize>, states: *mut u8) {
        let x = self.origin.wrapping_offset(self.locate(outer, column).0);
        let across = self.kept.strides[0][self.kept.rank.max(1) - 1];
        // SAFETY: `states` has room for a block. All addresses are those of elements: a result's in `kept`, and of its
        // elements in `reduced`, the loops over the view that `reduce` was given.
        unsafe {
            self.fold.start(states, n);
            if self.runs {
                for i in 0..n {
                    let (x, state) =
                        (x.wrapping_offset(distance(i, across, self.size)), states.add(i * self.state));
                    self.segments(part.clone(), |offset, len, first| {
                        self.fold_run(state, x.wrapping_offset(offset), len, first);
                    });
                }
                return;
            }
            let wide = self.widening(across, n, &part);
            if wide > 1 {
                return self.fold_wide(states, x, n, part, wide);
            }
            self.segments(part, |offset, len, first| {
                self.fold_rows(states, x.wrapping_offset(offset), across, len, n, first);
            });
        }
    }

    /// Calls `f(offset in bytes, length, position)` for the parts of innermost loops that `part` consists of.
    fn segments(&self, part: Range<usize>, mut f: impl FnMut(isize, usize, usize)) {
        let last = self.reduced.rank.max(1) - 1;
        let (run, strides) = (self.reduced.shape[last], &self.reduced.strides[0]);
        let mut at = part.start;
        while at < part.end {
            let (mut outer, inner) = if last == 0 { (0, at) } else { (at / run, at % run) };
            let len = (run - inner).min(part.end - at);
            let mut offset = distance(inner, strides[last], self.size);
            for d in (0..last).rev() {
                offset += distance(outer % self.reduced.shape[d], strides[d], self.size);
                outer /= self.reduced.shape[d];
            }
            f(offset, len, at);
            at += len;
        }
    }

    /// # Safety
    /// `len` elements lie at `x` with the stride of the innermost reduced loop; `state` is a state.
    unsafe fn fold_run(&self, state: *mut u8, x: *const u8, len: usize, first: usize) {
        let (_, stride) = self.inner();
        // SAFETY: the caller's promise; the buffer has room for what is gathered.
        unsafe {
            if stride == 1 {
                return self.fold.run(state, x, len, first);
            }
            let mut room = Room::<GATHERED>::new();
            let buffer = room.start();
            for at in (0..len).step_by(GATHERED) {
                let (x, n) = (x.offset(distance(at, stride, self.size)), GATHERED.min(len - at));
                gather::tile(self.size, x, 0, stride, buffer, 1, n);
                self.fold.run(state, buffer, n, first + at);
            }
        }
    }

    /// # Safety
    /// `rows` by `columns` elements lie at `x`, with the stride of the innermost reduced loop and `across`; `columns`
    /// states lie at `states`.
    unsafe fn fold_rows(
        &self,
        states: *mut u8,
        x: *const u8,
        across: isize,
        rows: usize,
        columns: usize,
        first: usize,
    ) {
        let (_, down) = self.inner();
        // SAFETY: the caller's promise; the buffer has room for what is gathered.
        unsafe {
            if across == 1 {
                return self.fold.rows(states, x, distance(1, down, self.size), rows, columns, first);
            }
            let mut room = Room::<GATHERED>::new();
            let (buffer, pitch) = (room.start(), distance(columns, 1, self.size));
            let batch = GATHERED / columns;
            for row in (0..rows).step_by(batch) {
                let (x, n) = (x.offset(distance(row, down, self.size)), batch.min(rows - row));
                gather::tile(self.size, x, down, across, buffer, n, columns);
                self.fold.rows(states, buffer, pitch, n, columns, first + row);
            }
        }
    }

    /// How many rows to take as one: those of all results, if they are narrow and follow each other in memory.
    fn widening(&self, across: isize, n: usize, part: &Range<usize>) -> usize {
        let follow = across == 1 && self.reduced.rank == 1 && self.inner().1 == n.cast_signed();
        let wide = WIDE / n;
        if follow && !self.fold.positional() && part.len() >= 2 * wide { wide } else { 1 }
    }

    /// Folds rows of `n`, `wide` at a time.
    ///
    /// # Safety
    /// As for [`fold_rows`](Self::fold_rows) with the rows in `part` after each other.
    unsafe fn fold_wide(&self, states: *mut u8, x: *const u8, n: usize, part: Range<usize>, wide: usize) {
        let mut room = Room::<WIDE>::new();
        let (all, count, pitch) = (room.start(), part.len() / wide, distance(n, 1, self.size));
        let x = x.wrapping_offset(distance(part.start, pitch, 1));
        // SAFETY: the caller's promise; `wide * n` states fit the buffer.
        unsafe {
            self.fold.start(all, wide * n);
            self.fold.rows(all, x, distance(wide, pitch, 1), count, wide * n, 0);
            for i in 0..wide {
                self.fold.merge(states, all.add(i * n * self.state), n);
            }
            let rest = x.offset(distance(count * wide, pitch, 1));
            self.fold.rows(states, rest, pitch, part.len() - count * wide, n, 0);
        }
    }
}
