//! The normal distribution, cut at two standard deviations.

use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::{Shape, Tensor};

use super::{Initializer, Seed, expect_float};

/// Numbers of the normal distribution, drawn anew until they lie within `2 stddev` of the mean; float dtypes.
///
/// Their standard deviation is `0.87962566 stddev`. The default has mean 0 and `stddev` 1.
#[derive(Debug, Clone)]
pub struct TruncatedNormal {
    mean: f64,
    stddev: f64,
    seed: Seed,
}

impl TruncatedNormal {
    /// Mean 0 and the given standard deviation, before the cut.
    pub fn new(stddev: f64) -> Self {
        TruncatedNormal { mean: 0.0, stddev, seed: Seed::default() }
    }

    /// The mean. Default: 0.
    #[must_use]
    pub fn mean(mut self, mean: f64) -> Self {
        self.mean = mean;
        self
    }

    /// A seed of its own. Default: draw from the thread's current generator.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Seed::new(seed);
        self
    }
}

impl Default for TruncatedNormal {
    fn default() -> Self {
        Self::new(1.0)
    }
}

impl Initializer for TruncatedNormal {
    fn init(&self, shape: &Shape, dtype: DType) -> Result<Tensor> {
        expect_float("truncated_normal", dtype)?;
        self.seed.generator().truncated_normal(shape.clone(), self.mean, self.stddev, dtype)
    }

    fn describe(&self) -> String {
        format!("TruncatedNormal(mean={}, stddev={}{})", self.mean, self.stddev, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_within_two_deviations_of_the_mean() {
        let y = TruncatedNormal::new(0.5).mean(3.0).init(&Shape::from([1000]), DType::F32).unwrap();
        assert!(y.to_vec::<f32>().unwrap().iter().all(|y| (2.0..4.0).contains(y)));
    }

    #[test]
    fn bad_arguments_are_reported_when_drawn() {
        assert!(TruncatedNormal::new(-1.0).init(&Shape::from([2]), DType::F32).is_err());
        assert!(TruncatedNormal::new(1.0).init(&Shape::from([2]), DType::I32).is_err());
    }
}
