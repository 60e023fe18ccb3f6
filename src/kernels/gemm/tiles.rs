//! Products cut into pieces that fit the caches and are shared out to the threads.

use super::Matrix;
use crate::kernels::micro::{Dots, Panel, Rows, Start, panel_width};
use crate::kernels::pack::{fetch, pack_panel};
use crate::kernels::parallel::{SendPtr, for_each, for_each_chunk_mut};
use crate::kernels::real::Real;
use crate::kernels::scratch::with_scratch;
use crate::kernels::simd::vectorized;

/// Multiplications below which a chunk is not worth handing to another thread: 5 to 10 microseconds of work.
pub(crate) const CHUNK_WORK: usize = 1 << 18;
/// The same for products with a vector, which wait for memory.
const VECTOR_CHUNK_WORK: usize = 1 << 16;
/// Rows of `b` that are packed at a time: a panel of them fills two thirds of a first-level cache.
const DEPTH: usize = 256;
/// Rows of `c` in a chunk, so that the part of `a` they need stays in the second-level cache.
const CHUNK_ROWS: usize = 240;
/// Tiles that a large product is cut into at least, and panels that a tile has at most.
const CHUNKS: usize = 16;
const CHUNK_PANELS: usize = 8;
/// Columns of `a` from which a product with few results is cut into pieces along them, and how many pieces at most.
pub(super) const SPLIT_DEPTH: usize = 2048;
const SPLIT_PIECES: usize = 16;
/// Columns of `b` from which fetching a block of `a` before use pays.
const FETCH_COLS: usize = 32;
/// Rows of `c` from which, and bytes between rows of `b` from which packing a contiguous `b` pays: its rows then compete
/// for the same few places of the caches.
const PACK_ROWS: usize = 48;
const PACK_BYTES: usize = 6 << 10;

/// A long product with few results: pieces along `k` are computed side by side, then added in their order.
///
/// # Safety
/// As for `super::product`.
pub(super) unsafe fn split<T: Real>(a: Matrix<'_, T>, b: Matrix<'_, T>, c: &mut [T], start: Start<T>) {
    let (k, n) = (a.cols, b.cols);
    let depth = k.div_ceil(SPLIT_PIECES).max(SPLIT_DEPTH / 2);
    with_scratch(k.div_ceil(depth) * c.len(), |parts: &mut [T]| {
        for_each_chunk_mut(parts, c.len(), |piece, part| {
            let k0 = piece * depth;
            let depth = depth.min(k - k0);
            let (a, b) = (a.cols_from(k0, depth), b.transposed().cols_from(k0, depth).transposed());
            // SAFETY: `part` is a whole matrix like `c`.
            unsafe {
                if b.col_stride == 1 && b.cols >= FETCH_COLS {
                    fetch(b.at(0, 0), (b.rows, b.cols), b.row_stride);
                }
                tile(a, b, part.as_mut_ptr(), n, Start::Zero);
            }
        });
        match start {
            Start::Accumulate => {}
            Start::Zero => c.fill(T::zero()),
            Start::Bias(bias) => {
                // SAFETY: the caller's promise: a bias has `n` elements.
                let bias = unsafe { std::slice::from_raw_parts(bias, n) };
                c.chunks_exact_mut(n).for_each(|c| c.copy_from_slice(bias));
            }
        }
        let size = c.len();
        vectorized(
            #[inline(always)]
            || {
                for part in parts.chunks_exact(size) {
                    for (c, &x) in c.iter_mut().zip(part) {
                        *c = *c + x;
                    }
                }
            },
        );
    });
}

/// The product in tiles of `c` that are spread over the threads. Their sizes follow from those of the product alone.
///
/// # Safety
/// As for `super::product`.
pub(super) unsafe fn tiled<T: Real>(a: Matrix<'_, T>, b: Matrix<'_, T>, c: &mut [T], start: Start<T>) {
    let (m, k, n) = (a.rows, a.cols.max(1), b.cols);
    let width = panel_width::<T>();
    let rows = m.div_ceil(m.div_ceil(CHUNK_ROWS));
    // Wide tiles read `a` less often, but there must be enough of them to share out.
    let panels = (n.div_ceil(width) * m.div_ceil(rows) / CHUNKS).clamp(1, CHUNK_PANELS);
    let cols = (panels.max(CHUNK_WORK.div_ceil(rows * width * k)) * width).min(n);
    let rows = if cols < n { rows } else { rows.min(m.div_ceil(CHUNKS)).max(CHUNK_WORK.div_ceil(n * k)) };
    let rows = rows.next_multiple_of(12).min(m);
    let (down, right) = (m.div_ceil(rows), n.div_ceil(cols));
    let c = SendPtr(c.as_mut_ptr());
    for_each(down * right, |chunk| {
        let (i, j) = (chunk / right * rows, chunk % right * cols);
        let a = a.rows_from(i, rows.min(m - i));
        let b = b.cols_from(j, cols.min(n - j));
        // SAFETY: tiles do not overlap, and `c` outlives the loop.
        unsafe { tile(a, b, c.get().add(i * n + j), n, start.skip_columns(j)) };
    });
}

/// The product on this thread, reading `b` where it is; its rows are contiguous.
///
/// # Safety
/// As for `super::product`; row `i` of `c` begins at `i * c_stride`.
pub(super) unsafe fn direct<T: Real>(
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: *mut T,
    c_stride: usize,
    start: Start<T>,
) {
    let panel = Panel {
        a: a.at(0, 0),
        a_rows: Rows::Stride(a.row_stride),
        a_step: a.col_stride,
        segments: &[0],
        run: a.cols,
        b: b.at(0, 0),
        b_stride: b.row_stride as usize,
        b_segment: 0,
        c,
        c_rows: Rows::Stride(c_stride as isize),
        rows: a.rows,
        cols: b.cols,
        start,
    };
    // SAFETY: the caller's promise. A negative stride wraps around to the same addresses.
    unsafe { panel.compute() }
}

/// The product on this thread, panel by panel and block by block along `k`.
///
/// # Safety
/// As for `direct`, but `b` may have any layout.
unsafe fn tile<T: Real>(a: Matrix<'_, T>, b: Matrix<'_, T>, c: *mut T, c_stride: usize, start: Start<T>) {
    let width = panel_width::<T>();
    let contiguous = b.col_stride == 1 || b.cols == 1;
    let packs =
        !contiguous || (a.rows >= PACK_ROWS && b.row_stride.unsigned_abs() * size_of::<T>() >= PACK_BYTES);
    let depth = a.cols.div_ceil(a.cols.div_ceil(DEPTH).max(1)).max(1);
    with_scratch(if packs { depth * width } else { 0 }, |packed: &mut [T]| {
        for k in (0..a.cols.max(1)).step_by(depth) {
            let run = depth.min(a.cols - k);
            if a.row_stride == 1 && b.cols >= FETCH_COLS {
                // SAFETY: the block lies within `a`.
                unsafe { fetch(a.at(0, k), (run, a.rows), a.col_stride) };
            }
            for j in (0..b.cols).step_by(width) {
                let cols = width.min(b.cols - j);
                // SAFETY: the block lies within `b`; the columns of `c` from `j` on are there by the caller's promise.
                unsafe {
                    let (b, b_stride) = if packs {
                        pack_panel(b.at(k, j), (run, cols), (b.row_stride, b.col_stride), packed, width);
                        (packed.as_ptr(), width)
                    } else {
                        (b.at(k, j), b.row_stride as usize)
                    };
                    let panel = Panel {
                        a: a.at(0, k),
                        a_rows: Rows::Stride(a.row_stride),
                        a_step: a.col_stride,
                        segments: &[0],
                        run,
                        b,
                        b_stride,
                        b_segment: 0,
                        c: c.add(j),
                        c_rows: Rows::Stride(c_stride as isize),
                        rows: a.rows,
                        cols,
                        start: if k == 0 { start.skip_columns(j) } else { Start::Accumulate },
                    };
                    panel.compute();
                }
            }
        }
    });
}

/// The product of the row `a` and `b`.
///
/// # Safety
/// As for `super::product`, and `a` has one row.
pub(super) unsafe fn vector_product<T: Real>(
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
    start: Start<T>,
) {
    let (k, n) = (a.cols, b.cols);
    let dots = b.col_stride != 1 && (k == 1 || (b.row_stride == 1 && a.col_stride == 1));
    let group = VECTOR_CHUNK_WORK.div_ceil(k.max(1)).next_multiple_of(128);
    for_each_chunk_mut(c, group, |chunk, c| {
        let j = chunk * group;
        let b = b.cols_from(j, c.len());
        let start = start.skip_columns(j);
        // SAFETY: the columns from `j` to `j + c.len()` of the caller's product.
        unsafe {
            if dots {
                let start = match start {
                    Start::Bias(bias) => {
                        c.copy_from_slice(std::slice::from_raw_parts(bias, c.len()));
                        Start::Accumulate
                    }
                    other => other,
                };
                // The columns of `b` take the place of the rows, so that there is one column.
                let dots = Dots {
                    a: b.at(0, 0),
                    a_rows: Rows::Stride(b.col_stride),
                    segments: &[0],
                    run: k,
                    b: a.at(0, 0),
                    b_col: 0,
                    c: c.as_mut_ptr(),
                    c_rows: Rows::Stride(1),
                    rows: c.len(),
                    cols: 1,
                    start,
                };
                dots.compute();
            } else if b.col_stride == 1 || n == 1 {
                direct(a, b, c.as_mut_ptr(), 0, start);
            } else {
                tile(a, b, c.as_mut_ptr(), 0, start);
            }
        }
    });
}
