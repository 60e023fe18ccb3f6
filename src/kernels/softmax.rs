//! Softmax, its logarithm and the cross-entropy of both, for rows of a matrix.
//!
//! With `m` the largest and `s = sum e^(x - m)` of a row, `softmax(x) = e^(x - m) / s` and `log softmax(x) = x - m - log s`:
//! no power overflows, and entries of -inf have probability 0. A row of -inf alone, or one with NaN or +inf, gives NaN.

use super::blocks::{CHUNK, SERIAL};
use super::math::Math;
use super::parallel::{self, SendPtr};
use super::reduce::{Number, dot_of, max_of, sum_of};
use super::simd::vectorized;

/// Elements worked on at a time: rows of fewer are taken together.
const BLOCK: usize = 1024;
/// Up to this length the powers of many rows are computed together.
const SHORT: usize = 64;

/// `y = softmax(x)` for rows of `n`.
pub(crate) fn softmax<T: Math + Number<Wide = f64>>(x: &[T], n: usize, y: &mut [T]) {
    assert_eq!(x.len(), y.len(), "softmax keeps the shape");
    let y = SendPtr(y.as_mut_ptr());
    blocks_of_rows(x.len(), n, |start, len| {
        // SAFETY: the blocks partition `x`, and so `y`.
        let (x, y) = (&x[start..start + len], unsafe { y.part(start, len) });
        for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
            subtract(x, max_of(x), T::zero(), y);
        }
        exp(y);
        for y in y.chunks_exact_mut(n) {
            scale(y, T::narrow(1.0 / sum_of(y)));
        }
    });
}

/// `y = log softmax(x)` for rows of `n`.
pub(crate) fn log_softmax<T: Math + Number<Wide = f64>>(x: &[T], n: usize, y: &mut [T]) {
    assert_eq!(x.len(), y.len(), "log softmax keeps the shape");
    let y = SendPtr(y.as_mut_ptr());
    blocks_of_rows(x.len(), n, |start, len| {
        // SAFETY: the blocks partition `x`, and so `y`.
        let (x, y) = (&x[start..start + len], unsafe { y.part(start, len) });
        let rows = x.chunks_exact(n).zip(y.chunks_exact_mut(n));
        log_sums(x, n, rows, |(x, y), m, s| subtract(x, m, s, y));
    });
}

/// `dx = y (dy - sum(dy y))`, where `y = softmax(x)`, for rows of `n`.
pub(crate) fn softmax_gradient<T: Math + Number<Wide = f64>>(y: &[T], dy: &[T], n: usize, dx: &mut [T]) {
    assert!(y.len() == dy.len() && y.len() == dx.len(), "a gradient has the shape of its tensor");
    let dx = SendPtr(dx.as_mut_ptr());
    blocks_of_rows(y.len(), n, |start, len| {
        let (y, dy) = (&y[start..start + len], &dy[start..start + len]);
        // SAFETY: the blocks partition `y`, and so `dx`.
        let dx = unsafe { dx.part(start, len) };
        for ((y, dy), dx) in y.chunks_exact(n).zip(dy.chunks_exact(n)).zip(dx.chunks_exact_mut(n)) {
            let sum = T::narrow(dot_of(y, dy));
            combine(y, dy, dx, |y, dy| y * (dy - sum));
        }
    });
}

/// `dx = dy - e^y sum(dy)`, where `y = log softmax(x)`, for rows of `n`.
pub(crate) fn log_softmax_gradient<T: Math + Number<Wide = f64>>(y: &[T], dy: &[T], n: usize, dx: &mut [T]) {
    assert!(y.len() == dy.len() && y.len() == dx.len(), "a gradient has the shape of its tensor");
    let dx = SendPtr(dx.as_mut_ptr());
    blocks_of_rows(y.len(), n, |start, len| {
        let (y, dy) = (&y[start..start + len], &dy[start..start + len]);
        // SAFETY: the blocks partition `y`, and so `dx`.
        let dx = unsafe { dx.part(start, len) };
        for ((y, dy), dx) in y.chunks_exact(n).zip(dy.chunks_exact(n)).zip(dx.chunks_exact_mut(n)) {
            let sum = T::narrow(sum_of(dy));
            combine(y, dy, dx, |y, dy| dy - y.exp_() * sum);
        }
    });
}

/// What the gradient of a cross-entropy needs of a row of logits. Both parts, because their sum would lose the second
/// where logits are large.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LogSum<T> {
    /// The largest logit.
    pub(crate) max: T,
    /// `log sum e^(x - max)`.
    pub(crate) log_sum: T,
}

/// `loss = -log softmax(x)[label]` and what [`sparse_gradient`] needs, one a row of `n` logits.
///
/// # Errors
/// The first row whose label is not in `0..n`; nothing is written.
pub(crate) fn sparse<T: Math + Number<Wide = f64>>(
    x: &[T],
    n: usize,
    labels: &[i64],
    loss: &mut [T],
    saved: &mut [LogSum<T>],
) -> Result<(), usize> {
    let rows = labels.len();
    assert!(x.len() == rows * n && loss.len() == rows && saved.len() == rows, "one label a row of logits");
    let inside = |&label: &i64| usize::try_from(label).is_ok_and(|label| label < n);
    if let Some(row) = labels.iter().position(|label| !inside(label)) {
        return Err(row);
    }
    let (loss, saved) = (SendPtr(loss.as_mut_ptr()), SendPtr(saved.as_mut_ptr()));
    blocks_of_rows(x.len(), n, |start, len| {
        let x = &x[start..start + len];
        let (start, len) = (start / n, len / n);
        // SAFETY: the blocks partition the rows.
        let (loss, saved) = unsafe { (loss.part(start, len), saved.part(start, len)) };
        let rows = x.chunks_exact(n).zip(&labels[start..]).zip(loss.iter_mut().zip(saved));
        log_sums(x, n, rows, |((x, label), (loss, saved)), max, log_sum| {
            *loss = log_sum - (x[*label as usize] - max);
            *saved = LogSum { max, log_sum };
        });
    });
    Ok(())
}

/// `dx = (softmax(x) - onehot(label)) dloss`, row by row of `n`, with labels that [`sparse`] has accepted.
pub(crate) fn sparse_gradient<T: Math>(
    x: &[T],
    n: usize,
    labels: &[i64],
    saved: &[LogSum<T>],
    dloss: &[T],
    dx: &mut [T],
) {
    let rows = labels.len();
    assert!(x.len() == rows * n && x.len() == dx.len(), "a gradient has the shape of its tensor");
    assert!(saved.len() == rows && dloss.len() == rows, "one label a row of logits");
    let dx = SendPtr(dx.as_mut_ptr());
    blocks_of_rows(x.len(), n, |start, len| {
        // SAFETY: the blocks partition `x`, and so `dx`.
        let dx = unsafe { dx.part(start, len) };
        let rows = start / n..(start + len) / n;
        for ((row, x), dx) in rows.zip(x[start..].chunks_exact(n)).zip(dx.chunks_exact_mut(n)) {
            probabilities(x, saved[row], dloss[row], dx);
            let of_label = &mut dx[labels[row] as usize];
            *of_label = *of_label - dloss[row];
        }
    });
}

/// `loss = sum(-t log softmax(x))` and what [`dense_gradient`] needs, one a row of `n` logits `x` and targets `t`. Where
/// `t` is 0 the logit does not matter.
pub(crate) fn dense<T: Math + Number<Wide = f64>>(
    x: &[T],
    t: &[T],
    n: usize,
    loss: &mut [T],
    saved: &mut [LogSum<T>],
) {
    assert!(x.len() == t.len() && x.len() == loss.len() * n && saved.len() == loss.len(), "one loss a row");
    if n == 0 {
        return loss.fill(T::zero());
    }
    let (loss, saved) = (SendPtr(loss.as_mut_ptr()), SendPtr(saved.as_mut_ptr()));
    blocks_of_rows(x.len(), n, |start, len| {
        let (x, t) = (&x[start..start + len], &t[start..start + len]);
        let (start, len) = (start / n, len / n);
        // SAFETY: the blocks partition the rows.
        let (loss, saved) = unsafe { (loss.part(start, len), saved.part(start, len)) };
        let rows = x.chunks_exact(n).zip(t.chunks_exact(n)).zip(loss.iter_mut().zip(saved));
        log_sums(x, n, rows, |((x, t), (loss, saved)), max, log_sum| {
            let mut sum = 0.0;
            for (x, t) in x.chunks(BLOCK).zip(t.chunks(BLOCK)) {
                let mut terms = [T::zero(); BLOCK];
                combine(x, t, &mut terms[..x.len()], |x, t| {
                    if t == T::zero() { T::zero() } else { t * (log_sum - (x - max)) }
                });
                sum += sum_of(&terms[..x.len()]);
            }
            *loss = T::narrow(sum);
            *saved = LogSum { max, log_sum };
        });
    });
}

/// `dx = (softmax(x) sum(t) - t) dloss`, row by row of `n`.
pub(crate) fn dense_gradient<T: Math + Number<Wide = f64>>(
    x: &[T],
    t: &[T],
    n: usize,
    saved: &[LogSum<T>],
    dloss: &[T],
    dx: &mut [T],
) {
    assert!(x.len() == t.len() && x.len() == dx.len(), "a gradient has the shape of its tensor");
    assert!(x.len() == saved.len() * n && saved.len() == dloss.len(), "one loss a row");
    let dx = SendPtr(dx.as_mut_ptr());
    blocks_of_rows(x.len(), n, |start, len| {
        // SAFETY: the blocks partition `x`, and so `dx`.
        let dx = unsafe { dx.part(start, len) };
        let rows = (start / n..).zip(x[start..].chunks_exact(n)).zip(t[start..].chunks_exact(n));
        for (((row, x), t), dx) in rows.zip(dx.chunks_exact_mut(n)) {
            let (LogSum { max, log_sum }, dloss) = (saved[row], dloss[row]);
            let all = T::narrow(sum_of(t));
            combine(x, t, dx, |x, t| (((x - max) - log_sum).exp_() * all - t) * dloss);
        }
    });
}

/// Calls `f(start, len)` for blocks of whole rows that partition `0..size`, from several threads if there are many.
fn blocks_of_rows(size: usize, n: usize, f: impl Fn(usize, usize) + Sync) {
    if size == 0 {
        return;
    }
    let block = (BLOCK / n).max(1) * n;
    let work = |start: usize, end: usize| {
        for start in (start..end).step_by(block) {
            f(start, block.min(end - start));
        }
    };
    if size <= SERIAL {
        return work(0, size);
    }
    let chunk = CHUNK.div_ceil(block) * block;
    parallel::for_each(size.div_ceil(chunk), |i| work(i * chunk, size.min((i + 1) * chunk)));
}

/// Calls `f(row, m, log s)` for each of `rows`, the rows of a block `x` and what belongs to them.
fn log_sums<T: Math + Number<Wide = f64>, R>(
    x: &[T],
    n: usize,
    rows: impl Iterator<Item = R>,
    mut f: impl FnMut(R, T, T),
) {
    let mut powers = [T::zero(); BLOCK];
    if n <= SHORT {
        let powers = &mut powers[..x.len()];
        for (x, powers) in x.chunks_exact(n).zip(powers.chunks_exact_mut(n)) {
            subtract(x, max_of(x), T::zero(), powers);
        }
        exp(powers);
        for ((row, x), powers) in rows.zip(x.chunks_exact(n)).zip(powers.chunks_exact(n)) {
            f(row, max_of(x), T::narrow(sum_of(powers).ln()));
        }
        return;
    }
    for (row, x) in rows.zip(x.chunks_exact(n)) {
        let (m, mut sum) = (max_of(x), 0.0);
        for x in x.chunks(BLOCK) {
            let powers = &mut powers[..x.len()];
            subtract(x, m, T::zero(), powers);
            exp(powers);
            sum += sum_of(powers);
        }
        f(row, m, T::narrow(sum.ln()));
    }
}

/// `y = (x - a) - b`.
#[inline(never)]
fn subtract<T: Math>(x: &[T], a: T, b: T, y: &mut [T]) {
    vectorized(
        #[inline(always)]
        move || {
            for (y, &x) in y.iter_mut().zip(x) {
                *y = (x - a) - b;
            }
        },
    );
}

/// `y = e^y`.
#[inline(never)]
fn exp<T: Math>(y: &mut [T]) {
    vectorized(
        #[inline(always)]
        move || {
            for y in y.iter_mut() {
                *y = y.exp_();
            }
        },
    );
}

/// `y = a y`.
#[inline(never)]
fn scale<T: Math>(y: &mut [T], a: T) {
    vectorized(
        #[inline(always)]
        move || {
            for y in y.iter_mut() {
                *y = *y * a;
            }
        },
    );
}

/// `y = e^(x - m - log s) a`.
#[inline(never)]
fn probabilities<T: Math>(x: &[T], LogSum { max, log_sum }: LogSum<T>, a: T, y: &mut [T]) {
    vectorized(
        #[inline(always)]
        move || {
            for (y, &x) in y.iter_mut().zip(x) {
                *y = ((x - max) - log_sum).exp_() * a;
            }
        },
    );
}

/// `y = f(a, b)`.
#[inline(never)]
fn combine<T: Math>(a: &[T], b: &[T], y: &mut [T], f: impl Fn(T, T) -> T) {
    vectorized(
        #[inline(always)]
        move || {
            for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
                *y = f(a, b);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::super::parallel::with_threads;
    use super::*;

    const INF: f64 = f64::INFINITY;

    fn rows(n: usize, rows: usize) -> Vec<f64> {
        (0..n * rows).map(|i| ((i * 7919 % 1009) as f64 - 504.0) / 40.0).collect()
    }

    fn obvious(x: &[f64], n: usize) -> Vec<f64> {
        let row = |x: &[f64]| {
            let m = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let s: f64 = x.iter().map(|x| (x - m).exp()).sum();
            x.iter().map(|x| (x - m).exp() / s).collect::<Vec<_>>()
        };
        x.chunks(n).flat_map(row).collect()
    }

    fn assert_close(y: &[f64], expected: &[f64], tolerance: f64) {
        assert_eq!(y.len(), expected.len());
        for (y, e) in y.iter().zip(expected) {
            assert!((y - e).abs() <= tolerance * (1.0 + e.abs()), "{y}, expected {e}");
        }
    }

    const SHAPES: [(usize, usize); 7] =
        [(1, 1), (10, 13), (3, 1000), (1000, 3), (1024, 2), (5000, 2), (40_000, 2)];

    #[test]
    fn softmax_and_its_logarithm_equal_the_obvious_loops() {
        for (n, m) in SHAPES {
            let x = rows(n, m);
            let expected = obvious(&x, n);
            let mut y = vec![f64::NAN; x.len()];
            softmax(&x, n, &mut y);
            assert_close(&y, &expected, 1e-14);
            log_softmax(&x, n, &mut y);
            assert_close(&y, &expected.iter().map(|p| p.ln()).collect::<Vec<_>>(), 1e-14);
            let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
            let mut y = vec![f32::NAN; x.len()];
            softmax(&single, n, &mut y);
            assert_close(&y.iter().map(|&y| f64::from(y)).collect::<Vec<_>>(), &expected, 1e-6);
        }
    }

    #[test]
    fn gradients_equal_the_jacobian_products() {
        for (n, m) in SHAPES {
            let (x, dy) = (rows(n, m), rows(n, m).into_iter().rev().map(|x| x * 0.1).collect::<Vec<_>>());
            let p = obvious(&x, n);
            let log_p: Vec<f64> = p.iter().map(|p| p.ln()).collect();
            let (mut expected, mut log_expected) = (Vec::new(), Vec::new());
            for (p, dy) in p.chunks(n).zip(dy.chunks(n)) {
                let dot: f64 = p.iter().zip(dy).map(|(p, dy)| p * dy).sum();
                let all: f64 = dy.iter().sum();
                expected.extend(p.iter().zip(dy).map(|(p, dy)| p * (dy - dot)));
                log_expected.extend(p.iter().zip(dy).map(|(p, dy)| dy - p * all));
            }
            let mut dx = vec![f64::NAN; x.len()];
            softmax_gradient(&p, &dy, n, &mut dx);
            assert_close(&dx, &expected, 1e-13);
            log_softmax_gradient(&log_p, &dy, n, &mut dx);
            assert_close(&dx, &log_expected, 1e-12);
        }
    }

    #[test]
    fn cross_entropies_and_gradients_equal_the_obvious_loops() {
        for (n, m) in SHAPES {
            let (x, p) = (rows(n, m), obvious(&rows(n, m), n));
            let labels: Vec<i64> = (0..m).map(|row| (row * 7 % n) as i64).collect();
            let dloss: Vec<f64> = (0..m).map(|row| 0.5 + row as f64).collect();
            let mut t = vec![0.0; n * m];
            for (row, &label) in labels.iter().enumerate() {
                t[row * n + label as usize] = 1.0;
            }
            let expected: Vec<f64> =
                labels.iter().zip(p.chunks(n)).map(|(&l, p)| -p[l as usize].ln()).collect();
            let gradient: Vec<f64> = (0..n * m).map(|i| (p[i] - t[i]) * dloss[i / n]).collect();
            let (mut loss, mut saved) = (vec![f64::NAN; m], vec![LogSum::default(); m]);
            let mut dx = vec![f64::NAN; n * m];
            sparse(&x, n, &labels, &mut loss, &mut saved).unwrap();
            sparse_gradient(&x, n, &labels, &saved, &dloss, &mut dx);
            assert_close(&loss, &expected, 1e-14);
            assert_close(&dx, &gradient, 1e-13);
            loss.fill(f64::NAN);
            dense(&x, &t, n, &mut loss, &mut saved);
            dense_gradient(&x, &t, n, &saved, &dloss, &mut dx);
            assert_close(&loss, &expected, 1e-14);
            assert_close(&dx, &gradient, 1e-13);
        }
    }

    #[test]
    fn targets_need_not_sum_to_one() {
        // p = (1/4, 3/4), so the loss is -(2 log 1/4 + 4 log 3/4) and the gradient (6/4 - 2, 18/4 - 4).
        let (x, t) = ([0.0, 3.0_f64.ln()], [2.0, 4.0]);
        let (mut loss, mut saved, mut dx) = ([0.0], [LogSum::default()], [0.0; 2]);
        dense(&x, &t, 2, &mut loss, &mut saved);
        dense_gradient(&x, &t, 2, &saved, &[1.0], &mut dx);
        assert_close(&loss, &[4.0 * 4.0_f64.ln() - 4.0 * 3.0_f64.ln() + 2.0 * 4.0_f64.ln()], 1e-15);
        assert_close(&dx, &[-0.5, 0.5], 1e-15);
    }

    #[test]
    fn far_logits_and_masks_stay_finite() {
        let x = [1e4_f32, 1e4, -1e4, f32::NEG_INFINITY];
        let mut y = [0.0; 4];
        softmax(&x, 4, &mut y);
        assert_eq!(y, [0.5, 0.5, 0.0, 0.0]);
        log_softmax(&x, 4, &mut y);
        assert_eq!(y, [-std::f32::consts::LN_2, -std::f32::consts::LN_2, -20_000.693, f32::NEG_INFINITY]);
        let (mut loss, mut saved) = ([0.0; 1], [LogSum::default(); 1]);
        sparse(&x, 4, &[1], &mut loss, &mut saved).unwrap();
        assert_eq!(loss, [std::f32::consts::LN_2]);
        sparse_gradient(&x, 4, &[1], &saved, &[1.0], &mut y);
        assert_close(&y.map(f64::from), &[0.5, -0.5, 0.0, 0.0], 1e-7);
        sparse(&x, 4, &[3], &mut loss, &mut saved).unwrap();
        assert_eq!(loss, [f32::INFINITY]);
        dense(&x, &[0.5, 0.5, 0.0, 0.0], 4, &mut loss, &mut saved);
        assert_eq!(loss, [std::f32::consts::LN_2]);
    }

    #[test]
    fn a_row_that_has_no_distribution_is_nan_and_the_others_are_not() {
        let x = [-INF, -INF, 0.0, 0.0, f64::NAN, 1.0, INF, 1.0];
        let mut y = [0.0; 8];
        for f in [softmax::<f64>, log_softmax] {
            f(&x, 2, &mut y);
            let nan = y.map(f64::is_nan);
            assert_eq!(nan, [true, true, false, false, true, true, true, true]);
        }
    }

    #[test]
    fn labels_outside_the_classes_are_refused_before_anything_is_written() {
        let (mut loss, mut saved) = ([7.0; 3], [LogSum::default(); 3]);
        for (labels, row) in [([0, 1, 2], 2), ([0, -1, 2], 1), ([i64::MIN, 0, 0], 0)] {
            assert_eq!(sparse(&[0.0_f32; 6], 2, &labels, &mut loss, &mut saved), Err(row));
        }
        assert_eq!(loss, [7.0; 3]);
    }

    #[test]
    fn no_rows_give_nothing() {
        softmax::<f32>(&[], 3, &mut []);
        log_softmax::<f32>(&[], 0, &mut []);
        assert_eq!(sparse::<f32>(&[], 3, &[], &mut [], &mut []), Ok(()));
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let x: Vec<f32> = rows(700, 99).into_iter().map(|x| x as f32).collect();
        let run = |threads| {
            let mut y = vec![0.0; x.len()];
            with_threads(threads, || softmax(&x, 700, &mut y));
            y
        };
        assert_eq!(run(1), run(8));
    }
}
