//! Group norm: each item of a batch by the mean and variance of each group of its channels.

use super::super::parallel::{self, SendPtr};
use super::super::scratch::with_scratch;
use super::channels::{combine, gradient_sums, normalise_channels, sums_of_squares};
use super::{Normal, PIECE};

/// Elements from which on an item is spread over the threads, rather than the items.
const LARGE_ITEM: usize = 16 * PIECE;

/// A batch of items, each of rows of channels, which are cut into groups of neighbours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups {
    /// Items of the batch.
    pub(crate) batch: usize,
    /// Rows of an item.
    pub(crate) rows: usize,
    /// Channels of a row, a multiple of `groups`.
    pub(crate) channels: usize,
    /// Groups of channels, 1 or more.
    pub(crate) groups: usize,
}

impl Groups {
    /// Elements of an item.
    fn item(self) -> usize {
        self.rows * self.channels
    }

    /// Channels of a group.
    fn width(self) -> usize {
        self.channels / self.groups
    }

    /// Calls `f` with the number of each item.
    fn for_each(self, f: impl Fn(usize) + Sync) {
        if self.item() >= LARGE_ITEM {
            return (0..self.batch).for_each(f);
        }
        let together = PIECE.checked_div(self.item()).unwrap_or(0).max(1);
        parallel::for_each(self.batch.div_ceil(together), |chunk| {
            (chunk * together..self.batch.min((chunk + 1) * together)).for_each(&f);
        });
    }

    fn check<T>(self, x: &[T], mean: &[T], inverse: &[T]) {
        assert!(x.len() == self.batch * self.item(), "whole items");
        assert!(mean.len() == self.batch * self.groups && inverse.len() == mean.len(), "one number a group");
    }
}

/// `y = h scale + offset` with `h = (x - mean) inverse` and `inverse = 1 / sqrt(variance + epsilon)`, mean and variance
/// being those of each group of each item (Wu & He 2018). `scale` and `offset` have one number a channel; `mean` and
/// `inverse`, for the gradients, get one for each item and group, NaN where there are no elements.
pub(crate) fn normalise_groups<T: Normal>(
    of: Groups,
    x: &[T],
    epsilon: T,
    [scale, offset]: [&[T]; 2],
    y: &mut [T],
    mean: &mut [T],
    inverse: &mut [T],
) {
    of.check(x, mean, inverse);
    assert!(y.len() == x.len() && scale.len() == of.channels && offset.len() == of.channels, "one a channel");
    if x.is_empty() {
        mean.fill(T::nan());
        inverse.fill(T::nan());
        return;
    }
    let (y, mean, inverse) =
        (SendPtr(y.as_mut_ptr()), SendPtr(mean.as_mut_ptr()), SendPtr(inverse.as_mut_ptr()));
    let count = (of.rows * of.width()) as f64;
    of.for_each(|item| {
        let first = item * of.item();
        let x = &x[first..first + of.item()];
        // SAFETY: items do not overlap, and each is passed once.
        let (y, mean, inverse) = unsafe {
            let at = item * of.groups;
            (y.part(first, of.item()), mean.part(at, of.groups), inverse.part(at, of.groups))
        };
        with_scratch(2 * of.channels, |moments: &mut [f64]| {
            let (means, squares) = moments.split_at_mut(of.channels);
            sums_of_squares(x, of.channels, |c, mean, square| (means[c], squares[c]) = (mean, square));
            let parts = means.chunks_exact(of.width()).zip(squares.chunks_exact(of.width()));
            for ((means, squares), (mean, inverse)) in parts.zip(mean.iter_mut().zip(&mut *inverse)) {
                let center = means.iter().sum::<f64>() / of.width() as f64;
                let apart = |mean: f64| of.rows as f64 * (mean - center) * (mean - center);
                let square = means.iter().zip(squares).map(|(&m, s)| s + apart(m)).sum::<f64>();
                *mean = T::narrow(center);
                *inverse = T::narrow(1.0 / (square / count + epsilon.widen()).sqrt());
            }
        });
        with_scratch(2 * of.channels, |numbers: &mut [T]| {
            let (center, factor) = numbers.split_at_mut(of.channels);
            for c in 0..of.channels {
                center[c] = mean[c / of.width()];
                factor[c] = inverse[c / of.width()] * scale[c];
            }
            normalise_channels(x, center, factor, offset, y);
        });
    });
}

/// Gradients of [`normalise_groups`], given `dy`: with `g = dy scale` and means over a group
/// `dx = inverse (g - mean(g) - h mean(g h))`; over all items and rows `dscale = sum dy h` and `doffset = sum dy`.
pub(crate) fn group_gradients<T: Normal>(
    of: Groups,
    [mean, inverse, scale]: [&[T]; 3],
    [x, dy]: [&[T]; 2],
    dx: &mut [T],
    dscale: &mut [T],
    doffset: &mut [T],
) {
    of.check(x, mean, inverse);
    assert!(dy.len() == x.len() && dx.len() == x.len(), "a gradient has the shape of its tensor");
    assert!([scale, dscale, doffset].iter().all(|v| v.len() == of.channels), "one number a channel");
    if x.is_empty() {
        dscale.fill(T::zero());
        doffset.fill(T::zero());
        return;
    }
    let dx = SendPtr(dx.as_mut_ptr());
    let count = (of.rows * of.width()) as f64;
    with_scratch(2 * of.batch * of.channels, |all: &mut [f64]| {
        let parts = SendPtr(all.as_mut_ptr());
        of.for_each(|item| {
            let elements = item * of.item()..(item + 1) * of.item();
            let (x, dy) = (&x[elements.clone()], &dy[elements.clone()]);
            // SAFETY: items do not overlap, and each is passed once.
            let (dx, sums) = unsafe {
                let at = 2 * item * of.channels;
                (dx.part(elements.start, of.item()), parts.part(at, 2 * of.channels))
            };
            let (sums, products) = sums.split_at_mut(of.channels);
            with_scratch(4 * of.channels, |numbers: &mut [T]| {
                let (center, rest) = numbers.split_at_mut(of.channels);
                let (factor, rest) = rest.split_at_mut(of.channels);
                let (slope, shift) = rest.split_at_mut(of.channels);
                let group = |c: usize| item * of.groups + c / of.width();
                center.iter_mut().enumerate().for_each(|(c, center)| *center = mean[group(c)]);
                gradient_sums(x, dy, center, |c, sum, product| (sums[c], products[c]) = (sum, product));
                for first in (0..of.channels).step_by(of.width()) {
                    let channels = first..first + of.width();
                    let inverse = inverse[group(first)].widen();
                    let along = |of: &[f64]| -> f64 {
                        channels.clone().map(|c| scale[c].widen() * of[c]).sum::<f64>() / count
                    };
                    let (all, product) = (along(sums), along(products));
                    for c in channels.clone() {
                        factor[c] = T::narrow(scale[c].widen() * inverse);
                        slope[c] = T::narrow(-inverse * inverse * inverse * product);
                        shift[c] = T::narrow(-inverse * all);
                        products[c] *= inverse;
                    }
                }
                combine(x, dy, [center, factor, slope, shift], dx);
            });
        });
        for c in 0..of.channels {
            let total = |start: usize| -> f64 { all[start + c..].iter().step_by(2 * of.channels).sum() };
            doffset[c] = T::narrow(total(0));
            dscale[c] = T::narrow(total(of.channels));
        }
    });
}
