//! Layer norm: each row by its own mean and variance.

use super::super::blocks::CHUNK;
use super::super::parallel::SendPtr;
use super::super::reduce::{Op, sum_of};
use super::super::scratch::with_scratch;
use super::super::simd::vectorized;
use super::{Normal, Pieces};

/// Sums that a row is spread over, so that they are computed in vectors.
const LANES: usize = 16;
/// Elements of a lane, and rows, that are added up in the precision of the elements before they are widened.
const RUN: usize = 32;
/// Elements between two rows of sums: at a multiple of 4096 bytes a load of one would wait for the store of the other.
const APART: usize = 272;
/// Elements that stay in the second-level cache while several loops pass over them.
const GROUP: usize = 2 * CHUNK;

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
            let rows = GROUP.div_ceil(n).clamp(8, RUN) * n;
            for start in range.clone().step_by(rows) {
                let group = start..range.end.min(start + rows);
                let (x, dy) = (&x[group.clone()], &dy[group.clone()]);
                let dx = &mut dx[group.start - range.start..group.end - range.start];
                let row = start / n;
                with_scratch(2 * n + APART, |parts: &mut [T]| {
                    parts.fill(T::zero());
                    let (sums, products) = parts.split_at_mut(n + APART);
                    let sums = &mut sums[..n];
                    for (row, (dy, (x, dx))) in
                        (row..).zip(dy.chunks_exact(n).zip(x.chunks_exact(n).zip(dx.chunks_exact_mut(n))))
                    {
                        let forward = (mean[row], inverse[row]);
                        let (along_g, along_gh) = row_sums(forward, x, dy, scale, sums, products);
                        let means = (T::narrow(along_g / n as f64), T::narrow(along_gh / n as f64));
                        remove(forward, x, dy, scale, means, dx);
                    }
                    widen_into(sums, sum);
                    widen_into(products, product);
                });
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

/// With `h = (x - mean) inverse`, adds `dy` to `sums` and `dy h` to `products`, column by column; gives `sum dy scale` and
/// `sum dy scale h` of the row, which are added up in `T` over `RUN` elements at most before they are widened.
///
/// It keeps no `h`: stores that miss the caches between those that do not would hold up the loads behind them, which costs
/// more than computing it twice.
fn row_sums<T: Normal>(
    (mean, inverse): (T, T),
    x: &[T],
    dy: &[T],
    scale: &[T],
    sums: &mut [T],
    products: &mut [T],
) -> (f64, f64) {
    let [mut one, mut other] = [[0.0; LANES]; 2];
    let whole = x.len() / LANES * LANES;
    for start in (0..whole).step_by(RUN * LANES) {
        let range = start..whole.min(start + RUN * LANES);
        let mut lanes = [[T::zero(); LANES]; 2];
        let given = [&x[range.clone()], &dy[range.clone()], &scale[range.clone()]].map(|x| x.as_chunks().0);
        let made = [&mut sums[range.clone()], &mut products[range]];
        row_lanes((mean, inverse), given, made.map(|y| y.as_chunks_mut().0), &mut lanes);
        for lane in 0..LANES {
            one[lane] += lanes[0][lane].widen();
            other[lane] += lanes[1][lane].widen();
        }
    }
    let (mut one, mut other): (f64, f64) = (one.iter().sum(), other.iter().sum());
    for c in whole..x.len() {
        let (z, g) = ((x[c] - mean) * inverse, dy[c] * scale[c]);
        one += g.widen();
        other += (g * z).widen();
        sums[c] = sums[c] + dy[c];
        products[c] = products[c] + dy[c] * z;
    }
    (one, other)
}

/// The whole vectors of [`row_sums`]. A function of its own with a copy of the lanes: only so does the compiler hold them
/// in registers.
#[inline(never)]
fn row_lanes<T: Normal>(
    (mean, inverse): (T, T),
    [x, dy, scale]: [&[[T; LANES]]; 3],
    [sums, products]: [&mut [[T; LANES]]; 2],
    lanes: &mut [[T; LANES]; 2],
) {
    vectorized(
        #[inline(always)]
        move || {
            let [mut one, mut other] = *lanes;
            let columns = x.iter().zip(dy).zip(scale).zip(sums.iter_mut().zip(products));
            for (((x, dy), scale), (sums, products)) in columns {
                // Copies, which the compiler sees not to overlap.
                let (x, dy, scale) = (*x, *dy, *scale);
                let (mut sum, mut product) = (*sums, *products);
                for lane in 0..LANES {
                    let z = (x[lane] - mean) * inverse;
                    let g = dy[lane] * scale[lane];
                    one[lane] = one[lane] + g;
                    other[lane] = g.mul_add(z, other[lane]);
                    sum[lane] = sum[lane] + dy[lane];
                    product[lane] = dy[lane].mul_add(z, product[lane]);
                }
                *sums = sum;
                *products = product;
            }
            *lanes = [one, other];
        },
    );
}

/// Adds `parts` to `sums`.
#[inline(never)]
fn widen_into<T: Normal>(parts: &[T], sums: &mut [f64]) {
    vectorized(
        #[inline(always)]
        move || {
            for (sum, &part) in sums.iter_mut().zip(parts) {
                *sum += part.widen();
            }
        },
    );
}

/// `dx = inverse (dy scale - a - h b)` for `means = (a, b)` and `h = (x - mean) inverse`.
#[inline(never)]
fn remove<T: Normal>((mean, inverse): (T, T), x: &[T], dy: &[T], scale: &[T], means: (T, T), dx: &mut [T]) {
    vectorized(
        #[inline(always)]
        move || {
            let (a, b) = means;
            for (((dx, &x), &dy), &scale) in dx.iter_mut().zip(x).zip(dy).zip(scale) {
                *dx = inverse * (dy * scale - a - (x - mean) * inverse * b);
            }
        },
    );
}
