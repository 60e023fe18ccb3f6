//! Random numbers whose spread depends on the number of inputs and outputs.

use std::fmt;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor};

use super::{Initializer, Seed, expect_float};

/// The standard deviation of a standard normal cut at two standard deviations.
const TRUNCATED_STDDEV: f64 = 0.879_625_661_034_239_8;

/// Random numbers of mean 0 and variance `scale / n`, where `n` counts inputs, outputs or both; float dtypes.
///
/// | shape        | inputs (`fan_in`) | outputs (`fan_out`) |
/// |--------------|-------------------|---------------------|
/// | `[]`         | 1                 | 1                   |
/// | `[n]`        | n                 | n                   |
/// | `[.., a, b]` | a times the rest  | b times the rest    |
///
/// `n` is at least 1. The default has scale 1, counts inputs and draws from the cut normal. For the weights of a
/// transposed convolution, `[.., outputs, inputs]`, the two modes change places.
///
/// | constructor        | scale | mode      | source                        |
/// |--------------------|-------|-----------|-------------------------------|
/// | `glorot_*`         | 1     | `FanAvg`  | Glorot & Bengio 2010          |
/// | `lecun_*`          | 1     | `FanIn`   | LeCun et al. 1998, section 4.6 |
/// | `he_*`             | 2     | `FanIn`   | He et al. 2015, section 2.2   |
#[derive(Debug, Clone)]
pub struct VarianceScaling {
    scale: f64,
    mode: Mode,
    distribution: Distribution,
    seed: Seed,
}

/// What the variance is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The number of inputs.
    FanIn,
    /// The number of outputs.
    FanOut,
    /// The mean of both.
    FanAvg,
}

/// The shape of the distribution; its variance is the same in all three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Normal, cut at two standard deviations and widened to the variance asked for.
    TruncatedNormal,
    /// Normal.
    Normal,
    /// Uniform.
    Uniform,
}

impl VarianceScaling {
    /// Variance `scale / fan_in`, from the cut normal.
    pub fn new(scale: f64) -> Self {
        Self { scale, mode: Mode::FanIn, distribution: Distribution::TruncatedNormal, seed: Seed::default() }
    }

    /// Uniform with variance `1 / fan_avg`.
    pub fn glorot_uniform() -> Self {
        Self::glorot_normal().distribution(Distribution::Uniform)
    }

    /// Cut normal with variance `1 / fan_avg`.
    pub fn glorot_normal() -> Self {
        Self::new(1.0).mode(Mode::FanAvg)
    }

    /// Uniform with variance `1 / fan_in`.
    pub fn lecun_uniform() -> Self {
        Self::lecun_normal().distribution(Distribution::Uniform)
    }

    /// Cut normal with variance `1 / fan_in`.
    pub fn lecun_normal() -> Self {
        Self::new(1.0)
    }

    /// Uniform with variance `2 / fan_in`.
    pub fn he_uniform() -> Self {
        Self::he_normal().distribution(Distribution::Uniform)
    }

    /// Cut normal with variance `2 / fan_in`.
    pub fn he_normal() -> Self {
        Self::new(2.0)
    }

    /// What the variance is divided by. Default: the number of inputs.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The shape of the distribution. Default: the cut normal.
    #[must_use]
    pub fn distribution(mut self, distribution: Distribution) -> Self {
        self.distribution = distribution;
        self
    }

    /// A seed of its own. Default: draw from the thread's current generator.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Seed::new(seed);
        self
    }
}

impl Default for VarianceScaling {
    fn default() -> Self {
        Self::new(1.0)
    }
}

impl Initializer for VarianceScaling {
    fn init(&self, shape: &Shape, dtype: DType) -> Result<Tensor> {
        expect_float("variance_scaling", dtype)?;
        if !(self.scale > 0.0 && self.scale.is_finite()) {
            return Err(Error::argument("variance_scaling", "scale", self.scale, "a finite number above 0"));
        }
        let (fan_in, fan_out) = fans(shape);
        let n = match self.mode {
            Mode::FanIn => fan_in,
            Mode::FanOut => fan_out,
            Mode::FanAvg => (fan_in + fan_out) / 2.0,
        };
        let variance = self.scale / n.max(1.0);
        let (generator, shape) = (self.seed.generator(), shape.clone());
        match self.distribution {
            Distribution::TruncatedNormal => {
                generator.truncated_normal(shape, 0.0, variance.sqrt() / TRUNCATED_STDDEV, dtype)
            }
            Distribution::Normal => generator.normal(shape, 0.0, variance.sqrt(), dtype),
            // The variance of a uniform on (-limit, limit) is limit^2 / 3.
            Distribution::Uniform => {
                let limit = (3.0 * variance).sqrt();
                generator.uniform(shape, -limit, limit, dtype)
            }
        }
    }

    fn describe(&self) -> String {
        let Self { scale, mode, distribution, seed } = self;
        format!("VarianceScaling(scale={scale}, mode='{mode}', distribution='{distribution}'{seed})")
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::FanIn => "fan_in",
            Mode::FanOut => "fan_out",
            Mode::FanAvg => "fan_avg",
        })
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Distribution::TruncatedNormal => "truncated_normal",
            Distribution::Normal => "normal",
            Distribution::Uniform => "uniform",
        })
    }
}

/// Inputs and outputs of weights of a shape.
fn fans(shape: &Shape) -> (f64, f64) {
    match shape.dims() {
        [] => (1.0, 1.0),
        [n] => (*n as f64, *n as f64),
        [rest @ .., a, b] => {
            let rest: f64 = rest.iter().map(|&d| d as f64).product();
            (*a as f64 * rest, *b as f64 * rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{self, Generator};

    #[test]
    fn inputs_and_outputs_are_counted_over_the_receptive_field() {
        let shapes: [(&[usize], (f64, f64)); 5] = [
            (&[], (1.0, 1.0)),
            (&[4], (4.0, 4.0)),
            (&[3, 5], (3.0, 5.0)),
            (&[3, 5, 7], (15.0, 21.0)),
            (&[3, 3, 5, 7], (45.0, 63.0)),
        ];
        for (shape, expected) in shapes {
            assert_eq!(fans(&Shape::from(shape)), expected, "{shape:?}");
        }
    }

    fn draw(init: &VarianceScaling, shape: &[usize]) -> Vec<f64> {
        let y = random::with(&Generator::seed(3), || init.init(&Shape::from(shape), DType::F64).unwrap());
        y.to_vec::<f64>().unwrap()
    }

    fn differ_least(y: &[f64], expected: &Tensor) -> bool {
        y.iter().zip(expected.to_vec::<f64>().unwrap()).all(|(y, expected)| (y - expected).abs() < 1e-15)
    }

    #[test]
    fn spread_is_that_of_the_distribution_with_the_variance_asked_for() {
        let shape = [3, 3, 10, 40];
        let generator = || Generator::seed(3);
        let normal = draw(&VarianceScaling::new(2.0).distribution(Distribution::Normal), &shape);
        let expected = generator().normal(shape, 0.0, (2.0f64 / 90.0).sqrt(), DType::F64).unwrap();
        assert!(differ_least(&normal, &expected));
        let uniform = draw(&VarianceScaling::glorot_uniform(), &shape);
        let limit = (3.0f64 / 225.0).sqrt();
        let expected = generator().uniform(shape, -limit, limit, DType::F64).unwrap();
        assert!(differ_least(&uniform, &expected));
        let cut = draw(&VarianceScaling::he_normal().mode(Mode::FanOut), &shape);
        let stddev = (cut.iter().map(|v| v * v).sum::<f64>() / cut.len() as f64).sqrt();
        // One deviation of the estimate is 0.07454 / sqrt(2 * 3600) = 0.0009.
        assert!((stddev - (2.0f64 / 360.0).sqrt()).abs() < 0.003, "{stddev}");
    }

    #[test]
    fn a_scale_of_zero_or_less_is_refused_when_drawn() {
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let e = VarianceScaling::new(scale).init(&Shape::from([2, 2]), DType::F32).unwrap_err();
            assert!(e.to_string().contains("scale"), "{e}");
        }
    }
}
