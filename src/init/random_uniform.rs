//! Even spread over a range.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor};

use super::{Initializer, Seed, expect_number};

/// Numbers spread evenly over `minval <= y < maxval`; whole numbers for an integer dtype.
///
/// The default is 0 to 1, so always 0 for an integer dtype.
#[derive(Debug, Clone)]
pub struct RandomUniform {
    minval: f64,
    maxval: f64,
    seed: Seed,
}

impl RandomUniform {
    /// Numbers from `minval` up to but without `maxval`.
    pub fn new(minval: f64, maxval: f64) -> Self {
        RandomUniform { minval, maxval, seed: Seed::default() }
    }

    /// A seed of its own. Default: draw from the thread's current generator.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Seed::new(seed);
        self
    }
}

impl Default for RandomUniform {
    fn default() -> Self {
        Self::new(0.0, 1.0)
    }
}

impl Initializer for RandomUniform {
    fn init(&self, shape: &Shape, dtype: DType) -> Result<Tensor> {
        expect_number("random_uniform", dtype)?;
        let generator = self.seed.generator();
        if dtype.is_float() {
            return generator.uniform(shape.clone(), self.minval, self.maxval, dtype);
        }
        let bound = |argument, value: f64| {
            // Beyond 2^53 not every whole number is an f64.
            if value.fract() == 0.0 && value.abs() <= (1u64 << 53) as f64 {
                return Ok(value as i64);
            }
            Err(Error::argument(
                "random_uniform",
                argument,
                value,
                format!("a whole number for dtype {dtype}"),
            ))
        };
        generator.integers(shape.clone(), bound("minval", self.minval)?, bound("maxval", self.maxval)?, dtype)
    }

    fn describe(&self) -> String {
        format!("RandomUniform(minval={}, maxval={}{})", self.minval, self.maxval, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_lie_in_the_range_and_default_to_zero() {
        let y = RandomUniform::new(-2.0, 3.0).init(&Shape::from([100]), DType::I32).unwrap();
        let y = y.to_vec::<i32>().unwrap();
        assert!((-2..3).all(|v| y.contains(&v)) && y.iter().all(|v| (-2..3).contains(v)));
        let y = RandomUniform::default().init(&Shape::from([100]), DType::I64).unwrap();
        assert_eq!(y.to_vec::<i64>().unwrap(), [0; 100]);
    }

    #[test]
    fn bad_ranges_are_reported_when_drawn() {
        for (init, dtype) in [
            (RandomUniform::new(0.5, 2.0), DType::I32),
            (RandomUniform::new(2.0, 2.0), DType::I32),
            (RandomUniform::new(0.0, f64::NAN), DType::I32),
            (RandomUniform::new(2.0, 1.0), DType::F32),
        ] {
            assert!(init.init(&Shape::from([2]), dtype).is_err(), "{}", init.describe());
        }
    }
}
