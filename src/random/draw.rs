//! Tensors of random numbers.

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::quantile::{normal, truncated_normal};
use crate::kernels::random::{Blocks, below, fill_u32, fill_u64};
use crate::ops::for_float;
use crate::tensor::{Shape, Tensor, checked_size, take};

use super::Generator;

impl Generator {
    /// Floats spread evenly over `low <= y < high`; all `low` if the two are equal.
    ///
    /// # Errors
    /// `dtype` is not a float type, or cannot hold the bounds, or `low > high`, or a bound is not finite.
    pub fn uniform(&self, shape: impl Into<Shape>, low: f64, high: f64, dtype: DType) -> Result<Tensor> {
        const OP: &str = "uniform";
        for_float!(OP, dtype, T => {
            let held = |v: f64| T::from_f64(v).to_f64().is_finite();
            if !(low <= high && (high - low).is_finite() && held(low) && held(high)) {
                let got = format!("{low} to {high}");
                return Err(Error::argument(OP, "range", got, format!("low <= high, both finite in {dtype}")));
            }
            let (range, last) = (high - low, last_below::<T>(low, high));
            self.floats::<T>(OP, shape.into(), move |u| {
                let y = T::from_f64(low + u * range);
                // Rounding may lead up to the bound.
                if y.to_f64() < high { y } else { last }
            })
        })
    }

    /// Floats of the normal distribution.
    ///
    /// # Errors
    /// `dtype` is not a float type, `stddev` is negative, or an argument is not finite.
    pub fn normal(&self, shape: impl Into<Shape>, mean: f64, stddev: f64, dtype: DType) -> Result<Tensor> {
        const OP: &str = "normal";
        check_moments(OP, mean, stddev)?;
        for_float!(OP, dtype, T => {
            self.floats::<T>(OP, shape.into(), move |u| T::from_f64(mean + stddev * normal(u)))
        })
    }

    /// Floats of the normal distribution, none further than `2 stddev` from `mean`: as if those outside were drawn anew.
    ///
    /// Their standard deviation is `0.87962566 stddev`.
    ///
    /// # Errors
    /// `dtype` is not a float type, `stddev` is negative, or an argument is not finite.
    pub fn truncated_normal(
        &self,
        shape: impl Into<Shape>,
        mean: f64,
        stddev: f64,
        dtype: DType,
    ) -> Result<Tensor> {
        const OP: &str = "truncated_normal";
        check_moments(OP, mean, stddev)?;
        for_float!(OP, dtype, T => {
            self.floats::<T>(OP, shape.into(), move |u| T::from_f64(mean + stddev * truncated_normal(u)))
        })
    }

    /// 1 (or true) with the given probability, else 0, in any dtype. The probability is rounded to a multiple of 2^-32.
    ///
    /// # Errors
    /// `probability` lies outside `[0, 1]`.
    pub fn bernoulli(&self, shape: impl Into<Shape>, probability: f64, dtype: DType) -> Result<Tensor> {
        const OP: &str = "bernoulli";
        if !(0.0..=1.0).contains(&probability) {
            return Err(Error::argument(OP, "probability", probability, "0 to 1"));
        }
        let threshold = (probability * (1u64 << 32) as f64).round() as u64;
        let (mut y, shape, blocks) = self.reserve::<bool>(OP, shape.into(), 1)?;
        fill_u32(blocks, &mut y, |word| u64::from(word) < threshold);
        Tensor::from_taken(y, shape).converted(dtype)
    }

    /// Whole numbers spread evenly over `low <= y < high`.
    ///
    /// # Errors
    /// `dtype` is not an integer type, or cannot hold the numbers, or `low >= high`.
    pub fn integers(&self, shape: impl Into<Shape>, low: i64, high: i64, dtype: DType) -> Result<Tensor> {
        const OP: &str = "integers";
        if !dtype.is_integer() {
            return Err(Error::dtype(OP, "the tensor", dtype, "an integer dtype"));
        }
        let held = |v: i64| crate::dtype::for_dtype!(dtype, T => T::from_i64(v).to_i64() == v);
        if low >= high || !held(low) || !held(high - 1) {
            let expected = format!("low < high, both within {dtype}");
            return Err(Error::argument(OP, "range", format!("{low} to {high}"), expected));
        }
        let range = high.wrapping_sub(low).cast_unsigned();
        let (mut y, shape, blocks) = self.reserve::<i64>(OP, shape.into(), 2)?;
        fill_u64(blocks, &mut y, |word| low.wrapping_add_unsigned(below(range, word)));
        Tensor::from_taken(y, shape).converted(dtype)
    }

    /// The numbers `0` to `count - 1` in random order, `i64[count]`. All orders are equally likely.
    ///
    /// # Errors
    /// There are too many to hold.
    pub fn permutation(&self, count: usize) -> Result<Tensor> {
        let (mut words, shape, blocks) = self.reserve::<u64>("permutation", Shape::from([count]), 2)?;
        fill_u64(blocks, &mut words, |word| word);
        let mut order: Vec<i64> = (0..count as i64).collect();
        for (i, &word) in words.iter().enumerate().skip(1) {
            order.swap(i, below(i as u64 + 1, word) as usize);
        }
        Tensor::from_vec(order, shape)
    }

    /// `f` of uniform numbers in `(0, 1)`, of 52 random bits for f64 and 32 for shorter types.
    fn floats<T: Element>(
        &self,
        op: &'static str,
        shape: Shape,
        f: impl Fn(f64) -> T + Sync,
    ) -> Result<Tensor> {
        let wide = T::DTYPE == DType::F64;
        let (mut y, shape, blocks) = self.reserve::<T>(op, shape, if wide { 2 } else { 1 })?;
        // Half a step is added, so that neither 0 nor 1 can come.
        if wide {
            let step = 1.0 / (1u64 << 52) as f64;
            fill_u64(blocks, &mut y, |word| f(((word >> 12) as f64 + 0.5) * step));
        } else {
            let step = 1.0 / (1u64 << 32) as f64;
            fill_u32(blocks, &mut y, |word| f((f64::from(word) + 0.5) * step));
        }
        Ok(Tensor::from_taken(y, shape))
    }

    /// Memory for a tensor, and blocks of random numbers for elements of `words` words each.
    fn reserve<T: Element>(
        &self,
        op: &'static str,
        shape: Shape,
        words: usize,
    ) -> Result<(Vec<T>, Shape, Blocks)> {
        let size = checked_size(op, &shape, T::DTYPE)?;
        Ok((take::<T>(size), shape, self.take(Blocks::needed(size, words))))
    }
}

fn check_moments(op: &'static str, mean: f64, stddev: f64) -> Result<()> {
    if !mean.is_finite() {
        return Err(Error::argument(op, "mean", mean, "a finite number"));
    }
    if !(stddev.is_finite() && stddev >= 0.0) {
        return Err(Error::argument(op, "stddev", stddev, "a finite number, 0 or more"));
    }
    Ok(())
}

/// The largest value of type `T` below `high`, but no less than `low`.
fn last_below<T: Element>(low: f64, high: f64) -> T {
    let mut step = (high.abs() * f64::EPSILON * 0.25).max(f64::MIN_POSITIVE);
    loop {
        let y = T::from_f64((high - step).max(low));
        if y.to_f64() < high || high - step <= low {
            return y;
        }
        step *= 2.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::parallel::with_threads;

    const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

    fn draws(dtype: DType, draw: impl Fn(&Generator, usize) -> Result<Tensor>) -> Vec<f64> {
        let y = draw(&Generator::seed(17), 40_000).unwrap();
        assert_eq!(y.dtype(), dtype);
        y.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
    }

    fn mean_and_stddev(y: &[f64]) -> (f64, f64) {
        let n = y.len() as f64;
        let mean = y.iter().sum::<f64>() / n;
        (mean, (y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / n).sqrt())
    }

    // The mean of 40,000 draws strays from the expected one by 1/200 of their standard deviation (0.005 at 1), and
    // their standard deviation by half of that. Four times as much is allowed.

    #[test]
    fn uniform_numbers_fill_their_range_and_stay_below_its_end() {
        for dtype in FLOATS {
            let y = draws(dtype, |g, n| g.uniform([n], 1.0, 2.0, dtype));
            let (mean, stddev) = mean_and_stddev(&y);
            assert!(
                (mean - 1.5).abs() < 0.006 && (stddev - 12f64.sqrt().recip()).abs() < 0.003,
                "{mean} {stddev}"
            );
            assert!(y.iter().all(|y| (1.0..2.0).contains(y)), "{dtype}");
        }
        let equal = draws(DType::F32, |g, n| g.uniform([n], 3.0, 3.0, DType::F32));
        assert!(equal.iter().all(|&y| y == 3.0));
    }

    #[test]
    fn the_number_before_the_end_of_a_range_is_exact() {
        assert_eq!(last_below::<f32>(0.0, 1.0), 1f32.next_down());
        assert_eq!(last_below::<f64>(-9.0, -3.0), (-3f64).next_down());
        assert_eq!(last_below::<half::bf16>(1.0, 2.0).to_f64(), 2.0 - 1.0 / 128.0);
        assert_eq!(last_below::<f32>(2.0, 2.0), 2.0);
        assert!(last_below::<f32>(-1.0, 0.0) <= 0.0);
    }

    #[test]
    fn normal_numbers_have_the_moments_asked_for() {
        for dtype in FLOATS {
            let (mean, stddev) = mean_and_stddev(&draws(dtype, |g, n| g.normal([n], 0.5, 2.0, dtype)));
            assert!((mean - 0.5).abs() < 0.04 && (stddev - 2.0).abs() < 0.02, "{mean} {stddev}");
        }
    }

    #[test]
    fn truncated_numbers_stay_within_two_deviations() {
        for dtype in FLOATS {
            let y = draws(dtype, |g, n| g.truncated_normal([n], 0.0, 1.0, dtype));
            let (mean, stddev) = mean_and_stddev(&y);
            assert!(mean.abs() < 0.02 && (stddev - 0.87962566).abs() < 0.01, "{mean} {stddev}");
            let furthest = y.iter().fold(0f64, |m, y| m.max(y.abs()));
            assert!(furthest > 1.99 && furthest <= 2.0, "{furthest}");
        }
    }

    #[test]
    fn a_mask_is_true_as_often_as_asked() {
        for dtype in DType::ALL {
            let (mean, _) = mean_and_stddev(&draws(dtype, |g, n| g.bernoulli([n], 0.3, dtype)));
            assert!((mean - 0.3).abs() < 0.01, "{dtype}: {mean}");
        }
        let always = draws(DType::F32, |g, n| g.bernoulli([n], 1.0, DType::F32));
        let never = draws(DType::F32, |g, n| g.bernoulli([n], 0.0, DType::F32));
        assert!(always.iter().all(|&y| y == 1.0) && never.iter().all(|&y| y == 0.0));
    }

    #[test]
    fn integers_are_spread_evenly() {
        let y = draws(DType::I8, |g, n| g.integers([n], -3, 5, DType::I8));
        for value in -3..5 {
            // 5,000 expected, 66 one deviation.
            let count = y.iter().filter(|&&y| y == f64::from(value)).count();
            assert!((4700..5300).contains(&count), "{value}: {count}");
        }
        let wide = Generator::seed(1).integers([100], i64::MIN, i64::MAX, DType::I64).unwrap();
        let negative = wide.to_vec::<i64>().unwrap().iter().filter(|&&y| y < 0).count();
        assert!((20..80).contains(&negative), "{negative}");
    }

    #[test]
    fn a_permutation_holds_each_number_once_and_any_order() {
        let g = Generator::seed(5);
        let mut order = g.permutation(1000).unwrap().to_vec::<i64>().unwrap();
        assert!(order.windows(2).any(|w| w[0] > w[1]));
        order.sort_unstable();
        assert!(order.iter().enumerate().all(|(i, &v)| v == i as i64));
        let mut counts = [0; 6];
        for _ in 0..6000 {
            let order = g.permutation(3).unwrap().to_vec::<i64>().unwrap();
            counts[(2 * order[0] + i64::from(order[1] > order[2])) as usize] += 1;
        }
        // 1,000 expected, 29 one deviation.
        assert!(counts.iter().all(|count| (880..1120).contains(count)), "{counts:?}");
        assert_eq!(g.permutation(0).unwrap().size(), 0);
    }

    #[test]
    fn a_draw_does_not_depend_on_the_number_of_threads_or_on_its_neighbours() {
        let draw =
            || Generator::seed(3).normal([3, 50_000], 0.0, 1.0, DType::F32).unwrap().to_vec::<f32>().unwrap();
        let (many, one) = (draw(), with_threads(1, draw));
        assert_eq!(many, one);
        let part = Generator::seed(3).normal([100], 0.0, 1.0, DType::F32).unwrap();
        assert_eq!(part.to_vec::<f32>().unwrap(), one[..100]);
    }

    #[test]
    fn each_draw_starts_where_the_last_one_ended() {
        let g = Generator::seed(3);
        g.uniform([5], 0.0, 1.0, DType::F32).unwrap();
        assert_eq!(g.state(), [3, 0, 2]);
        g.uniform([5], 0.0, 1.0, DType::F64).unwrap();
        assert_eq!(g.state(), [3, 0, 5]);
        g.uniform([0], 0.0, 1.0, DType::F64).unwrap();
        assert_eq!(g.state(), [3, 0, 5]);
    }

    #[test]
    fn a_refused_draw_says_what_would_be_right_and_takes_nothing() {
        let g = Generator::seed(3);
        let refused = [
            (g.uniform([2], 1.0, 0.0, DType::F32), "low <= high"),
            (g.uniform([2], 0.0, f64::INFINITY, DType::F32), "finite"),
            (g.uniform([2], -1e308, 1e308, DType::F64), "finite"),
            (g.uniform([2], 0.0, 1e6, DType::F16), "finite in f16"),
            (g.uniform([2], 0.0, 1.0, DType::I32), "float dtype"),
            (g.normal([2], f64::NAN, 1.0, DType::F32), "mean"),
            (g.normal([2], 0.0, -1.0, DType::F32), "stddev"),
            (g.truncated_normal([2], 0.0, f64::NAN, DType::F32), "stddev"),
            (g.normal([2], 0.0, 1.0, DType::Bool), "float dtype"),
            (g.normal([usize::MAX, 2], 0.0, 1.0, DType::F32), "bytes"),
            (g.bernoulli([2], 1.5, DType::Bool), "0 to 1"),
            (g.bernoulli([2], f64::NAN, DType::Bool), "0 to 1"),
            (g.integers([2], 3, 3, DType::I32), "low < high"),
            (g.integers([2], -1, 3, DType::U8), "u8"),
            (g.integers([2], 0, 300, DType::U8), "u8"),
            (g.integers([2], 0, 3, DType::F32), "integer dtype"),
            (g.integers([2], 0, 2, DType::Bool), "integer dtype"),
        ];
        for (result, part) in refused {
            let message = result.unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(g.state(), [3, 0, 0]);
    }
}
