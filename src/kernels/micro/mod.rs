//! The innermost loops of products and convolutions, on one thread.
#![expect(
    clippy::needless_range_loop,
    reason = "loops over constants that index several arrays; unrolled into registers"
)]

mod dots;

use super::real::Real;
pub(crate) use dots::Dots;
use pulp::{Simd, WithSimd};

/// Where the rows of a matrix lie: at multiples of a stride, or as a table says.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    /// Row `i` begins `i * stride` elements after the first.
    Stride(isize),
    /// Row `i` begins `table[i]` elements after the first.
    Table(&'a [isize]),
}

impl Rows<'_> {
    #[inline(always)]
    fn offset(self, i: usize) -> isize {
        match self {
            Rows::Stride(stride) => i as isize * stride,
            Rows::Table(table) => table[i],
        }
    }
}

/// What the sums start from.
#[derive(Clone, Copy)]
pub(crate) enum Start<T> {
    /// Nothing: `c` is overwritten.
    Zero,
    /// What `c` holds.
    Accumulate,
    /// One number a column.
    Bias(*const T),
}

// SAFETY: the pointer is only read, within unsafe calls whose callers vouch for it.
unsafe impl<T: Sync> Sync for Start<T> {}

impl<T> Start<T> {
    /// The same for the columns from `j` on.
    #[inline(always)]
    pub(crate) fn skip_columns(self, j: usize) -> Self {
        match self {
            Start::Bias(bias) => Start::Bias(bias.wrapping_add(j)),
            other => other,
        }
    }
}

/// `c[i, j] = start + sum over s and k of a[i, segments[s] + k * a_step] * b[s * b_segment + k * b_stride + j]`.
///
/// The columns of `a` are read in runs whose places are the same for all rows: one run for a matrix, one a tap of the
/// filter for a convolution. The rows of `b` and `c` are contiguous. Each sum is taken in the order of `s` and `k`,
/// whatever else is computed beside it.
#[derive(Clone, Copy)]
pub(crate) struct Panel<'a, T> {
    pub a: *const T,
    pub a_rows: Rows<'a>,
    pub a_step: isize,
    pub segments: &'a [isize],
    pub run: usize,
    pub b: *const T,
    pub b_stride: usize,
    pub b_segment: usize,
    pub c: *mut T,
    pub c_rows: Rows<'a>,
    pub rows: usize,
    pub cols: usize,
    pub start: Start<T>,
}

impl<T: Real> Panel<'_, T> {
    /// Computes the panel.
    ///
    /// # Safety
    /// Each element named by the formula is readable (`a`, `b`, bias) or writable (`c`), and `c` overlaps nothing else.
    #[inline(never)] // one copy: what is inlined here is the bulk of the code
    pub(crate) unsafe fn compute(self) {
        pulp::Arch::new().dispatch(Compute(self));
    }
}

/// Columns of a panel whose sums and `b` are used best: two vectors.
pub(crate) fn panel_width<T: Real>() -> usize {
    struct Width<T>(std::marker::PhantomData<T>);
    impl<T: Real> WithSimd for Width<T> {
        type Output = usize;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            2 * T::lanes::<S>()
        }
    }
    pulp::Arch::new().dispatch(Width::<T>(std::marker::PhantomData))
}

struct Compute<'a, T>(Panel<'a, T>);

impl<T: Real> WithSimd for Compute<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (whole, lanes) = (self.0, T::lanes::<S>());
        let mut j = 0;
        while j < whole.cols {
            let left = whole.cols - j;
            // Few rows leave registers free for more columns.
            let vectors = match whole.rows {
                1 if left > 7 * lanes => 8,
                1..=3 if left > 3 * lanes => 4,
                _ if left > lanes => 2,
                _ => 1,
            };
            let cols = left.min(vectors * lanes);
            // SAFETY: `Panel::compute`, the only one to build `Compute`, passes on its caller's promise; these are
            // the columns from `j` to `j + cols` of that panel.
            unsafe {
                let p = Panel {
                    b: whole.b.add(j),
                    c: whole.c.add(j),
                    cols,
                    start: whole.start.skip_columns(j),
                    ..whole
                };
                match vectors {
                    8 => block::<T, S, 1, 8>(simd, &p, 0),
                    4 => {
                        (0..p.rows / 2).for_each(|i| block::<T, S, 2, 4>(simd, &p, 2 * i));
                        if p.rows % 2 == 1 {
                            block::<T, S, 1, 4>(simd, &p, p.rows - 1);
                        }
                    }
                    2 => rows::<T, S, 2>(simd, &p),
                    _ => rows::<T, S, 1>(simd, &p),
                }
            }
            j += cols;
        }
    }
}

/// Walks down the rows in blocks whose sums fit into the registers.
#[inline(always)]
unsafe fn rows<T: Real, S: Simd, const C: usize>(simd: S, p: &Panel<T>) {
    let mut i = 0;
    // SAFETY: the caller's promise; every block lies within `p.rows`.
    unsafe {
        if S::REGISTER_COUNT >= 32 {
            while p.rows - i >= 12 {
                block::<T, S, 12, C>(simd, p, i);
                i += 12;
            }
            if p.rows - i >= 8 {
                block::<T, S, 8, C>(simd, p, i);
                i += 8;
            }
        } else {
            while p.rows - i >= 6 {
                block::<T, S, 6, C>(simd, p, i);
                i += 6;
            }
        }
        if p.rows - i >= 4 {
            block::<T, S, 4, C>(simd, p, i);
            i += 4;
        }
        if p.rows - i >= 2 {
            block::<T, S, 2, C>(simd, p, i);
            i += 2;
        }
        if p.rows - i >= 1 {
            block::<T, S, 1, C>(simd, p, i);
        }
    }
}

/// `R` rows from row `i` on, `C` vectors of columns of which the last may be partly outside.
#[inline(always)]
unsafe fn block<T: Real, S: Simd, const R: usize, const C: usize>(simd: S, p: &Panel<T>, i: usize) {
    let lanes = T::lanes::<S>();
    let full = T::mask(simd, lanes);
    let last = T::mask(simd, p.cols - (C - 1) * lanes);
    // SAFETY: the caller's promise.
    unsafe {
        let mut a = [p.a; R];
        let mut c = [p.c; R];
        for r in 0..R {
            a[r] = p.a.offset(p.a_rows.offset(i + r));
            c[r] = p.c.offset(p.c_rows.offset(i + r));
        }
        let mut sum = [[T::splat(simd, T::zero()); C]; R];
        match p.start {
            Start::Zero => {}
            Start::Accumulate => {
                for r in 0..R {
                    for v in 0..C {
                        let mask = if v + 1 == C { last } else { full };
                        sum[r][v] = T::load_masked(simd, mask, c[r].add(v * lanes));
                    }
                }
            }
            Start::Bias(bias) => {
                for v in 0..C {
                    let x = T::load_masked(simd, if v + 1 == C { last } else { full }, bias.add(v * lanes));
                    for row in &mut sum {
                        row[v] = x;
                    }
                }
            }
        }
        for (s, &segment) in p.segments.iter().enumerate() {
            let mut b = p.b.wrapping_add(s * p.b_segment);
            let mut at = segment;
            for _ in 0..p.run {
                let mut y = [T::splat(simd, T::zero()); C];
                for v in 0..C {
                    let b = b.add(v * lanes);
                    y[v] = if v + 1 == C { T::load_masked(simd, last, b) } else { T::load(simd, b) };
                }
                for r in 0..R {
                    let x = T::splat(simd, *a[r].offset(at));
                    for v in 0..C {
                        sum[r][v] = T::multiply_add(simd, x, y[v], sum[r][v]);
                    }
                }
                at += p.a_step;
                b = b.wrapping_add(p.b_stride);
            }
        }
        for r in 0..R {
            for v in 0..C {
                T::store_masked(simd, if v + 1 == C { last } else { full }, c[r].add(v * lanes), sum[r][v]);
            }
        }
    }
}
