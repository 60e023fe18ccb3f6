//! Softmax and cross-entropy over rows.

use num_traits::Float;

/// The largest element, NaN if there is one.
fn largest<T: Float>(x: &[T]) -> T {
    x.iter().fold(T::neg_infinity(), |m, &v| if v > m || v.is_nan() { v } else { m })
}

fn sum<T: Float>(x: impl Iterator<Item = T>) -> T {
    x.fold(T::zero(), |s, v| s + v)
}

/// `y = exp(x - max) / sum(exp(x - max))`, row by row.
pub(crate) fn softmax<T: Float>(x: &[T], dim: usize, y: &mut [T]) {
    for (x, y) in x.chunks_exact(dim.max(1)).zip(y.chunks_exact_mut(dim.max(1))) {
        let max = largest(x);
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = (x - max).exp());
        let scale = T::one() / sum(y.iter().copied());
        y.iter_mut().for_each(|y| *y = *y * scale);
    }
}

/// `y = x - max - ln(sum(exp(x - max)))`, row by row.
pub(crate) fn log_softmax<T: Float>(x: &[T], dim: usize, y: &mut [T]) {
    for (x, y) in x.chunks_exact(dim.max(1)).zip(y.chunks_exact_mut(dim.max(1))) {
        let max = largest(x);
        let log = sum(x.iter().map(|&x| (x - max).exp())).ln();
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = x - max - log);
    }
}

/// `dx = y (dy - sum(dy y))`, row by row.
pub(crate) fn softmax_gradient<T: Float>(y: &[T], dy: &[T], dim: usize, dx: &mut [T]) {
    let rows = y.chunks_exact(dim.max(1)).zip(dy.chunks_exact(dim.max(1)));
    for ((y, dy), dx) in rows.zip(dx.chunks_exact_mut(dim.max(1))) {
        let dot = sum(y.iter().zip(dy).map(|(&y, &dy)| y * dy));
        dx.iter_mut().zip(y.iter().zip(dy)).for_each(|(dx, (&y, &dy))| *dx = y * (dy - dot));
    }
}

/// `dx = dy - exp(y) sum(dy)`, row by row.
pub(crate) fn log_softmax_gradient<T: Float>(y: &[T], dy: &[T], dim: usize, dx: &mut [T]) {
    let rows = y.chunks_exact(dim.max(1)).zip(dy.chunks_exact(dim.max(1)));
    for ((y, dy), dx) in rows.zip(dx.chunks_exact_mut(dim.max(1))) {
        let total = sum(dy.iter().copied());
        dx.iter_mut().zip(y.iter().zip(dy)).for_each(|(dx, (&y, &dy))| *dx = dy - y.exp() * total);
    }
}

/// `loss = ln(sum(exp(x - max))) - (x[label] - max)`, one a row; each label lies in `0..dim`.
pub(crate) fn sparse_cross_entropy<T: Float>(x: &[T], labels: &[usize], dim: usize, loss: &mut [T]) {
    for ((x, &label), loss) in x.chunks_exact(dim.max(1)).zip(labels).zip(loss) {
        let max = largest(x);
        *loss = sum(x.iter().map(|&x| (x - max).exp())).ln() - (x[label] - max);
    }
}

/// `dx = dy (softmax(x) - onehot(label))`, row by row.
pub(crate) fn sparse_cross_entropy_gradient<T: Float>(
    x: &[T],
    labels: &[usize],
    dy: &[T],
    dim: usize,
    dx: &mut [T],
) {
    softmax(x, dim, dx);
    for ((dx, &label), &dy) in dx.chunks_exact_mut(dim.max(1)).zip(labels).zip(dy) {
        dx[label] = dx[label] - T::one();
        dx.iter_mut().for_each(|dx| *dx = *dx * dy);
    }
}

/// `loss = sum(labels (ln(sum(exp(x - max))) - (x - max)))`, one a row; where a label is 0 so is its term.
pub(crate) fn cross_entropy<T: Float>(x: &[T], labels: &[T], dim: usize, loss: &mut [T]) {
    for ((x, labels), loss) in x.chunks_exact(dim.max(1)).zip(labels.chunks_exact(dim.max(1))).zip(loss) {
        let max = largest(x);
        let log = sum(x.iter().map(|&x| (x - max).exp())).ln();
        let term = |(&x, &label): (&T, &T)| {
            if label == T::zero() { T::zero() } else { label * (log - (x - max)) }
        };
        *loss = sum(x.iter().zip(labels).map(term));
    }
}

/// `dx = dy (softmax(x) - labels)`, row by row.
pub(crate) fn cross_entropy_gradient<T: Float>(x: &[T], labels: &[T], dy: &[T], dim: usize, dx: &mut [T]) {
    softmax(x, dim, dx);
    for ((dx, labels), &dy) in dx.chunks_exact_mut(dim.max(1)).zip(labels.chunks_exact(dim.max(1))).zip(dy) {
        dx.iter_mut().zip(labels).for_each(|(dx, &label)| *dx = (*dx - label) * dy);
    }
}
