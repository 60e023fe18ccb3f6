//! The largest value of each window.

use super::{CHUNK_ELEMENTS, LANES, PoolGeometry, Window, channel_block, scatter};
use crate::kernels::parallel::{SendPtr, for_each_chunk_mut};
use crate::kernels::real::Real;
use crate::kernels::simd::vectorized;

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
                                let block = largest::<T, LANES>(&window, x, c, channels);
                                y[c..c + LANES].copy_from_slice(&block.0);
                                argmax[c..c + LANES].copy_from_slice(&block.1);
                                c += LANES;
                            }
                            while c < channels {
                                let block = largest::<T, 1>(&window, x, c, channels);
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

/// The largest values of `N` neighbouring channels from `c` on in the window, and their places.
#[inline(always)]
fn largest<T: Real, const N: usize>(
    window: &Window,
    x: &[T],
    c: usize,
    channels: usize,
) -> ([T; N], [u32; N]) {
    let (mut y, mut argmax) = ([T::neg_infinity(); N], [u32::MAX; N]);
    let mut first = true;
    window.each(
        #[inline(always)]
        |at| {
            let x = channel_block::<T, N>(x, at * channels + c);
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
