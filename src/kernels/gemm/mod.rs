//! Matrix products.

mod matrix;
mod tiles;

use super::micro::Start;
use super::parallel::for_each_chunk_mut;
pub(crate) use super::real::Real;
pub(crate) use matrix::Matrix;
pub(crate) use tiles::CHUNK_WORK;
use tiles::{SPLIT_DEPTH, direct, split, tiled, vector_product};

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
    if k == 0 {
        // The matrices have no elements, and so no addresses to reckon with.
        match start {
            Start::Zero => c.fill(T::zero()),
            Start::Accumulate => {}
            Start::Bias(bias) => {
                // SAFETY: as the caller says.
                let bias = unsafe { std::slice::from_raw_parts(bias, n) };
                c.chunks_exact_mut(n).for_each(|c| c.copy_from_slice(bias));
            }
        }
        return;
    }
    if m == 1 {
        // SAFETY: `Matrix` has checked that its elements exist, the caller that `c` and the bias fit.
        unsafe { vector_product(a, b, c, start) };
    } else if n == 1 && !matches!(start, Start::Bias(_)) {
        // A column is the row of the transposed product.
        // SAFETY: as above.
        unsafe { vector_product(b.transposed(), a.transposed(), c, start) };
    } else if m * n * k < 2 * CHUNK_WORK && (b.col_stride == 1 || b.cols == 1) {
        // SAFETY: as above.
        unsafe { direct(a, b, c.as_mut_ptr(), n, start) };
    } else if k >= SPLIT_DEPTH && k >= 8 * (m + n) {
        // SAFETY: as above.
        unsafe { split(a, b, c, start) };
    } else {
        // SAFETY: as above.
        unsafe { tiled(a, b, c, start) };
    }
}

#[cfg(test)]
mod tests;
