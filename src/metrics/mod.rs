//! Metrics: running statistics in variables that are not trained.

mod accuracy;
mod boxed;
mod confusion_matrix;
mod mean;
mod moving_average;
mod scores;
mod sum;
mod top_k;

pub use accuracy::Accuracy;
pub use boxed::DynMetric;
pub use confusion_matrix::ConfusionMatrix;
pub use mean::Mean;
pub use moving_average::ExponentialMovingAverage;
pub use sum::Sum;
pub use top_k::TopK;

use crate::error::Result;
use crate::module::Module;
use crate::tensor::Tensor;

/// A statistic over the values that it is updated with.
pub trait Metric: Module + DynMetric {
    /// Makes the state for values of this shape and dtype; the numbers do not count.
    ///
    /// # Errors
    /// The state exists with another shape or dtype.
    fn initialize(&self, value: &Tensor) -> Result<()>;

    /// Takes one more value into account.
    ///
    /// # Errors
    /// The value has not the shape and dtype of the first one.
    fn update(&self, value: &Tensor) -> Result<()>;

    /// The statistic of all values since the last reset.
    ///
    /// # Errors
    /// There was no value yet.
    fn value(&self) -> Result<Tensor>;

    /// Forgets all values.
    ///
    /// # Errors
    /// There was no value yet.
    fn reset(&self) -> Result<()>;
}
