//! Running sum.

use crate::autodiff::no_grad;
use crate::error::{Error, Result};
use crate::init;
use crate::module::Once;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::Metric;

/// The sum of all values since the last reset, element by element: batches are not reduced.
///
/// ```
/// use couplet::{Tensor, metrics::{Metric, Sum}};
/// let sum = Sum::new();
/// sum.update(&Tensor::from([2.0f32, 3.0]))?;
/// sum.update(&Tensor::from([4.0f32, 5.0]))?;
/// assert_eq!(sum.value()?.to_vec::<f32>()?, [6.0, 8.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct Sum {
    scope: Scope,
    sum: Once<Variable>,
}

impl Default for Sum {
    fn default() -> Self {
        Self::new()
    }
}

impl Sum {
    /// A sum of nothing yet.
    pub fn new() -> Self {
        Sum { scope: Scope::of::<Self>(), sum: Once::new() }
    }

    fn started(&self) -> Result<&Variable> {
        self.sum
            .get()
            .ok_or_else(|| Error::usage("sum", "there was no value yet", "call update or initialize first"))
    }
}

#[scoped]
impl Metric for Sum {
    fn initialize(&self, value: &Tensor) -> Result<()> {
        let zeros = || Variable::non_trainable("sum", value.shape(), value.dtype(), init::Zeros);
        self.sum.get_or_init(zeros).map(drop)
    }

    fn update(&self, value: &Tensor) -> Result<()> {
        self.initialize(value)?;
        no_grad(|| self.started()?.assign_add(&value.stop_gradient()))
    }

    fn value(&self) -> Result<Tensor> {
        Ok(self.started()?.value())
    }

    fn reset(&self) -> Result<()> {
        let sum = self.started()?;
        sum.assign(&Tensor::zeros(sum.shape().clone(), sum.dtype())?)
    }
}
