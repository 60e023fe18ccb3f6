//! Gradient descent with momentum.

use crate::error::Result;
use crate::kernels::update::Real;
use crate::module::List;
use crate::ops::Gradient;
use crate::scope::Scope;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::slots::{Kind, Owners};
use super::step::{Repeats, Rule, Step};
use super::steps::Steps;
use super::{HyperParameter, Optimizer};

/// Gradient descent with momentum (Polyak 1964), plain or Nesterov's (Sutskever et al. 2013):
///
/// ```text
/// m = momentum * m + g
/// p = p - learning_rate * m                      plain
/// p = p - learning_rate * (momentum * m + g)     Nesterov's
/// ```
///
/// `m` starts at 0, and does not contain the learning rate.
#[derive(Module)]
#[module(materialise = Self::count)]
pub struct Momentum {
    scope: Scope,
    learning_rate: HyperParameter,
    momentum: HyperParameter,
    #[module(default = false)]
    use_nesterov: bool,
    #[module(hidden)]
    accumulated_momentum: List<Variable>,
    #[module(hidden)]
    step: Steps,
    #[module(slot_owners)]
    owners: Owners,
}

impl Momentum {
    /// Plain momentum, often 0.9.
    pub fn new(learning_rate: impl Into<HyperParameter>, momentum: impl Into<HyperParameter>) -> Self {
        Momentum {
            scope: Scope::of::<Self>(),
            learning_rate: learning_rate.into(),
            momentum: momentum.into(),
            use_nesterov: false,
            accumulated_momentum: List::new(),
            step: Steps::default(),
            owners: Owners::default(),
        }
    }

    /// Whether to use Nesterov's form. Default: no.
    #[must_use]
    pub fn use_nesterov(mut self, use_nesterov: bool) -> Self {
        self.use_nesterov = use_nesterov;
        self
    }

    /// Whether steps are counted.
    fn counts(&self) -> bool {
        self.learning_rate.is_schedule() || self.momentum.is_schedule()
    }
}

#[scoped]
impl Momentum {
    /// The number of steps made, if it is counted.
    fn count(&self) -> Result<u64> {
        if self.counts() { self.step.count() } else { Ok(0) }
    }
}

#[scoped]
impl Optimizer for Momentum {
    fn apply(&self, updates: &[Option<Gradient>], parameters: &[Variable]) -> Result<()> {
        let step = Step::new(updates, parameters, Repeats::Sum)?;
        let mut owners = self.owners.lock();
        let count = self.count()?;
        let rule = Heavy {
            learning_rate: self.learning_rate.within("learning_rate", count, ..)?,
            momentum: self.momentum.within("momentum", count, ..)?,
            nesterov: self.use_nesterov,
        };
        let m = &self.accumulated_momentum;
        let numbers = owners.numbers(parameters, &[Kind { name: "accumulated_momentum", list: m }])?;
        step.report_missing(&mut owners, self);
        if self.counts() {
            self.step.advance(count)?;
        }
        step.run(|position| [&parameters[position], &m[numbers[position]]], |_| rule)
    }
}

#[derive(Clone, Copy)]
struct Heavy {
    learning_rate: f64,
    momentum: f64,
    nesterov: bool,
}

impl Rule<2> for Heavy {
    fn rule<R: Real>(&self) -> impl Fn(R, [R; 2]) -> [R; 2] + Copy + Sync {
        let (learning_rate, momentum) = (R::of(self.learning_rate), R::of(self.momentum));
        let nesterov = self.nesterov;
        #[inline(always)]
        move |g, [p, m]| {
            let m = momentum * m + g;
            let direction = if nesterov { momentum * m + g } else { m };
            [p - learning_rate * direction, m]
        }
    }
}
