//! Normalisation over channels and over rows.

use num_traits::Float;

/// Mean and biased variance of each channel of `x [outer, channels, inner]`.
pub(crate) fn channel_moments<T: Float>(
    x: &[T],
    channels: usize,
    inner: usize,
    mean: &mut [T],
    variance: &mut [T],
) {
    let zero = |n: usize| vec![0f64; n];
    let count = (x.len() / channels.max(1)) as f64;
    let channel = |i: usize| i / inner.max(1) % channels;
    let to = |v: T| v.to_f64().unwrap_or(f64::NAN);
    let mut sums = zero(channels);
    x.iter().enumerate().for_each(|(i, &v)| sums[channel(i)] += to(v));
    let means: Vec<f64> = sums.iter().map(|s| s / count).collect();
    let mut squares = zero(channels);
    x.iter().enumerate().for_each(|(i, &v)| squares[channel(i)] += (to(v) - means[channel(i)]).powi(2));
    let from = |v: f64| T::from(v).unwrap_or_else(T::nan);
    mean.iter_mut().zip(means).for_each(|(y, m)| *y = from(m));
    variance.iter_mut().zip(squares).for_each(|(y, s)| *y = from(s / count));
}

/// `y = x a + b` with `a` and `b` per channel.
pub(crate) fn channel_affine<T: Float>(
    x: &[T],
    channels: usize,
    inner: usize,
    a: &[T],
    b: &[T],
    y: &mut [T],
) {
    let channel = |i: usize| i / inner.max(1) % channels;
    y.iter_mut().zip(x).enumerate().for_each(|(i, (y, &x))| *y = x * a[channel(i)] + b[channel(i)]);
}

/// `sum(dy)` and `sum(dy (x - mean))` of each channel.
#[allow(clippy::too_many_arguments)]
pub(crate) fn channel_gradient_sums<T: Float>(
    x: &[T],
    dy: &[T],
    channels: usize,
    inner: usize,
    mean: &[T],
    sum: &mut [T],
    product: &mut [T],
) {
    let channel = |i: usize| i / inner.max(1) % channels;
    let to = |v: T| v.to_f64().unwrap_or(f64::NAN);
    let (mut sums, mut products) = (vec![0f64; channels], vec![0f64; channels]);
    for (i, (&x, &dy)) in x.iter().zip(dy).enumerate() {
        let c = channel(i);
        sums[c] += to(dy);
        products[c] += to(dy) * (to(x) - to(mean[c]));
    }
    let from = |v: f64| T::from(v).unwrap_or_else(T::nan);
    sum.iter_mut().zip(sums).for_each(|(y, s)| *y = from(s));
    product.iter_mut().zip(products).for_each(|(y, s)| *y = from(s));
}

/// `dx = a dy + b (x - mean) + c`, coefficients per channel.
#[allow(clippy::too_many_arguments)]
pub(crate) fn channel_gradient<T: Float>(
    x: &[T],
    dy: &[T],
    channels: usize,
    inner: usize,
    mean: &[T],
    [a, b, c]: [&[T]; 3],
    dx: &mut [T],
) {
    let channel = |i: usize| i / inner.max(1) % channels;
    for (i, ((dx, &x), &dy)) in dx.iter_mut().zip(x).zip(dy).enumerate() {
        let k = channel(i);
        *dx = a[k] * dy + b[k] * (x - mean[k]) + c[k];
    }
}

/// Mean and `1 / sqrt(variance + epsilon)` of a row.
fn row_moments<T: Float>(x: &[T], epsilon: f64) -> (T, T) {
    let to = |v: T| v.to_f64().unwrap_or(f64::NAN);
    let n = x.len() as f64;
    let mean = x.iter().map(|&v| to(v)).sum::<f64>() / n;
    let variance = x.iter().map(|&v| (to(v) - mean).powi(2)).sum::<f64>() / n;
    let from = |v: f64| T::from(v).unwrap_or_else(T::nan);
    (from(mean), from((variance + epsilon).sqrt().recip()))
}

/// `y = x i + (offset - mean i)` with `i = scale / sqrt(variance + epsilon)`, row by row.
pub(crate) fn layer_norm<T: Float>(x: &[T], scale: &[T], offset: &[T], epsilon: f64, y: &mut [T]) {
    let dim = scale.len().max(1);
    for (x, y) in x.chunks_exact(dim).zip(y.chunks_exact_mut(dim)) {
        let (mean, inv) = row_moments(x, epsilon);
        for (((y, &x), &s), &o) in y.iter_mut().zip(x).zip(scale).zip(offset) {
            *y = x * (inv * s) + (o - mean * (inv * s));
        }
    }
}

/// With `h = scale dy` and `z = (x - mean) inv`: `dx = inv (h - mean(h) - z mean(h z))`, `dscale = sum(dy z)` and
/// `doffset = sum(dy)` over the rows.
pub(crate) fn layer_norm_gradient<T: Float>(
    x: &[T],
    scale: &[T],
    dy: &[T],
    epsilon: f64,
    dx: &mut [T],
    [dscale, doffset]: [&mut [T]; 2],
) {
    let dim = scale.len().max(1);
    let n = T::from(dim).unwrap_or_else(T::one);
    dscale.fill(T::zero());
    doffset.fill(T::zero());
    for ((x, dy), dx) in x.chunks_exact(dim).zip(dy.chunks_exact(dim)).zip(dx.chunks_exact_mut(dim)) {
        let (mean, inv) = row_moments(x, epsilon);
        let (mut sum, mut product) = (T::zero(), T::zero());
        for i in 0..dim {
            let (z, h) = ((x[i] - mean) * inv, scale[i] * dy[i]);
            (sum, product) = (sum + h, product + h * z);
            dscale[i] = dscale[i] + dy[i] * z;
            doffset[i] = doffset[i] + dy[i];
        }
        for i in 0..dim {
            let (z, h) = ((x[i] - mean) * inv, scale[i] * dy[i]);
            dx[i] = inv * (h - sum / n - z * product / n);
        }
    }
}
