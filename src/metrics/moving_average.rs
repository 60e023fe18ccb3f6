//! Exponential moving average.

use crate::autodiff::no_grad;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init;
use crate::module::Once;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::Metric;

/// Moving average without the bias of its start (Kingma & Ba 2015, section 3):
/// `hidden = decay hidden + (1 - decay) value`, `average = hidden / (1 - decay^counter)`.
///
/// State, none of it trained: `_counter` (i64), `_hidden` and `average` of the values' shape. `1 - decay^counter` is
/// taken in the values' dtype, as in the reference, so `f32` averages near decay 1 carry a relative error of about 1e-5
/// in their first steps.
///
/// ```
/// use couplet::prelude::*;
/// let average = ExponentialMovingAverage::new(0.5);
/// average.update(&Tensor::from(3.0f32))?;
/// average.update(&Tensor::from(6.0f32))?;
/// assert_eq!(average.value()?.item::<f32>()?, 5.0); // (0.5 * 1.5 + 0.5 * 6) / (1 - 0.25)
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(materialise = Self::counter)]
pub struct ExponentialMovingAverage {
    scope: Scope,
    decay: f64,
    #[module(name = "_counter")]
    counter: Once<Variable>,
    #[module(name = "_hidden")]
    hidden: Once<Variable>,
    average: Once<Variable>,
}

impl ExponentialMovingAverage {
    /// An average that keeps the share `decay` of the past at each step, in `[0, 1)`.
    pub fn new(decay: f64) -> Self {
        ExponentialMovingAverage {
            scope: Scope::of::<Self>(),
            decay,
            counter: Once::new(),
            hidden: Once::new(),
            average: Once::new(),
        }
    }

    /// The same average with another decay.
    #[must_use]
    pub fn decay(mut self, decay: f64) -> Self {
        self.decay = decay;
        self
    }

    fn started(&self) -> Result<(&Variable, &Variable)> {
        match (self.hidden.get(), self.average.get()) {
            (Some(hidden), Some(average)) => Ok((hidden, average)),
            _ => Err(Error::usage(
                "moving_average",
                "there was no value yet",
                "call update or initialize first",
            )),
        }
    }
}

#[scoped]
impl ExponentialMovingAverage {
    fn counter(&self) -> Result<&Variable> {
        self.counter.get_or_init(|| Variable::non_trainable("counter", &[], DType::I64, init::Zeros))
    }
}

/// `1 - decay^count` in the arithmetic of a dtype.
fn correction(decay: f64, count: i64, dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1.0 - decay.powf(count as f64),
        _ => f64::from(1.0 - (decay as f32).powf(count as f32)),
    }
}

#[scoped]
impl Metric for ExponentialMovingAverage {
    fn initialize(&self, value: &Tensor) -> Result<()> {
        if !value.dtype().is_float() {
            return Err(Error::dtype("moving_average", "the value", value.dtype(), "a float dtype"));
        }
        if !(0.0..1.0).contains(&self.decay) {
            return Err(Error::argument("moving_average", "decay", self.decay, "a number in [0, 1)"));
        }
        self.counter()?;
        let zeros = |name: &str| Variable::non_trainable(name, value.shape(), value.dtype(), init::Zeros);
        self.hidden.get_or_init(|| zeros("hidden"))?;
        self.average.get_or_init(|| zeros("average"))?;
        Ok(())
    }

    fn update(&self, value: &Tensor) -> Result<()> {
        self.initialize(value)?;
        let (counter, (hidden, average)) = (self.counter()?, self.started()?);
        no_grad(|| {
            let value = value.stop_gradient();
            let count = counter.peek().item::<i64>()?.saturating_add(1);
            let old = hidden.peek();
            let new = (&old - ((&old - &value)? * (1.0 - self.decay))?)?;
            let mean = (&new / correction(self.decay, count, new.dtype()))?;
            // All three are known to fit before the first is written.
            average.assign(&mean)?;
            hidden.assign(&new)?;
            counter.assign(&Tensor::from(count))
        })
    }

    fn value(&self) -> Result<Tensor> {
        Ok(self.started()?.1.value())
    }

    fn reset(&self) -> Result<()> {
        let (hidden, average) = self.started()?;
        let zeros = Tensor::zeros(hidden.shape().clone(), hidden.dtype())?;
        hidden.assign(&zeros)?;
        average.assign(&zeros)?;
        self.counter()?.assign(&Tensor::from(0i64))
    }
}
