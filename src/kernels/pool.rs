//! Largest and mean values of windows, in one, two and three dimensions, channels last.

use super::gemm::Real;
use super::parallel::{SendPtr, for_each, for_each_chunk_mut};
use super::scratch::with_scratch;
use super::simd::vectorized;
use std::ops::Range;

/// Elements of `x` that a chunk of work reads at least.
const CHUNK_ELEMENTS: usize = 1 << 16;

/// Channels that are taken together: a full vector of `f32` on the widest machines.
const LANES: usize = 16;

/// `y[b, o, c]` is taken over `x[b, i, c]` with `o * stride - before <= i < o * stride - before + window`.
///
/// What lies outside of `x` takes no part: it is never the largest, and it does not count for the mean. There are always
/// three spatial dims; those that are missing have size 1 in `input`, `window` and `output`. `x` is contiguous with shape
/// `[batch, *input, channels]`, `y` with `[batch, *output, channels]`.
#[derive(Debug, Clone)]
pub(crate) struct PoolGeometry {
    pub batch: usize,
    pub input: [usize; 3],
    pub channels: usize,
    pub window: [usize; 3],
    pub output: [usize; 3],
    /// At least 1.
    pub stride: [usize; 3],
    /// Positions of the first window that lie before the input.
    pub before: [isize; 3],
}

impl PoolGeometry {
    fn x_positions(&self) -> usize {
        self.input.iter().product()
    }

    fn y_positions(&self) -> usize {
        self.output.iter().product()
    }

    fn check(&self, x_len: usize, y_len: usize) {
        assert!(self.stride.iter().all(|&n| n > 0), "stride of {self:?}");
        assert_eq!(x_len, self.batch * self.x_positions() * self.channels, "elements of x for {self:?}");
        assert_eq!(y_len, self.batch * self.y_positions() * self.channels, "elements of y for {self:?}");
        assert!(
            u32::try_from(self.x_positions()).is_ok_and(|n| n < u32::MAX),
            "positions of {self:?} fit into u32"
        );
    }

    /// Positions of `x` under result `o` of one axis.
    fn reach(&self, axis: usize, o: usize) -> Range<usize> {
        let first = (o * self.stride[axis]) as isize - self.before[axis];
        let clip = |at: isize| at.clamp(0, self.input[axis] as isize) as usize;
        clip(first)..clip(first.saturating_add_unsigned(self.window[axis]))
    }

    /// Calls `f(o, window)` for the results of one line, the number `o` counted within the line.
    #[inline(always)]
    fn line(&self, line: usize, mut f: impl FnMut(usize, Window)) {
        let (i, j) = (line / self.output[1], line % self.output[1]);
        let (planes, rows) = (self.reach(0, i), self.reach(1, j));
        for o in 0..self.output[2] {
            f(
                o,
                Window {
                    planes: planes.clone(),
                    rows: rows.clone(),
                    columns: self.reach(2, o),
                    input: self.input,
                },
            );
        }
    }

    /// Lines of results that make one chunk.
    fn lines(&self) -> usize {
        let work = self.output[2] * self.channels * self.window.iter().product::<usize>();
        CHUNK_ELEMENTS.div_ceil(work.max(1))
    }

    /// Calls `f(item, channels)` in parallel for parts of `dx` that share no element and no result.
    fn for_each_part(&self, f: impl Fn(usize, Range<usize>) + Sync) {
        // Few items are cut into ranges of whole vectors of channels.
        let wanted = 16_usize.div_ceil(self.batch.max(1));
        let channels = self.channels.div_ceil(wanted).max(32);
        let cuts = self.channels.div_ceil(channels);
        let work =
            (self.x_positions() + self.y_positions() * self.window.iter().product::<usize>()) * channels;
        let group = CHUNK_ELEMENTS.div_ceil(work.max(1));
        let parts = self.batch * cuts;
        for_each(parts.div_ceil(group), |chunk| {
            for part in chunk * group..parts.min((chunk + 1) * group) {
                let first = part % cuts * channels;
                f(part / cuts, first..self.channels.min(first + channels));
            }
        });
    }
}

/// The positions of `x` under one result.
struct Window {
    planes: Range<usize>,
    rows: Range<usize>,
    columns: Range<usize>,
    input: [usize; 3],
}

impl Window {
    fn count(&self) -> usize {
        self.planes.len() * self.rows.len() * self.columns.len()
    }

    /// Calls `f` with each position, counted row by row through the input.
    #[inline(always)]
    fn each(&self, mut f: impl FnMut(usize)) {
        for i in self.planes.clone() {
            for j in self.rows.clone() {
                let row = (i * self.input[1] + j) * self.input[2];
                for k in self.columns.clone() {
                    f(row + k);
                }
            }
        }
    }
}

/// `y`, the largest value of each window, and where it is: `argmax` counts positions row by row through one item.
///
/// Of equal values the first is taken; a NaN wins over all numbers. A window without any position gives minus infinity
/// and `u32::MAX`.
///
/// # Panics
/// A length does not fit the geometry.
pub(crate) fn max_pool<T: Real>(g: &PoolGeometry, x: &[T], y: &mut [T], argmax: &mut [u32]) {
    g.check(x.len(), y.len());
    assert_eq!(argmax.len(), y.len(), "elements of argmax");
    let (line, item) = (g.output[2] * g.channels, g.x_positions() * g.channels);
    let (channels, lines, planes) = (g.channels, g.lines(), g.output[0] * g.output[1]);
    let argmax = SendPtr(argmax.as_mut_ptr());
    for_each_chunk_mut(y, lines * line, |chunk, y| {
        // SAFETY: `argmax` is as long as `y` and cut like it, so that no two chunks share an element.
        let argmax =
            unsafe { std::slice::from_raw_parts_mut(argmax.get().add(chunk * lines * line), y.len()) };
        vectorized(
            #[inline(always)]
            || {
                for (n, (y, argmax)) in y.chunks_mut(line).zip(argmax.chunks_mut(line)).enumerate() {
                    let n = chunk * lines + n;
                    let x = &x[n / planes * item..][..item];
                    g.line(
                        n % planes,
                        #[inline(always)]
                        |o, window| {
                            let (y, argmax) =
                                (&mut y[o * channels..][..channels], &mut argmax[o * channels..][..channels]);
                            let mut c = 0;
                            while c + LANES <= channels {
                                let block = largest::<T, LANES>(&window, &x[c..], channels);
                                y[c..c + LANES].copy_from_slice(&block.0);
                                argmax[c..c + LANES].copy_from_slice(&block.1);
                                c += LANES;
                            }
                            while c < channels {
                                let block = largest::<T, 1>(&window, &x[c..], channels);
                                (y[c], argmax[c]) = (block.0[0], block.1[0]);
                                c += 1;
                            }
                        },
                    );
                }
            },
        );
    });
}

/// The largest values of `N` neighbouring channels in the window, and their places.
#[inline(always)]
fn largest<T: Real, const N: usize>(window: &Window, x: &[T], channels: usize) -> ([T; N], [u32; N]) {
    let (mut y, mut argmax) = ([T::neg_infinity(); N], [u32::MAX; N]);
    let mut first = true;
    window.each(
        #[inline(always)]
        |at| {
            let x = channel_block::<T, N>(x, at * channels);
            for n in 0..N {
                let wins = first | (x[n] > y[n]) | x[n].is_nan();
                y[n] = if wins { x[n] } else { y[n] };
                argmax[n] = if wins { at as u32 } else { argmax[n] };
            }
            first = false;
        },
    );
    (y, argmax)
}

/// The sums of `N` neighbouring channels over the window.
#[inline(always)]
fn sums<T: Real, const N: usize>(window: &Window, x: &[T], channels: usize) -> [T; N] {
    let mut y = [T::zero(); N];
    window.each(
        #[inline(always)]
        |at| {
            let x = channel_block::<T, N>(x, at * channels);
            for n in 0..N {
                y[n] = y[n] + x[n];
            }
        },
    );
    y
}

/// The `N` elements of `x` from `start` on.
#[inline(always)]
fn channel_block<T: Copy, const N: usize>(x: &[T], start: usize) -> [T; N] {
    x[start..start + N].try_into().expect("a slice of N elements")
}

/// `dx`, the adjoint of [`max_pool`]: each `dy` goes to the position that `argmax` names.
///
/// # Panics
/// A length does not fit the geometry.
pub(crate) fn max_pool_gradient<T: Real>(g: &PoolGeometry, dy: &[T], argmax: &[u32], dx: &mut [T]) {
    g.check(dx.len(), dy.len());
    assert_eq!(argmax.len(), dy.len(), "elements of argmax");
    scatter(
        g,
        dx,
        #[inline(always)]
        |o, at, channels, dx| {
            let (dy, argmax) = (&dy[o..][channels.clone()], &argmax[o..][channels]);
            for ((dx, &dy), &argmax) in dx.iter_mut().zip(dy).zip(argmax) {
                *dx = *dx + if argmax == at { dy } else { T::zero() };
            }
        },
    );
}

/// `y[b, o, c] = x[b, argmax[b, o, c], c]`, zero where there is no position: the gradient of [`max_pool_gradient`] with
/// respect to `dy`.
///
/// # Panics
/// A length does not fit the geometry, or a position lies outside of `x`.
pub(crate) fn max_pool_select<T: Real>(g: &PoolGeometry, x: &[T], argmax: &[u32], y: &mut [T]) {
    g.check(x.len(), y.len());
    assert_eq!(argmax.len(), y.len(), "elements of argmax");
    let (item, lines) = (g.x_positions() * g.channels, g.y_positions() * g.channels);
    let group = CHUNK_ELEMENTS.div_ceil(lines.max(1)) * lines;
    for_each_chunk_mut(y, group, |chunk, y| {
        for (n, y) in y.iter_mut().enumerate() {
            let n = chunk * group + n;
            let (b, c) = (n / lines, n % g.channels);
            *y = match argmax[n] {
                u32::MAX => T::zero(),
                at => x[b * item..][..item][at as usize * g.channels + c],
            };
        }
    });
}

/// `y`, the mean of each window over the positions that lie in `x`; zero if there is none.
///
/// # Panics
/// A length does not fit the geometry.
pub(crate) fn average_pool<T: Real>(g: &PoolGeometry, x: &[T], y: &mut [T]) {
    g.check(x.len(), y.len());
    let (line, item) = (g.output[2] * g.channels, g.x_positions() * g.channels);
    let (channels, lines, planes) = (g.channels, g.lines(), g.output[0] * g.output[1]);
    for_each_chunk_mut(y, lines * line, |chunk, y| {
        vectorized(
            #[inline(always)]
            || {
                for (n, y) in y.chunks_mut(line).enumerate() {
                    let n = chunk * lines + n;
                    let x = &x[n / planes * item..][..item];
                    g.line(
                        n % planes,
                        #[inline(always)]
                        |o, window| {
                            let y = &mut y[o * channels..][..channels];
                            let count = size::<T>(window.count());
                            let mut c = 0;
                            while c + LANES <= channels {
                                let block = sums::<T, LANES>(&window, &x[c..], channels);
                                y[c..c + LANES].copy_from_slice(&block.map(|y| y / count));
                                c += LANES;
                            }
                            while c < channels {
                                y[c] = sums::<T, 1>(&window, &x[c..], channels)[0] / count;
                                c += 1;
                            }
                        },
                    );
                }
            },
        );
    });
}

/// `dx`, the adjoint of [`average_pool`]: each `dy` is shared out equally over its window.
///
/// # Panics
/// A length does not fit the geometry.
pub(crate) fn average_pool_gradient<T: Real>(g: &PoolGeometry, dy: &[T], dx: &mut [T]) {
    g.check(dx.len(), dy.len());
    with_scratch(g.y_positions(), |counts: &mut [T]| {
        for (i, counts) in counts.chunks_exact_mut(g.output[2].max(1)).enumerate() {
            g.line(i, |o, window| counts[o] = size(window.count()));
        }
        let counts = &*counts;
        scatter(
            g,
            dx,
            #[inline(always)]
            |o, _, channels, dx| {
                let count = counts[o / g.channels % counts.len()];
                for (dx, &dy) in dx.iter_mut().zip(&dy[o..][channels]) {
                    *dx = *dx + dy / count;
                }
            },
        );
    });
}

/// A number of positions, at least 1.
fn size<T: Real>(count: usize) -> T {
    T::from(count.max(1)).expect("a count converts to a float")
}

/// Fills `dx` with zeros, then calls `f(start of the result in y, position, channels, dx at that position)` for every
/// position of every window, in an order that is the same for each element of `dx`.
#[inline(always)]
fn scatter<T: Real>(g: &PoolGeometry, dx: &mut [T], f: impl Fn(usize, u32, Range<usize>, &mut [T]) + Sync) {
    let (all, positions, lines) = (g.channels, g.x_positions(), g.output[0] * g.output[1]);
    let dx = SendPtr(dx.as_mut_ptr());
    g.for_each_part(|item, channels| {
        // SAFETY: the items lie one after the other in `dx`, whose length `check` has seen. Parts share no channel of an
        // item, and `part_of` is used for the channels of this part only.
        let x = unsafe { dx.get().add(item * positions * all) };
        vectorized(
            #[inline(always)]
            || {
                if channels.len() == all {
                    part_of(x, 0, &(0..positions * all)).fill(T::zero());
                } else {
                    for at in 0..positions {
                        part_of(x, at * all, &channels).fill(T::zero());
                    }
                }
                for line in 0..lines {
                    g.line(
                        line,
                        #[inline(always)]
                        |o, window| {
                            let o = ((item * lines + line) * g.output[2] + o) * all;
                            window.each(
                                #[inline(always)]
                                |at| f(o, at as u32, channels.clone(), part_of(x, at * all, &channels)),
                            );
                        },
                    );
                }
            },
        );
    });
}

/// `channels` of the position that begins at `start`.
#[inline(always)]
fn part_of<'a, T>(x: *mut T, start: usize, channels: &Range<usize>) -> &'a mut [T] {
    // SAFETY: see `scatter`, the only caller, which holds one slice at a time.
    unsafe { std::slice::from_raw_parts_mut(x.add(start + channels.start), channels.len()) }
}

#[cfg(test)]
mod tests {
    use super::super::parallel::with_threads;
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::StdRng};

    /// Positions of `x` under each result of one item, by the definition.
    fn windows(g: &PoolGeometry) -> Vec<Vec<usize>> {
        let mut all = Vec::new();
        for n in 0..g.y_positions() {
            let o = [n / g.output[2] / g.output[1], n / g.output[2] % g.output[1], n % g.output[2]];
            let inside = |d: usize, i: usize| {
                let from = (o[d] * g.stride[d]) as isize - g.before[d];
                (from..from + g.window[d] as isize).contains(&(i as isize))
            };
            let place =
                |at: usize| [at / g.input[2] / g.input[1], at / g.input[2] % g.input[1], at % g.input[2]];
            all.push((0..g.x_positions()).filter(|&at| (0..3).all(|d| inside(d, place(at)[d]))).collect());
        }
        all
    }

    fn check<T: Real>(g: &PoolGeometry, rng: &mut StdRng) {
        let (inputs, outputs, channels) = (g.x_positions(), g.y_positions(), g.channels);
        // Few different values, so that there are ties.
        let x: Vec<T> =
            (0..g.batch * inputs * channels).map(|_| T::from(rng.random_range(-3..3)).unwrap()).collect();
        let dy: Vec<T> =
            (0..g.batch * outputs * channels).map(|_| T::from(rng.random_range(-9..9)).unwrap()).collect();
        let (mut largest, mut places) = (vec![T::neg_infinity(); dy.len()], vec![u32::MAX; dy.len()]);
        let (mut mean, mut selected) = (vec![T::zero(); dy.len()], vec![T::zero(); dy.len()]);
        let (mut dx_max, mut dx_mean) = (vec![T::zero(); x.len()], vec![T::zero(); x.len()]);
        for b in 0..g.batch {
            for (o, window) in windows(g).iter().enumerate() {
                for c in 0..channels {
                    let (n, x_at) =
                        ((b * outputs + o) * channels + c, |at: usize| (b * inputs + at) * channels + c);
                    let count = T::from(window.len().max(1)).unwrap();
                    for &at in window {
                        if x[x_at(at)] > largest[n] {
                            (largest[n], places[n]) = (x[x_at(at)], at as u32);
                        }
                        mean[n] = mean[n] + x[x_at(at)];
                        dx_mean[x_at(at)] = dx_mean[x_at(at)] + dy[n] / count;
                    }
                    mean[n] = mean[n] / count;
                    if places[n] != u32::MAX {
                        let at = x_at(places[n] as usize);
                        dx_max[at] = dx_max[at] + dy[n];
                        selected[n] = x[at];
                    }
                }
            }
        }
        for threads in [1, 2] {
            with_threads(threads, || {
                let (mut y, mut argmax) = (vec![T::nan(); dy.len()], vec![7; dy.len()]);
                max_pool(g, &x, &mut y, &mut argmax);
                assert_eq!((&y, &argmax), (&largest, &places), "{g:?}");
                max_pool_select(g, &x, &argmax, &mut y);
                assert_eq!(y, selected, "{g:?}");
                average_pool(g, &x, &mut y);
                assert_eq!(y, mean, "{g:?}");
                let mut dx = vec![T::nan(); x.len()];
                max_pool_gradient(g, &dy, &argmax, &mut dx);
                assert_eq!(dx, dx_max, "{g:?}");
                average_pool_gradient(g, &dy, &mut dx);
                assert_eq!(dx, dx_mean, "{g:?}");
            });
        }
    }

    #[test]
    fn random_geometries_match_the_definition() {
        let mut rng = StdRng::seed_from_u64(1);
        for round in 0..300 {
            let mut g = PoolGeometry {
                batch: rng.random_range(0..4),
                input: [1; 3],
                channels: [1, 2, 3, 16, 35, 70][rng.random_range(0..6)],
                window: [1; 3],
                output: [1; 3],
                stride: [1; 3],
                before: [0; 3],
            };
            for d in rng.random_range(0..3)..3 {
                g.input[d] = rng.random_range(1..9);
                g.window[d] = rng.random_range(1..5);
                g.stride[d] = rng.random_range(1..4);
                g.before[d] = rng.random_range(-1..=g.window[d] as i64) as isize;
                g.output[d] = rng.random_range(0..6);
            }
            if round % 2 == 0 { check::<f32>(&g, &mut rng) } else { check::<f64>(&g, &mut rng) }
        }
    }

    #[test]
    fn images_large_enough_for_threads_match_the_definition() {
        let mut g = PoolGeometry {
            batch: 2,
            input: [1, 40, 30],
            channels: 40,
            window: [1, 3, 3],
            output: [1, 20, 15],
            stride: [1, 2, 2],
            before: [0, 0, 1],
        };
        check::<f32>(&g, &mut StdRng::seed_from_u64(2));
        g.batch = 1;
        check::<f64>(&g, &mut StdRng::seed_from_u64(3));
    }

    #[test]
    fn a_nan_is_the_largest() {
        let g = PoolGeometry {
            batch: 1,
            input: [1, 1, 3],
            channels: 1,
            window: [1, 1, 3],
            output: [1, 1, 1],
            stride: [1; 3],
            before: [0; 3],
        };
        let (mut y, mut argmax) = ([0.0], [0]);
        max_pool(&g, &[1.0_f32, f32::NAN, 2.0], &mut y, &mut argmax);
        assert!(y[0].is_nan());
        assert_eq!(argmax, [1]);
        max_pool(&g, &[f32::NEG_INFINITY; 3], &mut y, &mut argmax);
        assert_eq!((y, argmax), ([f32::NEG_INFINITY], [0]));
    }
}
