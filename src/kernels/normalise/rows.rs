//! Layer norm: each row by its own mean and variance.

use super::super::blocks::CHUNK;
use super::super::parallel::SendPtr;
use super::super::reduce::{Op, sum_of};
use super::super::simd::vectorized;
use super::channels::{sums, with_tiles};
use super::{Normal, Pieces};

/// Sums that a row is spread over, so that they are computed in vectors.
const LANES: usize = 16;
/// Elements that stay in the second-level cache while several loops pass over them.
const GROUP: usize = CHUNK;

/// `y = h scale + offset` with `h = (x - mean) inverse` and `inverse = 1 / sqrt(variance + epsilon)`, mean and variance
/// being those of each row. `scale` and `offset` have one number a column; `mean` and `inverse`, for the gradients, get
/// one a row.
pub(crate) fn normalise_rows<T: Normal>(
    x: &[T],
    epsilon: T,
    scale: &[T],
    offset: &[T],
    y: &mut [T],
    mean: &mut [T],
    inverse: &mut [T],
) {
    let n = scale.len();
    assert!(x.len() == y.len() && offset.len() == n, "normalisation keeps the shape");
    assert!(x.len() == mean.len() * n && mean.len() == inverse.len(), "one mean a row");
    let (mean, inverse) = (SendPtr(mean.as_mut_ptr()), SendPtr(inverse.as_mut_ptr()));
    Pieces::new(x.len(), n).for_each(y, |range, y| {
        let (first, rows) = (range.start / n, range.len() / n);
        // SAFETY: pieces are whole rows and do not overlap.
        let (mean, inverse) = unsafe { (mean.part(first, rows), inverse.part(first, rows)) };
        let rows = x[range].chunks_exact(n).zip(y.chunks_exact_mut(n));
        for ((x, y), (mean, inverse)) in rows.zip(mean.iter_mut().zip(inverse)) {
            let center = sum_of(x) / n as f64;
            let squares = |sum, x: T| {
                let d = x.widen() - center;
                sum + d * d
            };
            let variance = Op::new(0.0, squares, |a, b| a + b, |sum| sum).of(x) / n as f64;
            *mean = T::narrow(center);
            *inverse = T::narrow(1.0 / (variance + epsilon.widen()).sqrt());
            standardise(x, *mean, *inverse, scale, offset, y);
        }
    });
}

/// What the gradients of [`normalise_rows`] know of its forward pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a, T> {
    /// The mean, one a row.
    pub(crate) mean: &'a [T],
    /// `1 / sqrt(variance + epsilon)`, one a row.
    pub(crate) inverse: &'a [T],
    /// The scale, one a column.
    pub(crate) scale: &'a [T],
}

/// Gradients of [`normalise_rows`], given `dy`: with `g = dy scale` and means over a row
/// `dx = inverse (g - mean(g) - h mean(g h))`; over all rows `dscale = sum dy h` and `doffset = sum dy` (Ba, Kiros & Hinton
/// 2016).
pub(crate) fn row_gradients<T: Normal>(
    forward: Rows<T>,
    x: &[T],
    dy: &[T],
    dx: &mut [T],
    dscale: &mut [T],
    doffset: &mut [T],
) {
    let Rows { mean, inverse, scale } = forward;
    let n = scale.len();
    assert!(x.len() == dy.len() && x.len() == dx.len(), "a gradient has the shape of its tensor");
    assert!(dscale.len() == n && doffset.len() == n, "one number a column");
    assert!(x.len() == mean.len() * n && mean.len() == inverse.len(), "one number a row");
    let pieces = Pieces::new(x.len(), n);
    let dx = SendPtr(dx.as_mut_ptr());
    pieces.sums(
        |piece, sum, product| {
            let range = pieces.range(piece);
            // SAFETY: pieces do not overlap.
            let dx = unsafe { dx.part(range.start, range.len()) };
            for start in range.clone().step_by(GROUP.div_ceil(n) * n) {
                let group = start..range.end.min(start + GROUP.div_ceil(n) * n);
                let (x, dy) = (&x[group.clone()], &dy[group.clone()]);
                let dx = &mut dx[group.start - range.start..group.end - range.start];
                let row = start / n;
                // dx is h at first.
                for (row, (x, dx)) in (row..).zip(x.chunks_exact(n).zip(dx.chunks_exact_mut(n))) {
                    center(x, mean[row], inverse[row], dx);
                }
                with_tiles([scale], |[tile]| {
                    sums(dy, dx, tile, sum, product, |dy, h, _| (dy.widen(), dy.widen() * h.widen()));
                });
                for (row, (dy, dx)) in (row..).zip(dy.chunks_exact(n).zip(dx.chunks_exact_mut(n))) {
                    let (along_g, along_gh) = weighted_sums(dy, scale, dx);
                    let means = (T::narrow(along_g / n as f64), T::narrow(along_gh / n as f64));
                    remove(dy, scale, inverse[row], means, dx);
                }
            }
        },
        |_, [sum, product], [other_sum, other_product]| {
            *sum += other_sum;
            *product += other_product;
        },
        |c, [sum, product]| {
            doffset[c] = T::narrow(sum);
            dscale[c] = T::narrow(product);
        },
    );
}

/// `y = (x - mean) inverse scale + offset`.
#[inline(never)]
fn standardise<T: Normal>(x: &[T], mean: T, inverse: T, scale: &[T], offset: &[T], y: &mut [T]) {
    vectorized(
        #[inline(always)]
        move || {
            for ((y, &x), (&scale, &offset)) in y.iter_mut().zip(x).zip(scale.iter().zip(offset)) {
                *y = ((x - mean) * inverse).mul_add(scale, offset);
            }
        },
    );
}

/// `y = (x - mean) inverse`.
#[inline(never)]
fn center<T: Normal>(x: &[T], mean: T, inverse: T, y: &mut [T]) {
    vectorized(
        #[inline(always)]
        move || {
            for (y, &x) in y.iter_mut().zip(x) {
                *y = (x - mean) * inverse;
            }
        },
    );
}

/// `sum dy scale` and `sum dy scale h`.
fn weighted_sums<T: Normal>(dy: &[T], scale: &[T], h: &[T]) -> (f64, f64) {
    let terms = |dy: T, scale: T, h: T| {
        let g = dy.widen() * scale.widen();
        (g, g * h.widen())
    };
    let (dy, dy_rest) = dy.as_chunks::<LANES>();
    let (scale, scale_rest) = scale.as_chunks::<LANES>();
    let (h, h_rest) = h.as_chunks::<LANES>();
    let mut lanes = [[0.0; LANES]; 2];
    weighted_lanes(dy, scale, h, &mut lanes, terms);
    let (mut one, mut other) = (lanes[0].iter().sum(), lanes[1].iter().sum());
    for ((&dy, &scale), &h) in dy_rest.iter().zip(scale_rest).zip(h_rest) {
        let (a, b) = terms(dy, scale, h);
        one += a;
        other += b;
    }
    (one, other)
}

/// Adds the terms of element `i` of each chunk to lane `i`. A function of its own with a copy of the lanes: only so does
/// the compiler hold them in registers.
#[inline(never)]
fn weighted_lanes<T: Normal>(
    dy: &[[T; LANES]],
    scale: &[[T; LANES]],
    h: &[[T; LANES]],
    lanes: &mut [[f64; LANES]; 2],
    terms: impl Fn(T, T, T) -> (f64, f64) + Copy,
) {
    vectorized(
        #[inline(always)]
        || {
            let [mut one, mut other] = *lanes;
            for ((dy, scale), h) in dy.iter().zip(scale).zip(h) {
                for lane in 0..LANES {
                    let (a, b) = terms(dy[lane], scale[lane], h[lane]);
                    one[lane] += a;
                    other[lane] += b;
                }
            }
            *lanes = [one, other];
        },
    );
}

/// `h = inverse (dy scale - a - h b)` for `means = (a, b)`.
#[inline(never)]
fn remove<T: Normal>(dy: &[T], scale: &[T], inverse: T, means: (T, T), h: &mut [T]) {
    vectorized(
        #[inline(always)]
        move || {
            let (a, b) = means;
            for ((h, &dy), &scale) in h.iter_mut().zip(dy).zip(scale) {
                *h = inverse * (dy * scale - a - *h * b);
            }
        },
    );
}
