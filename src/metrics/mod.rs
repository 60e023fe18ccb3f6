//! Metrics: running statistics in variables that are not trained.

mod mean;
mod moving_average;
mod sum;

pub use mean::Mean;
pub use moving_average::ExponentialMovingAverage;
pub use sum::Sum;

use crate::error::Result;
use crate::module::Module;
use crate::tensor::Tensor;

/// A statistic over the values that it is updated with.
pub trait Metric: Module {
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
