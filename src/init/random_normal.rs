//! The normal distribution.

use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::{Shape, Tensor};

use super::{Initializer, Seed, expect_float};

/// Numbers of the normal distribution; float dtypes. The default has mean 0 and standard deviation 1.
#[derive(Debug, Clone)]
pub struct RandomNormal {
    mean: f64,
    stddev: f64,
    seed: Seed,
}

impl RandomNormal {
    /// Mean 0 and the given standard deviation.
    pub fn new(stddev: f64) -> Self {
        RandomNormal { mean: 0.0, stddev, seed: Seed::default() }
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

impl Default for RandomNormal {
    fn default() -> Self {
        Self::new(1.0)
    }
}

impl Initializer for RandomNormal {
    fn init(&self, shape: &Shape, dtype: DType) -> Result<Tensor> {
        expect_float("random_normal", dtype)?;
        self.seed.generator().normal(shape.clone(), self.mean, self.stddev, dtype)
    }

    fn describe(&self) -> String {
        format!("RandomNormal(mean={}, stddev={}{})", self.mean, self.stddev, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{self, Generator};

    #[test]
    fn bad_arguments_are_reported_when_drawn() {
        for init in
            [RandomNormal::new(-1.0), RandomNormal::new(f64::NAN), RandomNormal::new(1.0).mean(f64::INFINITY)]
        {
            assert!(init.init(&Shape::from([2]), DType::F32).is_err(), "{}", init.describe());
        }
        let message = RandomNormal::new(1.0).init(&Shape::from([2]), DType::I32).unwrap_err().to_string();
        assert_eq!(message, "random_normal: the variable has dtype i32, expected a float dtype");
    }

    #[test]
    fn numbers_are_those_of_the_current_generator() {
        let y = random::with(&Generator::seed(3), || {
            RandomNormal::new(2.0).mean(0.5).init(&Shape::from([5]), DType::F64).unwrap()
        });
        let expected = Generator::seed(3).normal([5], 0.5, 2.0, DType::F64).unwrap();
        assert_eq!(y.to_vec::<f64>().unwrap(), expected.to_vec::<f64>().unwrap());
    }
}
