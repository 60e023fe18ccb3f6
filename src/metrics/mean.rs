//! Running mean.

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

/// The mean of all values since the last reset, element by element: batches are not reduced.
///
/// State, none of it trained: `count` (i64) and `sum` of the values' shape. Before the first value, but after
/// [`initialize`](Metric::initialize), the mean is NaN.
///
/// ```
/// use couplet::{Tensor, metrics::{Mean, Metric}};
/// let mean = Mean::new();
/// mean.update(&Tensor::from([2.0f32, 3.0]))?;
/// mean.update(&Tensor::from([4.0f32, 5.0]))?;
/// assert_eq!(mean.value()?.to_vec::<f32>()?, [3.0, 4.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(materialise = Self::counter)]
pub struct Mean {
    scope: Scope,
    count: Once<Variable>,
    sum: Once<Variable>,
}

impl Default for Mean {
    fn default() -> Self {
        Self::new()
    }
}

impl Mean {
    /// A mean of nothing yet.
    pub fn new() -> Self {
        Mean { scope: Scope::of::<Self>(), count: Once::new(), sum: Once::new() }
    }

    fn started(&self) -> Result<&Variable> {
        self.sum
            .get()
            .ok_or_else(|| Error::usage("mean", "there was no value yet", "call update or initialize first"))
    }
}

#[scoped]
impl Mean {
    fn counter(&self) -> Result<&Variable> {
        self.count.get_or_init(|| Variable::non_trainable("count", &[], DType::I64, init::Zeros))
    }
}

#[scoped]
impl Metric for Mean {
    /// # Errors
    /// The values are not of a float dtype: their mean would be cut off.
    fn initialize(&self, value: &Tensor) -> Result<()> {
        if !value.dtype().is_float() {
            return Err(Error::dtype(
                "mean",
                "the value",
                value.dtype(),
                "a float dtype; convert it with cast",
            ));
        }
        self.counter()?;
        let zeros = || Variable::non_trainable("sum", value.shape(), value.dtype(), init::Zeros);
        self.sum.get_or_init(zeros).map(drop)
    }

    fn update(&self, value: &Tensor) -> Result<()> {
        self.initialize(value)?;
        let count = self.counter()?;
        no_grad(|| {
            self.started()?.assign_add(&value.stop_gradient())?;
            count.assign_add(&Tensor::from(1i64))
        })
    }

    fn value(&self) -> Result<Tensor> {
        let sum = self.started()?.value();
        let count = self.counter()?.value().cast(sum.dtype())?;
        sum / count
    }

    fn reset(&self) -> Result<()> {
        let sum = self.started()?;
        sum.assign(&Tensor::zeros(sum.shape().clone(), sum.dtype())?)?;
        self.counter()?.assign(&Tensor::from(0i64))
    }
}
