//! Dropout layer.

use crate::error::{Error, Result};
use crate::module::Forward;
use crate::random::{self, Generator};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, Visit, scoped};

/// In training keeps each element with probability `1 - rate`, scaled by `1 / (1 - rate)`, and sets the others to 0
/// (Srivastava et al. 2014); in evaluation returns its input.
///
/// The draw comes from the thread's current generator, or from a generator of the layer's own with
/// [`seed`](Dropout::seed). [`forward_t`](Forward::forward_t) says whether it is trained; plain `forward` is an error.
///
/// ```
/// use couplet::prelude::*;
/// let dropout = Dropout::new(0.25);
/// let x = Tensor::ones([2, 3], DType::F32)?;
/// assert_eq!(dropout.forward_t(&x, false)?.to_vec::<f32>()?, [1.0; 6]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(allow_empty_variables)]
pub struct Dropout {
    scope: Scope,
    #[module(name = "_rate")]
    rate: Rate,
    noise_shape: Option<Vec<Option<usize>>>,
    seed: Option<u64>,
    #[module(name = "_generator", hidden)]
    generator: Option<Generator>,
}

/// The probability of dropping: a number, or a variable that is read at each call and saved with the module.
#[derive(Debug, Clone, Visit)]
pub enum Rate {
    /// A number in `[0, 1)`.
    Number(f64),
    /// A float scalar in `[0, 1)`.
    Variable(Variable),
}

impl From<f64> for Rate {
    fn from(rate: f64) -> Self {
        Rate::Number(rate)
    }
}

impl From<Variable> for Rate {
    fn from(rate: Variable) -> Self {
        Rate::Variable(rate)
    }
}

impl From<&Variable> for Rate {
    fn from(rate: &Variable) -> Self {
        Rate::Variable(rate.clone())
    }
}

impl Rate {
    fn value(&self) -> Result<f64> {
        match self {
            Rate::Number(rate) => Ok(*rate),
            Rate::Variable(v) => v.peek().converted(crate::DType::F64)?.item::<f64>(),
        }
    }
}

impl Dropout {
    /// A layer that drops with probability `rate`, in `[0, 1)`; checked at the first call in training.
    pub fn new(rate: impl Into<Rate>) -> Self {
        Dropout {
            scope: Scope::of::<Self>(),
            rate: rate.into(),
            noise_shape: None,
            seed: None,
            generator: None,
        }
    }

    /// The shape of the mask, which broadcasts to the input; `None` entries are the input's dims. Default: the input's
    /// shape. `[Some(3), Some(1)]` drops whole rows of a `[3, 4]` input.
    #[must_use]
    pub fn noise_shape(mut self, shape: impl Into<Vec<Option<usize>>>) -> Self {
        self.noise_shape = Some(shape.into());
        self
    }

    /// A generator of the layer's own, saved with the module; consecutive calls still differ.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self.generator = Some(Generator::seed(seed));
        self
    }
}

#[scoped]
impl Forward for Dropout {
    /// # Errors
    /// Always: dropout must be told whether it is trained, by [`forward_t`](Forward::forward_t).
    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        let problem = "it behaves differently in training and in evaluation";
        Err(Error::usage("dropout", problem, "call forward_t(x, is_training)"))
    }

    /// # Errors
    /// In training: the rate is outside `[0, 1)`, `x` is not of a float dtype, or the noise shape does not broadcast.
    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        if !is_training {
            return Ok(x.clone());
        }
        let (rate, noise) = (self.rate.value()?, self.noise_shape.as_deref());
        match &self.generator {
            None => x.dropout(rate, noise, true),
            Some(generator) => random::with(generator, || x.dropout(rate, noise, true)),
        }
    }
}
