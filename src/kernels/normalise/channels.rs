//! Batch norm: statistics, the normalisation itself and its gradients, one mean and variance a channel.

use std::ops::Range;

use super::super::scratch::with_scratch;
use super::super::simd::vectorized;
use super::{Normal, Pieces};

/// Columns summed together; narrow rows that follow each other are taken together up to this width.
const WIDE: usize = 512;

/// Mean and variance (of the whole population) of each channel of the rows `x`; NaN without rows.
pub(crate) fn channel_moments<T: Normal>(x: &[T], mean: &mut [T], variance: &mut [T]) {
    let channels = mean.len();
    assert_eq!(variance.len(), channels, "one mean and variance a channel");
    let rows = x.len().checked_div(channels).unwrap_or(0);
    sums_of_squares(x, channels, |c, center, squares| {
        mean[c] = T::narrow(if rows == 0 { f64::NAN } else { center });
        variance[c] = T::narrow(squares / rows as f64);
    });
}

/// Calls `finish(channel, mean, squares)` with the mean of each channel of the rows `x`, and the sum of the squared
/// distances from it; zeros without rows.
///
/// The squares are accurate however far the mean is from 0: within a piece, deviations are taken from its first row `a`,
/// so that `sum (x - a)^2` is at most `1 + rows` times the sum of squares about the mean. Pieces are merged as in Chan,
/// Golub & LeVeque 1983.
pub(super) fn sums_of_squares<T: Normal>(x: &[T], channels: usize, mut finish: impl FnMut(usize, f64, f64)) {
    let pieces = Pieces::new(x.len(), channels);
    let count = |piece: usize| (pieces.range(piece).len() / channels) as f64;
    pieces.sums(
        |piece, mean, squares| {
            let x = &x[pieces.range(piece)];
            let first = &x[..channels];
            with_tiles([first], |[first]| {
                sums(x, x, first, mean, squares, |x, _, first| {
                    let d = x.widen() - first.widen();
                    (d, d * d)
                });
            });
            for ((mean, squares), first) in mean.iter_mut().zip(squares).zip(first) {
                *squares -= *mean * *mean / count(piece);
                *mean = first.widen() + *mean / count(piece);
            }
        },
        |piece, [mean, squares], [other_mean, other_squares]| {
            let (before, new) = ((piece * pieces.each) as f64, count(piece));
            let delta = other_mean - *mean;
            *mean += delta * (new / (before + new));
            *squares += other_squares + delta * delta * (before * new / (before + new));
        },
        |c, [mean, squares]| finish(c, mean, if squares < 0.0 { 0.0 } else { squares }),
    );
}

/// `y = (x - mean) factor + offset`, with one of each a channel.
pub(crate) fn normalise_channels<T: Normal>(x: &[T], mean: &[T], factor: &[T], offset: &[T], y: &mut [T]) {
    assert_eq!(x.len(), y.len(), "normalisation keeps the shape");
    assert!(factor.len() == mean.len() && offset.len() == mean.len(), "one number a channel");
    with_tiles([mean, factor, offset], |[wide_mean, factor, offset]| {
        Pieces::new(x.len(), mean.len()).for_each(y, |range, y| {
            let width = wide_mean.len();
            for (x, y) in x[range].chunks(width).zip(y.chunks_mut(width)) {
                affine(x, wide_mean, factor, offset, y);
            }
        });
    });
}

/// What the gradients of a normalisation by channel know of its forward pass; one number a channel each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channels<'a, T> {
    /// The mean that was subtracted.
    pub(crate) mean: &'a [T],
    /// `1 / sqrt(variance + epsilon)`.
    pub(crate) inverse: &'a [T],
    /// The scale.
    pub(crate) scale: &'a [T],
    /// Whether mean and variance were those of `x` itself, rather than constants.
    pub(crate) of_batch: bool,
}

/// Gradients of `y = h scale + offset` with `h = (x - mean) inverse`, given `dy`: over `n` rows `doffset = sum dy`,
/// `dscale = sum dy h`, and `dx = scale inverse (dy - doffset / n - h dscale / n)`, with the last two terms if mean and
/// variance were those of `x` (Ioffe & Szegedy 2015, section 3).
pub(crate) fn channel_gradients<T: Normal>(
    forward: Channels<T>,
    x: &[T],
    dy: &[T],
    dx: &mut [T],
    dscale: &mut [T],
    doffset: &mut [T],
) {
    let Channels { mean, inverse, scale, of_batch } = forward;
    let channels = mean.len();
    assert!(x.len() == dy.len() && x.len() == dx.len(), "a gradient has the shape of its tensor");
    assert!([inverse, scale, dscale, doffset].iter().all(|of| of.len() == channels), "one number a channel");
    if x.is_empty() {
        // Sums over nothing, although the variance of nothing is NaN.
        dscale.fill(T::narrow(0.0));
        doffset.fill(T::narrow(0.0));
        return;
    }
    let rows = (x.len() / channels) as f64;
    with_scratch(3 * channels, |numbers: &mut [T]| {
        let (factor, rest) = numbers.split_at_mut(channels);
        let (slope, shift) = rest.split_at_mut(channels);
        gradient_sums(x, dy, mean, |c, sum, product| {
            let (inverse, scale) = (inverse[c].widen(), scale[c].widen());
            doffset[c] = T::narrow(sum);
            dscale[c] = T::narrow(product * inverse);
            factor[c] = T::narrow(scale * inverse);
            let through = if of_batch { scale * inverse / rows } else { 0.0 };
            slope[c] = T::narrow(-through * inverse * inverse * product);
            shift[c] = T::narrow(-through * sum);
        });
        combine(x, dy, [mean, factor, slope, shift], dx);
    });
}

/// Calls `finish(channel, sum, product)` with `sum dy` and `sum dy (x - mean)` of each channel.
pub(super) fn gradient_sums<T: Normal>(
    x: &[T],
    dy: &[T],
    mean: &[T],
    mut finish: impl FnMut(usize, f64, f64),
) {
    let pieces = Pieces::new(x.len(), mean.len());
    pieces.sums(
        |piece, sum, product| {
            let (x, dy) = (&x[pieces.range(piece)], &dy[pieces.range(piece)]);
            with_tiles([mean], |[mean]| {
                sums(x, dy, mean, sum, product, |x, dy, mean| {
                    (dy.widen(), dy.widen() * (x.widen() - mean.widen()))
                });
            });
        },
        |_, [sum, product], [other_sum, other_product]| {
            *sum += other_sum;
            *product += other_product;
        },
        |c, [sum, product]| finish(c, sum, product),
    );
}

/// `dx = factor dy + slope (x - mean) + shift`, with one of `[mean, factor, slope, shift]` a channel.
pub(super) fn combine<T: Normal>(x: &[T], dy: &[T], numbers: [&[T]; 4], dx: &mut [T]) {
    with_tiles(numbers, |[mean, factor, slope, shift]| {
        Pieces::new(x.len(), numbers[0].len()).for_each(dx, |range, dx| {
            let width = mean.len();
            let rows = x[range.clone()].chunks(width).zip(dy[range].chunks(width));
            for ((x, dy), dx) in rows.zip(dx.chunks_mut(width)) {
                affine(x, mean, slope, shift, dx);
                add_product(dy, factor, dx);
            }
        });
    });
}

/// Calls `f` with `numbers`, one a channel each, repeated for as many rows as are taken together.
pub(super) fn with_tiles<T: Normal, R, const N: usize>(
    numbers: [&[T]; N],
    f: impl FnOnce([&[T]; N]) -> R,
) -> R {
    let channels = numbers[0].len();
    let groups = WIDE.checked_div(channels).unwrap_or(1);
    if groups <= 1 {
        return f(numbers);
    }
    let width = groups * channels;
    with_scratch(N * width, |tiles: &mut [T]| {
        for (tile, numbers) in tiles.chunks_exact_mut(width).zip(numbers) {
            tile.chunks_exact_mut(channels).for_each(|part| part.copy_from_slice(numbers));
        }
        f(std::array::from_fn(|n| &tiles[n * width..(n + 1) * width]))
    })
}

/// Adds up `f(x, y, number)` over all rows, one pair of sums a channel; `tile` holds the numbers.
pub(super) fn sums<T: Normal>(
    x: &[T],
    y: &[T],
    tile: &[T],
    one: &mut [f64],
    other: &mut [f64],
    f: impl Fn(T, T, T) -> (f64, f64) + Copy,
) {
    let (width, channels) = (tile.len(), one.len());
    for start in (0..width).step_by(WIDE) {
        let columns = start..width.min(start + WIDE);
        let mut block = [[0.0; WIDE]; 2];
        add_columns(x, y, tile, columns.clone(), &mut block, f);
        for (sums, block) in [(&mut *one, &block[0]), (&mut *other, &block[1])] {
            let sums = &mut sums[start..channels.min(columns.end)];
            for part in block[..columns.len()].chunks(channels) {
                sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            }
        }
    }
}

/// Some columns of row `r`, as far as `x` goes.
#[inline(always)]
fn part<'a, T>(x: &'a [T], width: usize, r: usize, columns: &Range<usize>) -> &'a [T] {
    let end = x.len().min(r * width + columns.end);
    &x[end.min(r * width + columns.start)..end]
}

/// Adds up `f(x, y, number)` for some columns of rows as long as `tile`, four rows at a time. The last row may be cut
/// short.
#[inline(never)]
fn add_columns<T: Normal>(
    x: &[T],
    y: &[T],
    tile: &[T],
    columns: Range<usize>,
    sums: &mut [[f64; WIDE]; 2],
    f: impl Fn(T, T, T) -> (f64, f64) + Copy,
) {
    vectorized(
        #[inline(always)]
        || {
            // Local sums, which the compiler knows to be apart from what is read.
            let ([mut one, mut other], f) = (*sums, f);
            let (width, tile) = (tile.len(), &tile[columns.clone()]);
            let whole = x.len() / width;
            let mut r = 0;
            while r + 4 <= whole {
                let x: [&[T]; 4] = std::array::from_fn(|i| part(x, width, r + i, &columns));
                let y: [&[T]; 4] = std::array::from_fn(|i| part(y, width, r + i, &columns));
                let n = tile.len().min(WIDE);
                let ([x0, x1, x2, x3], [y0, y1, y2, y3]) = (x.map(|x| &x[..n]), y.map(|y| &y[..n]));
                for c in 0..n {
                    let (a0, b0) = f(x0[c], y0[c], tile[c]);
                    let (a1, b1) = f(x1[c], y1[c], tile[c]);
                    let (a2, b2) = f(x2[c], y2[c], tile[c]);
                    let (a3, b3) = f(x3[c], y3[c], tile[c]);
                    one[c] += (a0 + a1) + (a2 + a3);
                    other[c] += (b0 + b1) + (b2 + b3);
                }
                r += 4;
            }
            while r * width < x.len() {
                let (x, y) = (part(x, width, r, &columns), part(y, width, r, &columns));
                for (((&x, &y), &number), (one, other)) in
                    x.iter().zip(y).zip(tile).zip(one.iter_mut().zip(&mut other))
                {
                    let (a, b) = f(x, y, number);
                    *one += a;
                    *other += b;
                }
                r += 1;
            }
            *sums = [one, other];
        },
    );
}

/// `y = (x - mean) factor + offset`.
#[inline(never)]
fn affine<T: Normal>(x: &[T], mean: &[T], factor: &[T], offset: &[T], y: &mut [T]) {
    vectorized(
        #[inline(always)]
        || {
            let numbers = mean.iter().zip(factor).zip(offset);
            for ((y, &x), ((&mean, &factor), &offset)) in y.iter_mut().zip(x).zip(numbers) {
                *y = (x - mean).mul_add(factor, offset);
            }
        },
    );
}

/// `y = y + a b`.
#[inline(never)]
fn add_product<T: Normal>(a: &[T], b: &[T], y: &mut [T]) {
    vectorized(
        #[inline(always)]
        || {
            for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
                *y = a.mul_add(b, *y);
            }
        },
    );
}
