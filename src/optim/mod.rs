//! Optimisers: they change variables, given one update for each.
//!
//! All follow one contract, that of [`Optimizer::apply`]. Hyper-parameters are numbers, variables that are read at each
//! step, or learning-rate [`schedule`]s.

mod adam;
mod adamw;
mod clip;
mod hyper;
mod momentum;
mod rmsprop;
pub mod schedule;
mod sgd;
mod slots;
mod step;
mod steps;
#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::module::Module;
use crate::ops::Gradient;
use crate::variable::Variable;

pub use adam::Adam;
pub use adamw::AdamW;
pub use clip::{clip_by_global_norm, clip_by_value, global_norm};
pub use hyper::HyperParameter;
pub use momentum::Momentum;
pub use rmsprop::RMSProp;
pub use schedule::Schedule;
pub use sgd::SGD;

/// A module that changes variables.
///
/// ```
/// use couplet::{GradientTape, Tensor, Variable, optim::{Optimizer, SGD}};
/// let w = Variable::from_tensor("w", Tensor::from([1.0f32, 2.0]));
/// let tape = GradientTape::new();
/// let loss = (w.value() * w.value())?.sum()?;
/// let gradients = tape.gradient(&loss, &[&w])?;
/// SGD::new(0.25).apply(&gradients, &[w.clone()])?;
/// assert_eq!(w.value().to_vec::<f32>()?, [0.5, 1.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
pub trait Optimizer: Module {
    /// Changes each parameter by its update, in place.
    ///
    /// A parameter without an update is left alone, slots included, and reported once through `log`; so is, silently, a
    /// frozen one. An update made of sparse rows changes these rows only, of the slots as well; rows that come several
    /// times are added up first. The slots of a parameter are found by its identity: parameters may come in any order,
    /// and some may be left out.
    ///
    /// # Errors
    /// The lists have different lengths or are empty, all updates are missing, a parameter comes twice or is not of a
    /// float dtype, an update has another shape or dtype than its parameter, a row number is out of range, or a
    /// hyper-parameter is not finite or out of its range. Nothing was changed then, not even a count of steps.
    fn apply(&self, updates: &[Option<Gradient>], parameters: &[Variable]) -> Result<()>;
}
