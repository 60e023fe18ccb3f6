//! Sums of squares in double precision.

use super::parallel::for_each_chunk_mut;
use super::simd::vectorized;
use super::update::{Kept, Real};

/// Elements that one thread sums at a time.
const CHUNK: usize = 16 << 10;
/// Sums kept side by side, for the sake of wide registers.
const LANES: usize = 16;

/// The sum of the squares of all elements, in f64. The order of additions depends on the number of elements alone.
pub(crate) fn sum_squares<T: Kept>(x: &[T]) -> f64 {
    let mut sums = vec![0.0; x.len().div_ceil(CHUNK)];
    for_each_chunk_mut(&mut sums, 1, |i, sum| sum[0] = chunk(&x[i * CHUNK..x.len().min((i + 1) * CHUNK)]));
    sums.iter().sum()
}

fn chunk<T: Kept>(x: &[T]) -> f64 {
    let mut sums = [0.0; LANES];
    vectorized(
        #[inline(always)]
        || {
            let mut blocks = x.chunks_exact(LANES);
            for block in &mut blocks {
                for (sum, x) in sums.iter_mut().zip(block) {
                    let x = x.up().wide();
                    *sum += x * x;
                }
            }
            for (sum, x) in sums.iter_mut().zip(blocks.remainder()) {
                let x = x.up().wide();
                *sum += x * x;
            }
        },
    );
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::parallel::with_threads;

    /// `1^2 + ... + n^2 = n (n + 1) (2 n + 1) / 6`.
    #[test]
    fn whole_numbers_are_summed_exactly_on_any_number_of_threads() {
        for n in [0u64, 1, 15, 16, 17, 5000, 40_000] {
            let x: Vec<f32> = (1..=n).map(|i| i as f32).collect();
            let expected = (n * (n + 1) * (2 * n + 1) / 6) as f64;
            assert_eq!(sum_squares(&x), expected);
            assert_eq!(with_threads(1, || sum_squares(&x)), expected);
        }
    }

    #[test]
    fn squares_beyond_the_range_of_the_type_are_summed() {
        assert_eq!(sum_squares(&[1e30f32; 4]), 4.0 * f64::from(1e30f32).powi(2));
        assert_eq!(sum_squares(&[half::f16::MAX; 2]), 2.0 * 65504.0 * 65504.0);
    }
}
