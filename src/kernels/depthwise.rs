//! Convolutions of each channel by itself, channels last: vectors run along the channels.

use super::conv::ConvGeometry;
use super::math::Math;
use super::parallel::{SendPtr, for_each};
use super::reduce::Number;
use super::scratch::{Plain, with_scratch};
use super::simd::vectorized;

/// `f32` and `f64`.
pub(crate) trait Channel: Math + Plain + Number<Wide = f64> {}

impl<T: Math + Plain + Number<Wide = f64>> Channel for T {}

/// Channels of a block, columns of a tile, and multiplications of a chunk of rows.
const LANES: usize = 32;
const COLUMNS: usize = 6;
const CHUNK_WORK: usize = 1 << 17;
/// Parts that the sums over the batch are computed in, at most.
const PARTS: usize = 64;

/// One tap of the kernel for a row of results: where its input lies for the first column, and its weights.
#[derive(Clone, Copy)]
struct Tap {
    x: isize,
    w: usize,
    /// Position along the last axis of the kernel.
    last: usize,
}

/// `y[b, o, c] = sum over k of x[b, o * stride + k * rate - before, c] * w[k, c]`, `x` being zero outside.
///
/// # Panics
/// A length does not fit the geometry, whose two channel counts are equal.
pub(crate) fn forward<T: Channel>(g: &ConvGeometry, x: &[T], w: &[T], y: &mut [T]) {
    check(g, x, w, y);
    let (rows, work) = (Rows::of(g, g.output), g.kernel.iter().product::<usize>() * g.in_channels);
    let row = g.output[2] * g.in_channels;
    let each = (CHUNK_WORK / (work * g.output[2]).max(1)).max(1);
    let y = SendPtr(y.as_mut_ptr());
    for_each(rows.count.div_ceil(each), |chunk| {
        let mut taps = Vec::new();
        for number in chunk * each..rows.count.min((chunk + 1) * each) {
            // SAFETY: each row is written once.
            let y = unsafe { y.part(number * row, row) };
            forward_row(g, x, w, rows.at(number), &mut taps, y);
        }
    });
}

/// `dx[b, i, c] = sum of dy[b, o, c] * w[k, c]` over all `o` and `k` with `o * stride + k * rate - before = i`.
///
/// # Panics
/// As for [`forward`].
pub(crate) fn input_gradient<T: Channel>(g: &ConvGeometry, dy: &[T], w: &[T], dx: &mut [T]) {
    check(g, dx, w, dy);
    let channels = g.in_channels;
    if g.stride == [1; 3] {
        // The same with the kernel turned around.
        let reach = |d: usize| ((g.kernel[d] - 1) * g.rate[d]) as isize - g.before[d];
        let turned = ConvGeometry {
            input: g.output,
            output: g.input,
            before: std::array::from_fn(reach),
            ..g.clone()
        };
        return with_scratch(w.len(), |around: &mut [T]| {
            let taps = w.chunks_exact(channels.max(1)).rev();
            around.chunks_exact_mut(channels.max(1)).zip(taps).for_each(|(to, w)| to.copy_from_slice(w));
            forward(&turned, dy, around, dx);
        });
    }
    let (rows, work) = (Rows::of(g, g.input), g.kernel.iter().product::<usize>() * channels);
    let row = g.input[2] * channels;
    let each = (CHUNK_WORK / (work * g.input[2]).max(1)).max(1);
    let dx = SendPtr(dx.as_mut_ptr());
    for_each(rows.count.div_ceil(each), |chunk| {
        let mut taps = Vec::new();
        for number in chunk * each..rows.count.min((chunk + 1) * each) {
            let (batch, at) = rows.at(number);
            // SAFETY: each row is written once.
            let dx = unsafe { dx.part(number * row, row) };
            for (column, dx) in dx.chunks_exact_mut(channels.max(1)).enumerate() {
                taps.clear();
                reached(g, batch, [at[0], at[1], column], &mut taps);
                // SAFETY: `reached` names results and weights that exist.
                unsafe { tiles::<T>(dy.as_ptr(), w.as_ptr(), &taps, 0, channels, (1, dx)) };
            }
        }
    });
}

/// `dw[k, c] = sum over b and o of x[b, o * stride + k * rate - before, c] * dy[b, o, c]`.
///
/// # Panics
/// As for [`forward`].
pub(crate) fn filter_gradient<T: Channel>(g: &ConvGeometry, x: &[T], dy: &[T], dw: &mut [T]) {
    check(g, x, dw, dy);
    let channels = g.in_channels;
    let rows = Rows::of(g, g.output);
    let each = rows.count.div_ceil(PARTS).max((CHUNK_WORK / (dw.len() * g.output[2]).max(1)).max(1));
    let parts = rows.count.div_ceil(each);
    with_scratch(parts * dw.len(), |sums: &mut [f64]| {
        sums.fill(0.0);
        let shared = SendPtr(sums.as_mut_ptr());
        for_each(parts, |part| {
            // SAFETY: each part has sums of its own.
            let sums = unsafe { shared.part(part * dw.len(), dw.len()) };
            let mut taps = Vec::new();
            for number in part * each..rows.count.min((part + 1) * each) {
                let first = number * g.output[2] * channels;
                let dy = &dy[first..first + g.output[2] * channels];
                let (batch, at) = rows.at(number);
                under(g, batch, at, &mut taps);
                for tap in &taps {
                    let (low, high) = inside(g, tap.last, tap.last);
                    if low < high {
                        let from = tap.x + (low * g.stride[2] * channels) as isize;
                        let dy = &dy[low * channels..high * channels];
                        // SAFETY: columns `low..high` of this tap lie in `x`.
                        let x = unsafe { x.as_ptr().offset(from) };
                        let sums = &mut sums[tap.w..tap.w + channels];
                        // SAFETY: as above.
                        unsafe { add_products(x, g.stride[2] * channels, dy, sums) };
                    }
                }
            }
        });
        for (i, dw) in dw.iter_mut().enumerate() {
            *dw = T::narrow((0..parts).map(|part| sums[part * w_len(g) + i]).sum());
        }
    });
}

fn w_len(g: &ConvGeometry) -> usize {
    g.kernel.iter().product::<usize>() * g.in_channels
}

/// Checks the lengths of all three tensors, on which every unsafe access rests.
fn check<T>(g: &ConvGeometry, x: &[T], w: &[T], y: &[T]) {
    let size = |dims: [usize; 3]| g.batch * dims.iter().product::<usize>() * g.in_channels;
    assert!(g.stride.iter().chain(&g.rate).chain(&g.kernel).all(|&n| n > 0), "{g:?}");
    assert_eq!(g.in_channels, g.out_channels, "channels of {g:?}");
    assert_eq!((x.len(), w.len(), y.len()), (size(g.input), w_len(g), size(g.output)), "elements for {g:?}");
}

/// The rows of a tensor along its last spatial axis.
struct Rows {
    dims: [usize; 3],
    count: usize,
}

impl Rows {
    fn of(g: &ConvGeometry, dims: [usize; 3]) -> Self {
        Rows { dims, count: g.batch * dims[0] * dims[1] }
    }

    /// Example and first two spatial positions of a row.
    fn at(&self, number: usize) -> (usize, [usize; 2]) {
        let (outer, second) = (number / self.dims[1], number % self.dims[1]);
        (outer / self.dims[0], [outer % self.dims[0], second])
    }
}

/// The taps that meet the input in a row of results, as far as the first two axes tell.
fn under(g: &ConvGeometry, batch: usize, at: [usize; 2], taps: &mut Vec<Tap>) {
    taps.clear();
    let place = |d: usize, k: usize| {
        let i = (at[d] * g.stride[d] + k * g.rate[d]) as isize - g.before[d];
        usize::try_from(i).ok().filter(|&i| i < g.input[d])
    };
    for k0 in 0..g.kernel[0] {
        let Some(i0) = place(0, k0) else { continue };
        for k1 in 0..g.kernel[1] {
            let Some(i1) = place(1, k1) else { continue };
            let row = ((batch * g.input[0] + i0) * g.input[1] + i1) * g.input[2];
            for last in 0..g.kernel[2] {
                let column = (last * g.rate[2]) as isize - g.before[2];
                taps.push(Tap {
                    x: (row as isize + column) * g.in_channels as isize,
                    w: ((k0 * g.kernel[1] + k1) * g.kernel[2] + last) * g.in_channels,
                    last,
                });
            }
        }
    }
}

/// The results, as `x` of a tap, that an input reached, and by which weights.
fn reached(g: &ConvGeometry, batch: usize, at: [usize; 3], taps: &mut Vec<Tap>) {
    let place = |d: usize, k: usize| {
        let o = usize::try_from(at[d] as isize + g.before[d] - (k * g.rate[d]) as isize).ok()?;
        (o % g.stride[d] == 0 && o / g.stride[d] < g.output[d]).then(|| o / g.stride[d])
    };
    for k0 in 0..g.kernel[0] {
        let Some(o0) = place(0, k0) else { continue };
        for k1 in 0..g.kernel[1] {
            let Some(o1) = place(1, k1) else { continue };
            for last in 0..g.kernel[2] {
                let Some(o2) = place(2, last) else { continue };
                let position = ((batch * g.output[0] + o0) * g.output[1] + o1) * g.output[2] + o2;
                taps.push(Tap {
                    x: (position * g.in_channels) as isize,
                    w: ((k0 * g.kernel[1] + k1) * g.kernel[2] + last) * g.in_channels,
                    last,
                });
            }
        }
    }
}

/// The columns of results in which taps `first` to `last` of the last axis meet the input.
fn inside(g: &ConvGeometry, first: usize, last: usize) -> (usize, usize) {
    let (stride, before) = (g.stride[2] as isize, g.before[2]);
    let low = (before - (first * g.rate[2]) as isize).max(0);
    let low = (low as usize).div_ceil(stride as usize).min(g.output[2]);
    let room = g.input[2] as isize - 1 + before - (last * g.rate[2]) as isize;
    let high = if room < 0 { 0 } else { ((room / stride) as usize + 1).min(g.output[2]) };
    (low, high.max(low))
}

fn forward_row<T: Channel>(
    g: &ConvGeometry,
    x: &[T],
    w: &[T],
    (batch, at): (usize, [usize; 2]),
    taps: &mut Vec<Tap>,
    y: &mut [T],
) {
    let (channels, columns) = (g.in_channels, g.output[2]);
    under(g, batch, at, taps);
    let (low, high) = inside(g, 0, g.kernel[2] - 1);
    let step = g.stride[2] * channels;
    let moved = |tap: &Tap, column: usize| Tap { x: tap.x + (column * step) as isize, ..*tap };
    let mut some: Vec<Tap> = Vec::new();
    for column in (0..low).chain(high..columns) {
        some.clear();
        let meets = |tap: &&Tap| {
            let (low, high) = inside(g, tap.last, tap.last);
            (low..high).contains(&column)
        };
        some.extend(taps.iter().filter(meets).map(|tap| moved(tap, column)));
        let y = &mut y[column * channels..(column + 1) * channels];
        // SAFETY: the taps that are left meet the input in this column.
        unsafe { tiles::<T>(x.as_ptr(), w.as_ptr(), &some, step, channels, (1, y)) };
    }
    if low < high {
        some.clear();
        some.extend(taps.iter().map(|tap| moved(tap, low)));
        let y = &mut y[low * channels..high * channels];
        // SAFETY: in columns `low..high` all taps meet the input.
        unsafe { tiles::<T>(x.as_ptr(), w.as_ptr(), &some, step, channels, (high - low, y)) };
    }
}

/// `y[j, c] = sum over taps of x[tap + j * step + c] * w[tap, c]` for `columns` columns `j`.
///
/// # Safety
/// All those elements of `x` and `w` are readable.
#[inline(never)]
unsafe fn tiles<T: Channel>(
    x: *const T,
    w: *const T,
    taps: &[Tap],
    step: usize,
    channels: usize,
    (columns, y): (usize, &mut [T]),
) {
    assert_eq!(y.len(), columns * channels, "elements of the row");
    let y = y.as_mut_ptr();
    vectorized(
        #[inline(always)]
        move || {
            let mut j = 0;
            // SAFETY: the caller's promise; `y` has `columns` rows of `channels`.
            unsafe {
                while j + COLUMNS <= columns {
                    let (x, y) = (x.wrapping_add(j * step), y.add(j * channels));
                    block::<T, COLUMNS>(x, w, taps, step, channels, y);
                    j += COLUMNS;
                }
                while j < columns {
                    block::<T, 1>(x.wrapping_add(j * step), w, taps, step, channels, y.add(j * channels));
                    j += 1;
                }
            }
        },
    );
}

/// [`tiles`] for `J` columns: with all channels of a few columns at a time, the input is read in the order in which it lies.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn block<T: Channel, const J: usize>(
    x: *const T,
    w: *const T,
    taps: &[Tap],
    step: usize,
    channels: usize,
    y: *mut T,
) {
    let mut c = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while c + LANES <= channels {
            tile::<T, LANES, J>(x.wrapping_add(c), w.add(c), taps, step, channels, y.add(c));
            c += LANES;
        }
        while c + 8 <= channels {
            tile::<T, 8, J>(x.wrapping_add(c), w.add(c), taps, step, channels, y.add(c));
            c += 8;
        }
        while c < channels {
            tile::<T, 1, J>(x.wrapping_add(c), w.add(c), taps, step, channels, y.add(c));
            c += 1;
        }
    }
}

/// [`block`] for `N` channels, whose sums stay in registers.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn tile<T: Channel, const N: usize, const J: usize>(
    x: *const T,
    w: *const T,
    taps: &[Tap],
    step: usize,
    channels: usize,
    y: *mut T,
) {
    let mut sums = [[<T as num_traits::Zero>::zero(); N]; J];
    for tap in taps {
        // SAFETY: the caller's promise.
        let w: [T; N] = unsafe { w.add(tap.w).cast::<[T; N]>().read() };
        for (j, sums) in sums.iter_mut().enumerate() {
            // SAFETY: as above.
            let x: [T; N] =
                unsafe { x.wrapping_offset(tap.x).wrapping_add(j * step).cast::<[T; N]>().read() };
            for lane in 0..N {
                sums[lane] = x[lane].mul_add(w[lane], sums[lane]);
            }
        }
    }
    for (j, sums) in sums.into_iter().enumerate() {
        // SAFETY: as above.
        unsafe { y.add(j * channels).cast::<[T; N]>().write(sums) };
    }
}

/// Adds the products of the rows of `dy` with those of `x`, `step` apart, to `sums`; up to a row of results is added up in
/// `T` before it is widened.
///
/// # Safety
/// As many rows of `x` are readable.
#[inline(never)]
unsafe fn add_products<T: Channel>(x: *const T, step: usize, dy: &[T], sums: &mut [f64]) {
    let channels = sums.len();
    vectorized(
        #[inline(always)]
        move || {
            let mut c = 0;
            // SAFETY: the caller's promise; columns of `dy` have `channels` elements.
            unsafe {
                while c + LANES <= channels {
                    products::<T, LANES>(x.add(c), step, &dy[c..], channels, &mut sums[c..c + LANES]);
                    c += LANES;
                }
                while c < channels {
                    products::<T, 1>(x.add(c), step, &dy[c..], channels, &mut sums[c..c + 1]);
                    c += 1;
                }
            }
        },
    );
}

/// [`add_products`] for `N` channels.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn products<T: Channel, const N: usize>(
    x: *const T,
    step: usize,
    dy: &[T],
    channels: usize,
    sums: &mut [f64],
) {
    let columns = dy.len().div_ceil(channels);
    let mut start = 0;
    while start < columns {
        let end = columns.min(start + 64);
        let mut part = [<T as num_traits::Zero>::zero(); N];
        for j in start..end {
            // SAFETY: the caller's promise; `dy` has `N` elements from each multiple of `channels` on.
            let (x, dy): ([T; N], [T; N]) = unsafe {
                (
                    x.add(j * step).cast::<[T; N]>().read(),
                    dy.as_ptr().add(j * channels).cast::<[T; N]>().read(),
                )
            };
            for lane in 0..N {
                part[lane] = x[lane].mul_add(dy[lane], part[lane]);
            }
        }
        for (sum, part) in sums.iter_mut().zip(part) {
            *sum += part.widen();
        }
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::parallel::with_threads;

    fn numbers(count: usize, seed: usize) -> Vec<f64> {
        (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f64 / 1001.0 - 1.0).collect()
    }

    /// Calls `f(x, w, y)` with the positions of every product.
    fn each_product(g: &ConvGeometry, mut f: impl FnMut(usize, usize, usize)) {
        let positions = |dims: [usize; 3]| {
            (0..dims.iter().product::<usize>())
                .map(move |i| [i / dims[2] / dims[1], i / dims[2] % dims[1], i % dims[2]])
        };
        for b in 0..g.batch {
            for (o, output) in positions(g.output).enumerate() {
                for (k, tap) in positions(g.kernel).enumerate() {
                    let at: [isize; 3] = std::array::from_fn(|d| {
                        (output[d] * g.stride[d] + tap[d] * g.rate[d]) as isize - g.before[d]
                    });
                    if (0..3).any(|d| at[d] < 0 || at[d] >= g.input[d] as isize) {
                        continue;
                    }
                    let i = at.iter().zip(g.input).fold(0, |i, (&at, dim)| i * dim + at as usize);
                    for c in 0..g.in_channels {
                        let (inputs, outputs) =
                            (g.input.iter().product::<usize>(), g.output.iter().product::<usize>());
                        let of = |rows: usize, row: usize| (b * rows + row) * g.in_channels + c;
                        f(of(inputs, i), k * g.in_channels + c, of(outputs, o));
                    }
                }
            }
        }
    }

    #[test]
    fn results_and_gradients_equal_the_obvious_loops_on_any_number_of_threads() {
        let cases = [
            ([1, 1, 7], [1, 1, 3], [1, 1, 1], [1, 1, 1], [0, 0, 1], [1, 1, 7], 3),
            ([1, 6, 9], [1, 3, 3], [1, 1, 1], [1, 1, 1], [0, 1, 1], [1, 6, 9], 41),
            ([1, 7, 8], [1, 3, 2], [1, 2, 3], [1, 1, 1], [0, 1, 0], [1, 4, 3], 33),
            ([1, 9, 9], [1, 3, 3], [1, 1, 1], [1, 2, 3], [0, 2, 3], [1, 9, 9], 8),
            ([3, 4, 5], [2, 2, 3], [2, 1, 2], [1, 1, 1], [1, 0, 2], [2, 3, 4], 5),
            ([1, 2, 2], [1, 5, 5], [1, 1, 1], [1, 1, 1], [0, 2, 2], [1, 2, 2], 2),
            ([1, 40, 40], [1, 3, 3], [1, 1, 1], [1, 1, 1], [0, 1, 1], [1, 40, 40], 35),
        ];
        for (input, kernel, stride, rate, before, output, channels) in cases {
            let g = ConvGeometry {
                batch: 2,
                input,
                in_channels: channels,
                kernel,
                out_channels: channels,
                output,
                stride,
                rate,
                before,
            };
            let size = |dims: [usize; 3]| 2 * dims.iter().product::<usize>() * channels;
            let (x, dy) = (numbers(size(input), 1), numbers(size(output), 2));
            let w = numbers(w_len(&g), 3);
            let run = |threads| {
                with_threads(threads, || {
                    let nan = |like: &[f64]| vec![f64::NAN; like.len()];
                    let (mut y, mut dx, mut dw) = (nan(&dy), nan(&x), nan(&w));
                    forward(&g, &x, &w, &mut y);
                    input_gradient(&g, &dy, &w, &mut dx);
                    filter_gradient(&g, &x, &dy, &mut dw);
                    [y, dx, dw]
                })
            };
            let mut want = [vec![0.0; dy.len()], vec![0.0; x.len()], vec![0.0; w.len()]];
            each_product(&g, |xi, wi, yi| {
                want[0][yi] += x[xi] * w[wi];
                want[1][xi] += dy[yi] * w[wi];
                want[2][wi] += dy[yi] * x[xi];
            });
            let got = run(1);
            for (got, want) in got.iter().zip(&want) {
                assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-11), "{g:?}: {got:?}, {want:?}");
            }
            assert_eq!(got, run(3));
        }
    }
}
