//! The walk over strided inputs that all elementwise kernels share.
//!
//! An elementwise kernel is written, and compiled once for each op, for inputs that lie side by side. The walk cuts the
//! output into blocks that fit the first-level cache; an input that is not contiguous within a block is first copied
//! into a small buffer, by code that knows neither op nor element type. Blocks are runs of the output, or, if an input
//! is transposed, tiles of several rows, so that each of its cache lines is fetched once.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::gather::{self, distance};
use super::layout::{Loops, MAX_DIMS, View};
use super::parallel;

/// Up to this number of elements nothing is handed to other threads.
pub(crate) const SERIAL: usize = 32 * 1024;
/// Elements that a thread takes at a time.
pub(crate) const CHUNK: usize = 16 * 1024;
/// Elements of a block.
const BLOCK: usize = 2048;
/// Bytes of the buffer for one input: a block with elements of 8 bytes.
const ROOM: usize = 8 * BLOCK;
/// From this length on a row is a block of its own; shorter ones are gathered.
const LONG_ROW: usize = 128;
/// Rows of a tile: four-byte elements of one cache line.
const TILE_ROWS: usize = 16;
/// Tiles smaller than this cost more than they save.
const SMALL_TILE: usize = 64;

/// What a walk calls: `kernel(inputs, start, len)` computes elements `start..start + len` of the output from as many
/// elements that lie side by side at each of `inputs`.
type Kernel<'a, const N: usize> = &'a (dyn Fn([*const u8; N], usize, usize) + Sync);

/// One input of a walk.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    origin: *const u8,
    size: usize,
    strides: &'a [isize],
}

impl<'a> Source<'a> {
    pub(crate) fn new<T: Copy + Sync>(x: View<'a, T>) -> Self {
        const { assert!(size_of::<T>() <= ROOM && align_of::<T>() <= align_of::<Room>()) };
        Self { origin: x.origin().cast(), size: size_of::<T>(), strides: x.strides() }
    }

    /// Address of the first element.
    pub(crate) fn origin(self) -> *const u8 {
        self.origin
    }

    /// Bytes of an element.
    pub(crate) fn size(self) -> usize {
        self.size
    }
}

/// Calls `kernel` for ranges that partition the row-major elements of `shape`, each once, from several threads if there
/// are many.
///
/// # Safety
/// Each source is a view of shape `shape` over data that stays borrowed until this returns.
pub(crate) unsafe fn run<const N: usize>(shape: &[usize], sources: [Source; N], kernel: Kernel<N>) {
    let len = shape.iter().product();
    if len != 0 {
        walk(shape, sources, 0, len, kernel);
    }
}

fn walk<const N: usize>(shape: &[usize], sources: [Source; N], start: usize, len: usize, kernel: Kernel<N>) {
    let dims = shape.iter().enumerate().map(|(d, &dim)| (dim, sources.map(|source| source.strides[d])));
    match Loops::new(dims) {
        Some(loops) => Walk::new(&loops, sources, start).run(kernel),
        None => {
            let inner = len / shape[0];
            for i in 0..shape[0] {
                let sources = sources.map(|source| Source {
                    origin: source.origin.wrapping_offset(distance(i, source.strides[0], source.size)),
                    strides: &source.strides[1..],
                    ..source
                });
                walk(&shape[1..], sources, start + i * inner, inner, kernel);
            }
        }
    }
}

/// An input with its strides in the walk's order of dims.
#[derive(Clone, Copy)]
struct Input {
    origin: *const u8,
    size: usize,
    strides: [isize; MAX_DIMS],
    /// The same row again and again.
    repeats: bool,
}

/// How the output is cut.
#[derive(Clone, Copy, PartialEq)]
enum Cut {
    /// Into runs of this many elements within a row.
    Pieces(usize),
    /// Into runs of this many whole rows.
    Rows(usize),
    /// Into tiles of this many rows and columns of the last two dims of the walk.
    Tiles(usize, usize),
}

/// The output as rows of `columns` elements, in `outer` dims (all but the last).
struct Walk<const N: usize> {
    inputs: [Input; N],
    start: usize,
    /// Number of outer dims, their sizes and the distance in the output from one index to the next.
    outer: usize,
    shape: [usize; MAX_DIMS],
    steps: [usize; MAX_DIMS],
    rows: usize,
    columns: usize,
    cut: Cut,
}

// SAFETY: the addresses are those of `Source::new`, of elements that may be read from any thread (`T: Sync`).
unsafe impl<const N: usize> Sync for Walk<N> {}

impl<const N: usize> Walk<N> {
    fn new(loops: &Loops<N>, sources: [Source; N], start: usize) -> Self {
        let last = loops.rank.max(1) - 1;
        let columns = loops.shape[last];
        let limit = sources.iter().fold(BLOCK, |limit, source| limit.min(ROOM / source.size.max(1)));
        let (mut steps, mut rows) = ([0; MAX_DIMS], 1);
        for d in (0..last).rev() {
            steps[d] = rows * columns;
            rows *= loops.shape[d];
        }
        let mut walk = Self {
            inputs: std::array::from_fn(|n| Input {
                origin: sources[n].origin,
                size: sources[n].size,
                strides: loops.strides[n],
                repeats: loops.strides[n][..last].iter().all(|&stride| stride == 0),
            }),
            start,
            outer: last,
            shape: loops.shape,
            steps,
            rows,
            columns,
            cut: if columns >= LONG_ROW {
                Cut::Pieces(limit.min(columns))
            } else if rows * columns <= limit {
                Cut::Rows(rows)
            } else {
                Cut::Rows(limit / columns)
            },
        };
        if last == 0 {
            if (0..N).all(|n| loops.strides[n][0] == 1) {
                walk.cut = Cut::Pieces(columns.min(CHUNK));
            }
            return walk;
        }
        if let Some(d) = (0..N).find_map(|n| fast_dim(&loops.strides[n][..=last])) {
            let rows = loops.shape[d].min(TILE_ROWS.max(limit / columns));
            let columns = columns.min(limit / rows);
            if rows * columns >= SMALL_TILE {
                walk.make_last(d);
                walk.cut = Cut::Tiles(rows, columns);
            }
        }
        walk
    }

    /// Puts outer dim `d` behind all other outer dims.
    fn make_last(&mut self, d: usize) {
        self.shape[d..self.outer].rotate_left(1);
        self.steps[d..self.outer].rotate_left(1);
        for input in &mut self.inputs {
            input.strides[d..self.outer].rotate_left(1);
        }
    }

    fn run(&self, kernel: Kernel<N>) {
        let (blocks, block) = match self.cut {
            Cut::Pieces(len) => (self.rows * self.columns.div_ceil(len), len),
            Cut::Rows(rows) if rows == self.rows => return self.work(0..1, kernel),
            Cut::Rows(rows) => (self.rows.div_ceil(rows), rows * self.columns),
            Cut::Tiles(rows, columns) => {
                let tall = self.shape[self.outer - 1];
                (self.rows / tall * tall.div_ceil(rows) * self.columns.div_ceil(columns), rows * columns)
            }
        };
        if self.rows * self.columns <= SERIAL {
            return self.work(0..blocks, kernel);
        }
        let each = (CHUNK / block).max(1);
        parallel::for_each(blocks.div_ceil(each), |i| {
            self.work(i * each..blocks.min((i + 1) * each), kernel);
        });
    }

    fn work(&self, blocks: Range<usize>, kernel: Kernel<N>) {
        let mut buffers = Buffers::new();
        match self.cut {
            Cut::Pieces(len) => blocks.for_each(|block| self.piece(block, len, &mut buffers, kernel)),
            Cut::Rows(rows) => blocks.for_each(|block| self.whole_rows(block, rows, &mut buffers, kernel)),
            Cut::Tiles(rows, columns) => {
                blocks.for_each(|block| self.tile(block, rows, columns, &mut buffers, kernel));
            }
        }
    }

    fn piece(&self, block: usize, len: usize, buffers: &mut Buffers<N>, kernel: Kernel<N>) {
        let wide = self.columns.div_ceil(len);
        let (row, column) = if wide == 1 { (block, 0) } else { (block / wide, block % wide * len) };
        let len = len.min(self.columns - column);
        let index = self.unravel(row, self.outer);
        let inputs = std::array::from_fn(|n| {
            let input = &self.inputs[n];
            let stride = input.strides[self.outer];
            let x = input.at(&index[..self.outer]).wrapping_offset(distance(column, stride, input.size));
            if stride == 1 { x } else { buffers.hold(n, (x, 1, len), |y| input.copy(x, stride, y, len)) }
        });
        kernel(inputs, self.start + row * self.columns + column, len);
    }

    fn whole_rows(&self, block: usize, rows: usize, buffers: &mut Buffers<N>, kernel: Kernel<N>) {
        let (row, columns) = (block * rows, self.columns);
        let rows = rows.min(self.rows - row);
        let index = self.unravel(row, self.outer);
        let inputs = std::array::from_fn(|n| {
            let input = &self.inputs[n];
            let stride = input.strides[self.outer];
            let x = input.at(&index[..self.outer]);
            if stride == 1 && (rows == 1 || (self.outer == 1 && input.strides[0] == columns.cast_signed())) {
                return x;
            }
            if input.repeats {
                return buffers.hold(n, (x, rows, columns), |y| {
                    input.copy(x, stride, y, columns);
                    // SAFETY: `y` has room for all rows, and the first lies there.
                    unsafe { gather::repeat(y, columns * input.size, rows * columns * input.size) };
                });
            }
            if index[self.outer - 1] + rows > self.shape[self.outer - 1] {
                // The rows go on at another place of an outer dim, which their beginning does not tell.
                return buffers.fill(n, |y| self.copy_rows(input, index, y, rows));
            }
            buffers.hold(n, (x, rows, columns), |y| self.copy_rows(input, index, y, rows))
        });
        kernel(inputs, self.start + row * columns, rows * columns);
    }

    /// Copies `rows` rows of `input`, from the one at `index` on, to `y`.
    fn copy_rows(&self, input: &Input, mut index: [usize; MAX_DIMS], y: *mut u8, rows: usize) {
        let (last, mut done) = (self.outer - 1, 0);
        while done < rows {
            let run = (self.shape[last] - index[last]).min(rows - done);
            let (x, y) = (input.at(&index[..self.outer]), y.wrapping_add(done * self.columns * input.size));
            input.copy_tile(x, input.strides[last], input.strides[self.outer], y, run, self.columns);
            done += run;
            index[last] += run;
            for d in (1..self.outer).rev() {
                if index[d] == self.shape[d] {
                    index[d] = 0;
                    index[d - 1] += 1;
                }
            }
        }
    }

    fn tile(&self, block: usize, rows: usize, columns: usize, buffers: &mut Buffers<N>, kernel: Kernel<N>) {
        let row_dim = self.outer - 1;
        let (tall, wide) = (self.shape[row_dim].div_ceil(rows), self.columns.div_ceil(columns));
        let (block, column) = (block / wide, block % wide * columns);
        let (block, row) = (block / tall, block % tall * rows);
        let index = self.unravel(block, row_dim);
        let (rows, columns) = (rows.min(self.shape[row_dim] - row), columns.min(self.columns - column));
        // Rows that follow each other in the output too are one run.
        let run = columns == self.steps[row_dim];
        let mut pitch = [0; N];
        let mut inputs = std::array::from_fn(|n| {
            let input = &self.inputs[n];
            let (across, down) = (input.strides[self.outer], input.strides[row_dim]);
            let x = input
                .at(&index[..row_dim])
                .wrapping_offset(distance(row, down, input.size) + distance(column, across, input.size));
            if across == 1 && (!run || down == columns.cast_signed()) {
                pitch[n] = distance(1, down, input.size);
                return x;
            }
            pitch[n] = distance(columns, 1, input.size);
            buffers.hold(n, (x, rows, columns), |y| input.copy_tile(x, down, across, y, rows, columns))
        });
        let outer = index[..row_dim].iter().zip(&self.steps).map(|(i, step)| i * step).sum::<usize>();
        let mut start = self.start + outer + row * self.steps[row_dim] + column;
        if run {
            return kernel(inputs, start, rows * columns);
        }
        for _ in 0..rows {
            kernel(inputs, start, columns);
            start += self.steps[row_dim];
            for (x, pitch) in inputs.iter_mut().zip(pitch) {
                *x = x.wrapping_offset(pitch);
            }
        }
    }

    /// The index of row `row` in the first `dims` dims.
    fn unravel(&self, mut row: usize, dims: usize) -> [usize; MAX_DIMS] {
        let mut index = [0; MAX_DIMS];
        if row == 0 {
            return index;
        }
        for d in (1..dims).rev() {
            index[d] = row % self.shape[d];
            row /= self.shape[d];
        }
        index[0] = row;
        index
    }
}

/// The dim in which an input advances least, if it is not the last one.
fn fast_dim(strides: &[isize]) -> Option<usize> {
    let (last, outer) = strides.split_last()?;
    let moving = outer.iter().enumerate().filter(|(_, stride)| **stride != 0);
    let (d, stride) = moving.min_by_key(|(_, stride)| stride.unsigned_abs())?;
    (stride.unsigned_abs() < last.unsigned_abs()).then_some(d)
}

impl Input {
    /// Address of the element at `index` in the first dims and at 0 in the others.
    fn at(&self, index: &[usize]) -> *const u8 {
        let offset =
            index.iter().zip(&self.strides).map(|(&i, &stride)| distance(i, stride, self.size)).sum();
        self.origin.wrapping_offset(offset)
    }

    /// Copies `len` elements, `stride` apart from `x` on, to `y`.
    fn copy(&self, x: *const u8, stride: isize, y: *mut u8, len: usize) {
        self.copy_tile(x, 0, stride, y, 1, len);
    }

    /// Copies `rows x columns` elements, `down` and `across` apart from `x` on, to `y`, row by row.
    fn copy_tile(&self, x: *const u8, down: isize, across: isize, y: *mut u8, rows: usize, columns: usize) {
        // SAFETY: `x` and the strides are those of an input, at an index within its shape; `y` is a part of a buffer
        // that the block fits. Both hold elements of `size` bytes.
        unsafe { gather::tile(self.size, x, down, across, y, rows, columns) }
    }
}

/// Room for one block of each input, and what lies there.
struct Buffers<const N: usize> {
    rooms: [MaybeUninit<Room>; N],
    /// The first element, rows and columns of each block.
    held: [(*const u8, usize, usize); N],
}

#[repr(C, align(64))]
struct Room([u8; ROOM]);

impl<const N: usize> Buffers<N> {
    #[inline(always)]
    fn new() -> Self {
        Self { rooms: [const { MaybeUninit::uninit() }; N], held: [(std::ptr::null(), 0, 0); N] }
    }

    /// Buffer `n` once `fill` has put something there that no later block may take for its own.
    fn fill(&mut self, n: usize, fill: impl FnOnce(*mut u8)) -> *const u8 {
        let y = self.rooms[n].as_mut_ptr().cast::<u8>();
        fill(y);
        self.held[n] = (std::ptr::null(), 0, 0);
        y
    }

    /// Buffer `n` once `fill` has put a block there, or at once if it holds that block already, as of a bias or a scalar.
    /// A block is known by its first element, rows and columns, so its rows must all be of one run.
    fn hold(&mut self, n: usize, block: (*const u8, usize, usize), fill: impl FnOnce(*mut u8)) -> *const u8 {
        let y = self.rooms[n].as_mut_ptr().cast::<u8>();
        if self.held[n] != block {
            fill(y);
            self.held[n] = block;
        }
        y
    }
}
