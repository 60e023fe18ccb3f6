//! Inner products, for results with few columns: vectors run along the sum instead of along the columns.

use super::{Rows, Start};
use crate::kernels::real::Real;
use pulp::{Simd, WithSimd};

/// `c[i, j] = start + sum over s and k of a[i, segments[s] + k] * b[j * b_col + s * run + k]`.
///
/// As [`super::Panel`], but the runs of `a` and the columns of `b` are contiguous. Each sum is taken lane by lane, then over
/// the lanes, whatever else is computed beside it.
#[derive(Clone, Copy)]
pub(crate) struct Dots<'a, T> {
    pub a: *const T,
    pub a_rows: Rows<'a>,
    pub segments: &'a [isize],
    pub run: usize,
    pub b: *const T,
    pub b_col: usize,
    pub c: *mut T,
    pub c_rows: Rows<'a>,
    pub rows: usize,
    pub cols: usize,
    pub start: Start<T>,
}

impl<T: Real> Dots<'_, T> {
    /// Computes the products.
    ///
    /// # Safety
    /// Each element named by the formula is readable (`a`, `b`, bias) or writable (`c`), and `c` overlaps nothing else.
    #[inline(never)] // one copy: what is inlined here is the bulk of the code
    pub(crate) unsafe fn compute(self) {
        pulp::Arch::new().dispatch(Compute(self));
    }
}

struct Compute<'a, T>(Dots<'a, T>);

impl<T: Real> WithSimd for Compute<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let p = &self.0;
        let mut j = 0;
        // SAFETY: `Dots::compute`, the only one to build `Compute`, passes on its caller's promise; the columns from `j` on
        // are within `p.cols`.
        unsafe {
            if S::REGISTER_COUNT >= 32 {
                while p.cols - j >= 4 {
                    rows::<T, S, 4, 4>(simd, p, j);
                    j += 4;
                }
            }
            while p.cols - j >= 2 {
                rows::<T, S, 4, 2>(simd, p, j);
                j += 2;
            }
            if j < p.cols {
                rows::<T, S, 8, 1>(simd, p, j);
            }
        }
    }
}

/// `C` columns from column `j` on, `R` rows at a time.
#[inline(always)]
unsafe fn rows<T: Real, S: Simd, const R: usize, const C: usize>(simd: S, p: &Dots<T>, j: usize) {
    let mut i = 0;
    // SAFETY: the caller's promise; every block lies within `p.rows`.
    unsafe {
        while p.rows - i >= R {
            block::<T, S, R, C>(simd, p, i, j);
            i += R;
        }
        while i < p.rows {
            block::<T, S, 1, C>(simd, p, i, j);
            i += 1;
        }
    }
}

#[inline(always)]
unsafe fn block<T: Real, S: Simd, const R: usize, const C: usize>(simd: S, p: &Dots<T>, i: usize, j: usize) {
    let lanes = T::lanes::<S>();
    let whole = p.run - p.run % lanes;
    let rest = T::mask(simd, p.run - whole);
    // SAFETY: the caller's promise.
    unsafe {
        let mut a = [p.a; R];
        for r in 0..R {
            a[r] = p.a.offset(p.a_rows.offset(i + r));
        }
        let mut sum = [[T::splat(simd, T::zero()); C]; R];
        for (s, &segment) in p.segments.iter().enumerate() {
            let b = p.b.wrapping_add(j * p.b_col + s * p.run);
            let mut k = 0;
            while k < whole {
                let mut y = [T::splat(simd, T::zero()); C];
                for c in 0..C {
                    y[c] = T::load(simd, b.add(c * p.b_col + k));
                }
                for r in 0..R {
                    let x = T::load(simd, a[r].offset(segment + k as isize));
                    for c in 0..C {
                        sum[r][c] = T::multiply_add(simd, x, y[c], sum[r][c]);
                    }
                }
                k += lanes;
            }
            if k < p.run {
                for r in 0..R {
                    let x = T::load_masked(simd, rest, a[r].offset(segment + k as isize));
                    for c in 0..C {
                        let y = T::load_masked(simd, rest, b.add(c * p.b_col + k));
                        sum[r][c] = T::multiply_add(simd, x, y, sum[r][c]);
                    }
                }
            }
        }
        for r in 0..R {
            for c in 0..C {
                let to = p.c.offset(p.c_rows.offset(i + r)).add(j + c);
                let start = match p.start {
                    Start::Zero => T::zero(),
                    Start::Accumulate => *to,
                    Start::Bias(bias) => *bias.add(j + c),
                };
                *to = start + T::reduce(simd, sum[r][c]);
            }
        }
    }
}
