//! Matrix products.

use super::micro::{Dots, Panel, Rows, Start, panel_width};
use super::pack::pack_panel;
use super::parallel::{SendPtr, for_each, for_each_chunk_mut};
pub(crate) use super::real::Real;
use super::scratch::with_scratch;
use super::simd::vectorized;

/// Multiplications below which a chunk is not worth handing to another thread: 5 to 10 microseconds of work.
pub(super) const CHUNK_WORK: usize = 1 << 18;
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
const SPLIT_DEPTH: usize = 2048;
const SPLIT_PIECES: usize = 16;
/// Rows of `c` from which on packing `b` pays.
const PACK_ROWS: usize = 48;

/// A matrix somewhere in a slice, in any layout: element `(i, j)` is `data[offset + i * row_stride + j * col_stride]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    data: &'a [T],
    offset: usize,
    rows: usize,
    cols: usize,
    row_stride: isize,
    col_stride: isize,
}

impl<'a, T> Matrix<'a, T> {
    /// Strides count elements; they may be zero or negative.
    ///
    /// # Panics
    /// An element lies outside of `data`.
    pub(crate) fn new(
        data: &'a [T],
        offset: usize,
        (rows, cols): (usize, usize),
        (row_stride, col_stride): (isize, isize),
    ) -> Self {
        if rows > 0 && cols > 0 {
            let (down, right) =
                ((rows as i128 - 1) * row_stride as i128, (cols as i128 - 1) * col_stride as i128);
            let first = offset as i128 + down.min(0) + right.min(0);
            let last = offset as i128 + down.max(0) + right.max(0);
            assert!(
                first >= 0 && last < data.len() as i128,
                "matrix of {rows} x {cols}, strides {row_stride} and {col_stride}, leaves its slice"
            );
        }
        Self { data, offset, rows, cols, row_stride, col_stride }
    }

    /// A matrix that fills `data` row by row.
    ///
    /// # Panics
    /// `data` has not `rows * cols` elements.
    pub(crate) fn row_major(data: &'a [T], rows: usize, cols: usize) -> Self {
        assert_eq!(data.len(), rows * cols, "elements of a {rows} x {cols} matrix");
        Self { data, offset: 0, rows, cols, row_stride: cols as isize, col_stride: 1 }
    }

    /// The transpose, in place.
    #[must_use]
    pub(crate) fn transposed(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// `rows` rows from row `i` on, all of them in the matrix.
    fn rows_from(self, i: usize, rows: usize) -> Self {
        Self { rows, offset: self.offset.wrapping_add_signed(i as isize * self.row_stride), ..self }
    }

    /// `cols` columns from column `j` on, all of them in the matrix.
    fn cols_from(self, j: usize, cols: usize) -> Self {
        Self { cols, offset: self.offset.wrapping_add_signed(j as isize * self.col_stride), ..self }
    }

    /// The address of element `(i, j)`. It may only be read if the element exists.
    fn at(&self, i: usize, j: usize) -> *const T {
        let offset = i as isize * self.row_stride + j as isize * self.col_stride;
        self.data.as_ptr().wrapping_add(self.offset).wrapping_offset(offset)
    }
}

/// `c = a b`, `c = a b + bias` or `c += a b`.
///
/// `c` is row-major and contiguous; a bias is added to each of its rows. With `accumulate` there is no bias: the sums
/// start from `c`. The bits of the result depend on neither the number of threads nor the layout of `a`.
///
/// # Panics
/// The sizes do not fit each other, or both `accumulate` and a bias are given.
pub(crate) fn gemm<T: Real>(
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
    accumulate: bool,
    bias: Option<&[T]>,
) {
    assert_eq!(a.cols, b.rows, "columns of a and rows of b");
    assert_eq!(c.len(), a.rows * b.cols, "elements of c");
    let start = match bias {
        Some(bias) => {
            assert!(!accumulate && bias.len() == b.cols, "a bias has one number a column and replaces c");
            Start::Bias(bias.as_ptr())
        }
        None if accumulate => Start::Accumulate,
        None => Start::Zero,
    };
    // SAFETY: the sizes fit, as just checked.
    unsafe { product(a, b, c, start) }
}

/// `c[i] = a(i) b(i)`, or `c[i] += a(i) b(i)`, for `i` from 0 to `batch - 1`; the products lie one after the other in
/// `c`. Each of `a` and `b` may give the same matrix several times.
///
/// # Panics
/// The sizes do not fit each other.
pub(crate) fn gemm_batched<'a, T: Real>(
    batch: usize,
    a: impl Fn(usize) -> Matrix<'a, T> + Sync,
    b: impl Fn(usize) -> Matrix<'a, T> + Sync,
    c: &mut [T],
    accumulate: bool,
) {
    if batch == 0 || c.is_empty() {
        assert_eq!(c.len(), 0, "elements of c");
        return;
    }
    let size = c.len() / batch;
    assert_eq!(c.len(), size * batch, "elements of c");
    let work = size * a(0).cols.max(1);
    if work >= 8 * CHUNK_WORK {
        // Each product fills all threads by itself.
        c.chunks_exact_mut(size).enumerate().for_each(|(i, c)| gemm(a(i), b(i), c, accumulate, None));
        return;
    }
    let group = CHUNK_WORK.div_ceil(work);
    for_each_chunk_mut(c, group * size, |chunk, c| {
        for (i, c) in c.chunks_exact_mut(size).enumerate() {
            let i = chunk * group + i;
            gemm(a(i), b(i), c, accumulate, None);
        }
    });
}

/// # Safety
/// `a.cols == b.rows`, `c` has `a.rows * b.cols` elements, and a bias has `b.cols`.
unsafe fn product<T: Real>(a: Matrix<'_, T>, b: Matrix<'_, T>, c: &mut [T], start: Start<T>) {
    let (m, k, n) = (a.rows, a.cols, b.cols);
    if c.is_empty() {
        return;
    }
    // SAFETY (of all calls): `Matrix` has checked that its elements exist, the caller that `c` and the bias fit.
    if m == 1 {
        unsafe { vector_product(a, b, c, start) };
    } else if n == 1 && !matches!(start, Start::Bias(_)) {
        // A column is the row of the transposed product.
        unsafe { vector_product(b.transposed(), a.transposed(), c, start) };
    } else if m * n * k < 2 * CHUNK_WORK && (b.col_stride == 1 || b.cols == 1) {
        unsafe { direct(a, b, c.as_mut_ptr(), n, start) };
    } else if k >= SPLIT_DEPTH && k >= 8 * (m + n) {
        // SAFETY: as above.
        unsafe { split(a, b, c, start) };
    } else {
        // SAFETY: as above.
        unsafe { tiled(a, b, c, start) };
    }
}

/// A long product with few results: pieces along `k` are computed side by side, then added in their order.
///
/// # Safety
/// As for `product`.
unsafe fn split<T: Real>(a: Matrix<'_, T>, b: Matrix<'_, T>, c: &mut [T], start: Start<T>) {
    let (k, n) = (a.cols, b.cols);
    let depth = k.div_ceil(SPLIT_PIECES).max(SPLIT_DEPTH / 2);
    with_scratch(k.div_ceil(depth) * c.len(), |parts: &mut [T]| {
        for_each_chunk_mut(parts, c.len(), |piece, part| {
            let k0 = piece * depth;
            let depth = depth.min(k - k0);
            let (a, b) = (a.cols_from(k0, depth), b.transposed().cols_from(k0, depth).transposed());
            // SAFETY: `part` is a whole matrix like `c`.
            unsafe { tile(a, b, part.as_mut_ptr(), n, Start::Zero) };
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
/// As for `product`.
unsafe fn tiled<T: Real>(a: Matrix<'_, T>, b: Matrix<'_, T>, c: &mut [T], start: Start<T>) {
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
    let start = SendStart(start);
    for_each(down * right, |chunk| {
        let (i, j) = (chunk / right * rows, chunk % right * cols);
        let a = a.rows_from(i, rows.min(m - i));
        let b = b.cols_from(j, cols.min(n - j));
        // SAFETY: tiles do not overlap, and `c` outlives the loop.
        unsafe { tile(a, b, c.get().add(i * n + j), n, start.get().from_column(j)) };
    });
}

/// A start that chunks on several threads share.
pub(super) struct SendStart<T>(pub(super) Start<T>);

impl<T: Copy> SendStart<T> {
    pub(super) fn get(&self) -> Start<T> {
        self.0
    }
}

// SAFETY: the pointer to the bias, if any, is only read, and by chunks that end before the call that was given it.
unsafe impl<T: Sync> Sync for SendStart<T> {}

/// The product on this thread, reading `b` where it is; its rows are contiguous.
///
/// # Safety
/// As for `product`; row `i` of `c` begins at `i * c_stride`.
unsafe fn direct<T: Real>(a: Matrix<'_, T>, b: Matrix<'_, T>, c: *mut T, c_stride: usize, start: Start<T>) {
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
    let packs = !contiguous || (a.rows >= PACK_ROWS && b.cols > width);
    let depth = a.cols.div_ceil(a.cols.div_ceil(DEPTH).max(1)).max(1);
    with_scratch(if packs { depth * width } else { 0 }, |packed: &mut [T]| {
        for k in (0..a.cols.max(1)).step_by(depth) {
            let run = depth.min(a.cols - k);
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
                        start: if k == 0 { start.from_column(j) } else { Start::Accumulate },
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
/// As for `product`, and `a` has one row.
unsafe fn vector_product<T: Real>(a: Matrix<'_, T>, b: Matrix<'_, T>, c: &mut [T], start: Start<T>) {
    let (k, n) = (a.cols, b.cols);
    let dots = (b.row_stride == 1 || k == 1) && (a.col_stride == 1 || k == 1) && b.col_stride != 1;
    let group = VECTOR_CHUNK_WORK.div_ceil(k.max(1)).next_multiple_of(128);
    let start = SendStart(start);
    for_each_chunk_mut(c, group, |chunk, c| {
        let j = chunk * group;
        let b =
            Matrix { cols: c.len(), offset: b.offset.wrapping_add_signed(j as isize * b.col_stride), ..b };
        let start = start.get().from_column(j);
        // SAFETY: the columns from `j` to `j + c.len()` of the caller's product.
        unsafe {
            if dots {
                let (a, b_stride) = (a.at(0, 0), b.col_stride);
                let (b, c, count) = (b.at(0, 0), c.as_mut_ptr(), c.len());
                Dots { a, b, b_stride, c, count, len: k, start }.compute();
            } else if b.col_stride == 1 || n == 1 {
                direct(a, b, c.as_mut_ptr(), 0, start);
            } else {
                tile(a, b, c.as_mut_ptr(), 0, start);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::parallel::with_threads;
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::StdRng};

    /// A matrix with strides and an offset drawn at random, in a slice of its own.
    struct Owned<T> {
        data: Vec<T>,
        offset: usize,
        shape: (usize, usize),
        strides: (isize, isize),
    }

    impl<T: Real> Owned<T> {
        fn random(shape: (usize, usize), rng: &mut StdRng) -> Self {
            let (rows, cols) = (shape.0.max(1) as isize, shape.1.max(1) as isize);
            let strides = match rng.random_range(0..7) {
                0 => (cols, 1),
                1 => (1, rows),
                2 => (cols + 3, 1),
                3 => (-cols, 1),
                4 => (2 * cols, -2),
                5 => (0, 1),
                _ => (1, 0),
            };
            let low = ((rows - 1) * strides.0).min(0) + ((cols - 1) * strides.1).min(0);
            let high = ((rows - 1) * strides.0).max(0) + ((cols - 1) * strides.1).max(0);
            let offset = (5 - low) as usize;
            let data = (0..offset + high as usize + 3).map(|_| number(rng)).collect();
            Self { data, offset, shape, strides }
        }

        fn view(&self) -> Matrix<'_, T> {
            Matrix::new(&self.data, self.offset, self.shape, self.strides)
        }

        fn get(&self, i: usize, j: usize) -> f64 {
            let at = self.offset as isize + i as isize * self.strides.0 + j as isize * self.strides.1;
            self.data[at as usize].to_f64().unwrap()
        }
    }

    fn number<T: Real>(rng: &mut StdRng) -> T {
        T::from(rng.random_range(-1.0..1.0)).unwrap()
    }

    fn check<T: Real>((m, k, n): (usize, usize, usize), rng: &mut StdRng) {
        let (a, b) = (Owned::<T>::random((m, k), rng), Owned::<T>::random((k, n), rng));
        let before: Vec<T> = (0..m * n).map(|_| number(rng)).collect();
        let bias: Vec<T> = (0..n).map(|_| number(rng)).collect();
        for (accumulate, bias) in [(false, None), (true, None), (false, Some(&bias[..]))] {
            let run = |threads| {
                let mut c = before.clone();
                with_threads(threads, || gemm(a.view(), b.view(), &mut c, accumulate, bias));
                c
            };
            let c = run(1);
            assert_eq!(c, run(2), "bits on one and two threads, {m} x {k} x {n}");
            for i in 0..m {
                for j in 0..n {
                    let mut sum = bias.map_or(0.0, |bias| bias[j].to_f64().unwrap());
                    if accumulate {
                        sum += before[i * n + j].to_f64().unwrap();
                    }
                    let terms = || (0..k).map(|k| a.get(i, k) * b.get(k, j));
                    let size = sum.abs() + terms().map(f64::abs).sum::<f64>();
                    sum += terms().sum::<f64>();
                    let bound = T::epsilon().to_f64().unwrap() * (k as f64 + 2.0) * size;
                    let error = (c[i * n + j].to_f64().unwrap() - sum).abs();
                    assert!(error <= bound, "{m} x {k} x {n} at {i}, {j}: {error} over {bound}");
                }
            }
        }
    }

    #[test]
    fn products_of_any_size_and_layout_match_the_sum() {
        let mut rng = StdRng::seed_from_u64(1);
        for round in 0..300 {
            let mut size = || {
                let most = [2, 5, 20, 70][rng.random_range(0..4)];
                rng.random_range(0..=most)
            };
            let shape = (size(), size(), size());
            if round % 2 == 0 { check::<f32>(shape, &mut rng) } else { check::<f64>(shape, &mut rng) }
        }
    }

    #[test]
    fn products_large_enough_for_threads_match_the_sum() {
        let mut rng = StdRng::seed_from_u64(2);
        for shape in [
            (130, 300, 140),
            (500, 40, 70),
            (70, 40, 500),
            (3, 2500, 5),
            (1, 700, 900),
            (900, 700, 1),
            (30, 4500, 11),
        ] {
            for _ in 0..4 {
                check::<f32>(shape, &mut rng);
                check::<f64>(shape, &mut rng);
            }
        }
    }

    #[test]
    fn an_empty_inner_dim_gives_the_start() {
        let (a, b) = (Matrix::row_major(&[], 2, 0), Matrix::row_major(&[], 0, 3));
        let mut c = [7.0; 6];
        gemm::<f32>(a, b, &mut c, true, None);
        assert_eq!(c, [7.0; 6]);
        gemm(a, b, &mut c, false, Some(&[1.0, 2.0, 3.0]));
        assert_eq!(c, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
        gemm(a, b, &mut c, false, None);
        assert_eq!(c, [0.0; 6]);
    }

    #[test]
    fn a_row_has_the_same_bits_alone_and_in_a_batch() {
        let mut rng = StdRng::seed_from_u64(3);
        let x: Vec<f32> = (0..37 * 300).map(|_| number(&mut rng)).collect();
        let w: Vec<f32> = (0..300 * 50).map(|_| number(&mut rng)).collect();
        let w = Matrix::row_major(&w, 300, 50);
        let (mut all, mut one) = (vec![0.0; 37 * 50], vec![0.0; 50]);
        gemm(Matrix::row_major(&x, 37, 300), w, &mut all, false, None);
        for (x, all) in x.chunks(300).zip(all.chunks(50)) {
            gemm(Matrix::row_major(x, 1, 300), w, &mut one, false, None);
            assert_eq!(one, all);
        }
    }

    #[test]
    fn batches_take_each_matrix_from_its_place() {
        let mut rng = StdRng::seed_from_u64(4);
        for (batch, m, k, n) in
            [(0, 2, 3, 4), (5, 2, 3, 4), (7, 1, 0, 2), (40, 30, 20, 25), (3, 200, 150, 90)]
        {
            let a: Vec<f32> = (0..batch * m * k).map(|_| number(&mut rng)).collect();
            let b: Vec<f32> = (0..k * n).map(|_| number(&mut rng)).collect();
            let a = |i: usize| Matrix::row_major(&a[i * m * k..(i + 1) * m * k], m, k);
            let b = Matrix::row_major(&b, k, n);
            let (mut c, mut expected) = (vec![0.5; batch * m * n], vec![0.5; m * n]);
            gemm_batched(batch, a, |_| b, &mut c, false);
            for (i, c) in c.chunks_exact_mut(m * n).enumerate() {
                gemm(a(i), b, &mut expected, false, None);
                assert_eq!(c, expected);
                gemm(a(i), b, &mut expected, true, None);
            }
            let mut twice = c.clone();
            gemm_batched(batch, a, |_| b, &mut twice, true);
            for (i, c) in c.chunks_exact_mut(m * n).enumerate() {
                gemm(a(i), b, c, true, None);
            }
            assert_eq!(twice, c);
        }
    }

    #[test]
    #[should_panic(expected = "leaves its slice")]
    fn a_matrix_outside_of_its_slice_is_refused() {
        Matrix::new(&[0.0; 5], 0, (2, 3), (3, 1));
    }
}
