//! The mean of each window.

use super::{LANES, PoolGeometry, Window, channel_block, scatter};
use crate::kernels::parallel::for_each_chunk_mut;
use crate::kernels::real::Real;
use crate::kernels::scratch::with_scratch;
use crate::kernels::simd::vectorized;

/// The sums of `N` neighbouring channels from `c` on over the window.
#[inline(always)]
fn sums<T: Real, const N: usize>(window: &Window, x: &[T], c: usize, channels: usize) -> [T; N] {
    let mut y = [T::zero(); N];
    window.each(
        #[inline(always)]
        |at| {
            let x = channel_block::<T, N>(x, at * channels + c);
            for n in 0..N {
                y[n] = y[n] + x[n];
            }
        },
    );
    y
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
                                let block = sums::<T, LANES>(&window, x, c, channels);
                                y[c..c + LANES].copy_from_slice(&block.map(|y| y / count));
                                c += LANES;
                            }
                            while c < channels {
                                y[c] = sums::<T, 1>(&window, x, c, channels)[0] / count;
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
