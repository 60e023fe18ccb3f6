//! Loops over lanes: runs of elements that lie one after the other and are worked on together.

use super::math::Math;
use super::parallel;
use super::simd::vectorized;

/// Elements that one chunk of parallel work reads.
const CHUNK: usize = 1 << 14;

/// Lanes of `lane` elements in one chunk.
fn lanes_per_chunk(lane: usize) -> usize {
    (CHUNK / lane.max(1)).max(1)
}

/// `y[i] = f(lane i of x)`, where `x` holds `y.len()` lanes of `lane` elements.
pub(crate) fn fold<T: Sync, U: Send>(x: &[T], lane: usize, y: &mut [U], f: impl Fn(&[T]) -> U + Sync) {
    assert_eq!(x.len(), lane * y.len(), "each output has one lane");
    let per_chunk = lanes_per_chunk(lane);
    parallel::for_each_chunk_mut(y, per_chunk, |chunk, y| {
        let first = chunk * per_chunk;
        for (i, y) in y.iter_mut().enumerate() {
            *y = f(&x[(first + i) * lane..(first + i + 1) * lane]);
        }
    });
}

/// `f(lane i of x, lane i of y)`: lanes of `from` elements become lanes of `to` elements.
pub(crate) fn map<T: Sync, U: Send>(
    x: &[T],
    from: usize,
    y: &mut [U],
    to: usize,
    f: impl Fn(&[T], &mut [U]) + Sync,
) {
    if y.is_empty() {
        return;
    }
    let count = y.len() / to;
    assert!(x.len() == from * count && y.len() == to * count, "as many lanes in as out");
    let per_chunk = lanes_per_chunk(from.max(to));
    parallel::for_each_chunk_mut(y, per_chunk * to, |chunk, y| {
        let first = chunk * per_chunk;
        for (i, y) in y.chunks_exact_mut(to).enumerate() {
            f(&x[(first + i) * from..(first + i + 1) * from], y);
        }
    });
}

/// `f(lane i of a, lane i of b, lane i of y)`; each tensor has lanes of its own length, given behind it.
pub(crate) fn zip<T: Sync, U: Sync, V: Send>(
    (a, from_a): (&[T], usize),
    (b, from_b): (&[U], usize),
    (y, to): (&mut [V], usize),
    f: impl Fn(&[T], &[U], &mut [V]) + Sync,
) {
    if y.is_empty() {
        return;
    }
    let count = y.len() / to;
    let fits = a.len() == from_a * count && b.len() == from_b * count && y.len() == to * count;
    assert!(fits, "as many lanes in as out");
    let per_chunk = lanes_per_chunk(from_a.max(from_b).max(to));
    parallel::for_each_chunk_mut(y, per_chunk * to, |chunk, y| {
        let first = chunk * per_chunk;
        for (i, y) in y.chunks_exact_mut(to).enumerate() {
            let i = first + i;
            f(&a[i * from_a..(i + 1) * from_a], &b[i * from_b..(i + 1) * from_b], y);
        }
    });
}

/// Partial sums that a lane is spread over, so that it is summed in vectors.
const PARTS: usize = 16;

/// `ln(sum(exp(x)))`, with the largest element taken out of the sum.
pub(crate) fn log_sum_exp<T: Math>(x: &[T]) -> T {
    let largest = x.iter().fold(T::neg_infinity(), |m, &v| if v > m { v } else { m });
    let shift = if largest.is_finite() { largest } else { T::zero() };
    let sum = vectorized(
        #[inline(always)]
        || {
            let (chunks, rest) = x.as_chunks::<PARTS>();
            let mut sums = [0.0; PARTS];
            for chunk in chunks {
                for (sum, &v) in sums.iter_mut().zip(chunk) {
                    *sum += (v - shift).exp_().as_f64();
                }
            }
            let rest: f64 = rest.iter().map(|&v| (v - shift).exp_().as_f64()).sum();
            sums.iter().sum::<f64>() + rest
        },
    );
    T::from_f64(sum.ln() + shift.as_f64())
}

/// The Euclidean norm, without overflow on the way.
pub(crate) fn norm<T: Math>(x: &[T]) -> T {
    let squares = |scale: f64| x.iter().fold(0.0, |sum, &v| sum + (v.as_f64() / scale).powi(2));
    let sum = squares(1.0);
    if (1e-280..1e300).contains(&sum) {
        return T::from_f64(sum.sqrt());
    }
    let largest = x.iter().fold(0.0f64, |m, &v| m.max(v.as_f64().abs()));
    if largest == 0.0 || !largest.is_finite() {
        // Nothing but zeros and NaN, or an infinity.
        return T::from_f64(sum.sqrt());
    }
    T::from_f64(largest * squares(largest).sqrt())
}

/// Positions of what holds.
pub(crate) fn positions(x: &[bool]) -> Vec<usize> {
    x.iter().enumerate().filter(|&(_, &x)| x).map(|(i, _)| i).collect()
}

#[cfg(test)]
mod tests {
    use super::super::parallel::with_threads;
    use super::*;

    #[test]
    fn lanes_are_folded_in_order_on_any_number_of_threads() {
        let x: Vec<u64> = (0..60_000).collect();
        for lane in [1, 3, 1000, 30_000] {
            let expected: Vec<u64> = x.chunks(lane).map(|l| l.iter().sum()).collect();
            for threads in [1, 2] {
                let mut y = vec![0; x.len() / lane];
                with_threads(threads, || fold(&x, lane, &mut y, |l| l.iter().sum()));
                assert_eq!(y, expected);
            }
        }
    }

    #[test]
    fn an_empty_lane_folds_to_what_the_function_says() {
        let mut y = [7; 3];
        fold::<u8, _>(&[], 0, &mut y, |l| l.len());
        assert_eq!(y, [0; 3]);
    }

    #[test]
    fn two_tensors_are_walked_together() {
        let (a, b): (Vec<usize>, Vec<usize>) = ((0..30_000).collect(), (0..10_000).collect());
        let mut y = vec![0; 20_000];
        zip((&a, 3), (&b, 1), (&mut y, 2), |a, b, y| y.copy_from_slice(&[a[2], b[0]]));
        let expected: Vec<usize> = (0..10_000).flat_map(|i| [3 * i + 2, i]).collect();
        assert_eq!(y, expected);
    }

    #[test]
    fn lanes_may_change_their_length() {
        let x: Vec<usize> = (0..40_000).collect();
        for (from, to) in [(4, 2), (2, 4), (20_000, 1)] {
            let mut y = vec![0; x.len() / from * to];
            map(&x, from, &mut y, to, |x, y| y.iter_mut().enumerate().for_each(|(j, y)| *y = x[j % from]));
            let expected: Vec<usize> =
                x.chunks(from).flat_map(|l| (0..to).map(|j| l[j % from]).collect::<Vec<_>>()).collect();
            assert_eq!(y, expected);
        }
        map::<usize, usize>(&[], 3, &mut [], 0, |_, _| {});
    }
}
