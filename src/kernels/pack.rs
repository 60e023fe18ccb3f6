//! Copies of a matrix in the order in which a product reads it.

use super::real::Real;
use super::simd::vectorized;

/// `panel[k * width + j] = b[k * row_stride + j * col_stride]` for `k < rows` and `j < cols`, and zero for
/// `cols <= j < width`.
///
/// # Safety
/// Every element of `b` named by the formula is readable.
pub(crate) unsafe fn pack_panel<T: Real>(
    b: *const T,
    (rows, cols): (usize, usize),
    (row_stride, col_stride): (isize, isize),
    panel: &mut [T],
    width: usize,
) {
    assert!(panel.len() >= rows * width && cols <= width);
    if cols < width {
        panel[..rows * width].fill(T::zero());
    }
    let to = panel.as_mut_ptr();
    // SAFETY: reads are vouched for by the caller; writes stay in the first `rows * width` elements of `panel`.
    unsafe {
        if col_stride == 1 {
            copy_rows(b, row_stride, to, width, (rows, cols));
        } else if row_stride == 1 {
            transpose(b, col_stride, to, width, (rows, cols));
        } else {
            for k in 0..rows {
                for j in 0..cols {
                    *to.add(k * width + j) = *b.offset(k as isize * row_stride + j as isize * col_stride);
                }
            }
        }
    }
}

/// Reads one element of each cache line of `rows` rows of `cols` elements, in order.
///
/// A product that walks down columns meets every line far from the last one, which defeats the machine's prefetching; after
/// this the lines are in its caches.
///
/// # Safety
/// Every element `p[i * stride + j]` of the rows is readable.
pub(crate) unsafe fn fetch<T: Real>(p: *const T, (rows, cols): (usize, usize), stride: isize) {
    for i in 0..rows {
        for j in (0..cols).step_by(64 / size_of::<T>()) {
            // SAFETY: an element of row `i`. The read is volatile so that it happens although nobody uses it.
            unsafe { p.offset(i as isize * stride).add(j).read_volatile() };
        }
    }
}

/// `to[k * width + j] = from[k * stride + j]`, without a call for each of the short rows.
///
/// # Safety
/// Every element of `from` named by the formula is readable, every one of `to` writable.
unsafe fn copy_rows<T: Real>(
    from: *const T,
    stride: isize,
    to: *mut T,
    width: usize,
    (rows, cols): (usize, usize),
) {
    const BLOCK: usize = 16;
    let whole = cols - cols % BLOCK;
    vectorized(
        #[inline(always)]
        || {
            for k in 0..rows {
                // SAFETY: blocks and single elements together are the `cols` elements of row `k`.
                unsafe {
                    let (from, to) = (from.offset(k as isize * stride), to.add(k * width));
                    for j in (0..whole).step_by(BLOCK) {
                        let block = from.add(j).cast::<[T; BLOCK]>().read();
                        to.add(j).cast::<[T; BLOCK]>().write(block);
                    }
                    for j in whole..cols {
                        *to.add(j) = *from.add(j);
                    }
                }
            }
        },
    );
}

/// `to[k * width + j] = from[j * stride + k]`, eight columns at a time, in squares that are read and written in whole
/// vectors.
///
/// # Safety
/// Every element of `from` named by the formula is readable, every one of `to` writable.
unsafe fn transpose<T: Real>(
    from: *const T,
    stride: isize,
    to: *mut T,
    width: usize,
    (rows, cols): (usize, usize),
) {
    let (whole_rows, whole_cols) = (rows - rows % 4, cols - cols % 8);
    let strip = T::transpose_strip();
    // SAFETY: the strips tile the part of both matrices below `whole_rows` and `whole_cols`, the loops cover the rest.
    unsafe {
        for j in (0..whole_cols).step_by(8) {
            strip(from.offset(j as isize * stride), stride, to.add(j), width, whole_rows);
        }
        let single = |k: usize, j: usize| *to.add(k * width + j) = *from.offset(j as isize * stride).add(k);
        for k in 0..whole_rows {
            (whole_cols..cols).for_each(|j| single(k, j));
        }
        for k in whole_rows..rows {
            (0..cols).for_each(|j| single(k, j));
        }
    }
}

/// Transposes eight columns of `rows` elements, a multiple of 4: `to[k * width + j] = from[j * stride + k]`.
pub(crate) type TransposeStrip<T> = unsafe fn(*const T, isize, *mut T, usize, usize);

/// The strip on any machine.
///
/// # Safety
/// All elements on both sides are valid.
pub(crate) unsafe fn transpose_portable<T: Real>(
    from: *const T,
    stride: isize,
    to: *mut T,
    width: usize,
    rows: usize,
) {
    for row in (0..rows).step_by(4) {
        for col in [0, 4] {
            // SAFETY: the blocks of 4 x 4 lie within the strip.
            unsafe {
                let mut x = [[T::zero(); 4]; 4];
                for (j, x) in x.iter_mut().enumerate() {
                    *x = from.offset((col + j) as isize * stride).add(row).cast::<[T; 4]>().read();
                }
                let [x0, x1, x2, x3] = x;
                for (k, (((a, b), c), d)) in x0.into_iter().zip(x1).zip(x2).zip(x3).enumerate() {
                    to.add((row + k) * width + col).cast::<[T; 4]>().write([a, b, c, d]);
                }
            }
        }
    }
}

/// The strip of `f32` with AVX.
///
/// # Safety
/// All elements on both sides are valid, and the machine has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
pub(crate) unsafe fn transpose_avx(from: *const f32, stride: isize, to: *mut f32, width: usize, rows: usize) {
    use std::arch::x86_64::*;
    for row in (0..rows).step_by(4) {
        // SAFETY: four elements of each of the eight columns are read and four rows of eight are written.
        unsafe {
            let from = from.add(row);
            // Columns j and j + 4 share a register, so that each 4 x 4 block is transposed within its half of it.
            let pair = |j: isize| {
                let low = _mm_loadu_ps(from.offset(j * stride));
                let high = _mm_loadu_ps(from.offset((j + 4) * stride));
                _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(low), high)
            };
            let (x0, x1, x2, x3) = (pair(0), pair(1), pair(2), pair(3));
            let (low01, high01) = (_mm256_unpacklo_ps(x0, x1), _mm256_unpackhi_ps(x0, x1));
            let (low23, high23) = (_mm256_unpacklo_ps(x2, x3), _mm256_unpackhi_ps(x2, x3));
            let to = to.add(row * width);
            _mm256_storeu_ps(to, _mm256_shuffle_ps::<0x44>(low01, low23));
            _mm256_storeu_ps(to.add(width), _mm256_shuffle_ps::<0xee>(low01, low23));
            _mm256_storeu_ps(to.add(2 * width), _mm256_shuffle_ps::<0x44>(high01, high23));
            _mm256_storeu_ps(to.add(3 * width), _mm256_shuffle_ps::<0xee>(high01, high23));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Real>(rows: usize, cols: usize, strides: (isize, isize), width: usize) {
        let b: Vec<T> = (0..2000).map(|i| T::from(i).unwrap()).collect();
        let mut panel = vec![T::nan(); rows * width];
        // SAFETY: the callers below keep all elements under 2000.
        unsafe { pack_panel(b.as_ptr(), (rows, cols), strides, &mut panel, width) };
        for k in 0..rows {
            for j in 0..width {
                let expected = k as isize * strides.0 + j as isize * strides.1;
                let expected = if j < cols { T::from(expected).unwrap() } else { T::zero() };
                assert_eq!(panel[k * width + j], expected, "{rows} x {cols}, {strides:?}: {k} {j}");
            }
        }
    }

    #[test]
    fn panels_hold_the_matrix_in_any_layout() {
        for rows in [0, 1, 7, 8, 19] {
            for cols in [1, 5, 8, 16, 31, 32] {
                for strides in [(40, 1), (1, 40), (1, 19), (33, 2), (0, 1), (1, 0)] {
                    check::<f32>(rows, cols, strides, 32);
                    check::<f64>(rows, cols, strides, 33);
                }
            }
        }
    }
}
