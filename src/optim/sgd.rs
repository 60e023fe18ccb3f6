//! Stochastic gradient descent.

use crate::error::Result;
use crate::kernels::update::Real;

use crate::ops::Gradient;
use crate::scope::Scope;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::slots::Owners;
use super::step::{Repeats, Rule, Step};
use super::steps::Steps;
use super::{HyperParameter, Optimizer};

/// Stochastic gradient descent: `p = p - learning_rate * g`.
///
/// It keeps nothing, except a count of steps if the learning rate is a schedule. Sparse rows that come several times are
/// applied one after the other.
#[derive(Module)]
#[module(materialise = Self::count)]
pub struct SGD {
    scope: Scope,
    learning_rate: HyperParameter,
    #[module(hidden)]
    step: Steps,
    #[module(slot_owners)]
    owners: Owners,
}

impl SGD {
    /// Descent at a learning rate.
    pub fn new(learning_rate: impl Into<HyperParameter>) -> Self {
        SGD {
            scope: Scope::of::<Self>(),
            learning_rate: learning_rate.into(),
            step: Steps::default(),
            owners: Owners::default(),
        }
    }
}

#[scoped]
impl SGD {
    /// The number of steps made, if it is counted.
    fn count(&self) -> Result<u64> {
        if self.learning_rate.is_schedule() { self.step.count() } else { Ok(0) }
    }
}

#[scoped]
impl Optimizer for SGD {
    fn apply(&self, updates: &[Option<Gradient>], parameters: &[Variable]) -> Result<()> {
        let step = Step::new(updates, parameters, Repeats::Apply)?;
        let mut owners = self.owners.lock();
        let count = self.count()?;
        let rule = Descent { learning_rate: self.learning_rate.within("learning_rate", count, ..)? };
        step.report_missing(&mut owners, self);
        if self.learning_rate.is_schedule() {
            self.step.advance(count)?;
        }
        step.run(|position| [&parameters[position]], |_| rule)
    }
}

#[derive(Clone, Copy)]
struct Descent {
    learning_rate: f64,
}

impl Rule<1> for Descent {
    fn rule<R: Real>(&self) -> impl Fn(R, [R; 1]) -> [R; 1] + Copy + Sync {
        let learning_rate = R::of(self.learning_rate);
        #[inline(always)]
        move |g, [p]| [p - learning_rate * g]
    }
}
