//! RMSProp.

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

/// RMSProp: steps divided by a running root mean square of the gradients (Hinton 2012, lecture 6e):
///
/// ```text
/// ms  = decay * ms + (1 - decay) * g^2
/// mg  = decay * mg + (1 - decay) * g             centred only
/// d   = ms + epsilon     or     ms - mg^2 + epsilon
/// mom = momentum * mom + learning_rate * g / sqrt(d)
/// p   = p - mom
/// ```
///
/// All slots start at 0. The centred form divides by the standard deviation instead (Graves 2013, section 2.1).
#[derive(Module)]
#[module(materialise = Self::count)]
pub struct RMSProp {
    scope: Scope,
    learning_rate: HyperParameter,
    #[module(default = HyperParameter::from(0.9))]
    decay: HyperParameter,
    #[module(default = HyperParameter::from(0.0))]
    momentum: HyperParameter,
    #[module(default = HyperParameter::from(1e-10))]
    epsilon: HyperParameter,
    #[module(default = false)]
    centered: bool,
    #[module(hidden)]
    mom: List<Variable>,
    #[module(hidden)]
    ms: List<Variable>,
    #[module(hidden)]
    mg: List<Variable>,
    #[module(hidden)]
    step: Steps,
    #[module(slot_owners)]
    owners: Owners,
}

impl RMSProp {
    /// The plain form without momentum.
    pub fn new(learning_rate: impl Into<HyperParameter>) -> Self {
        RMSProp {
            scope: Scope::of::<Self>(),
            learning_rate: learning_rate.into(),
            decay: 0.9.into(),
            momentum: 0.0.into(),
            epsilon: 1e-10.into(),
            centered: false,
            mom: List::new(),
            ms: List::new(),
            mg: List::new(),
            step: Steps::default(),
            owners: Owners::default(),
        }
    }

    /// How much of the running means is kept at each step, in `[0, 1]`. Default: 0.9.
    #[must_use]
    pub fn decay(mut self, decay: impl Into<HyperParameter>) -> Self {
        self.decay = decay.into();
        self
    }

    /// How much of the last step is kept. Default: 0.
    #[must_use]
    pub fn momentum(mut self, momentum: impl Into<HyperParameter>) -> Self {
        self.momentum = momentum.into();
        self
    }

    /// Added to the mean square, inside the root; 0 or more. Default: 1e-10.
    #[must_use]
    pub fn epsilon(mut self, epsilon: impl Into<HyperParameter>) -> Self {
        self.epsilon = epsilon.into();
        self
    }

    /// Whether to divide by the standard deviation. Default: no.
    #[must_use]
    pub fn centered(mut self, centered: bool) -> Self {
        self.centered = centered;
        self
    }

    /// Whether steps are counted.
    fn counts(&self) -> bool {
        [&self.learning_rate, &self.decay, &self.momentum, &self.epsilon].iter().any(|h| h.is_schedule())
    }
}

#[scoped]
impl RMSProp {
    /// The number of steps made, if it is counted.
    fn count(&self) -> Result<u64> {
        if self.counts() { self.step.count() } else { Ok(0) }
    }
}

#[scoped]
impl Optimizer for RMSProp {
    fn apply(&self, updates: &[Option<Gradient>], parameters: &[Variable]) -> Result<()> {
        let step = Step::new(updates, parameters, Repeats::Sum)?;
        let mut owners = self.owners.lock();
        let count = self.count()?;
        let rule = MeanSquare {
            learning_rate: self.learning_rate.within("learning_rate", count, ..)?,
            decay: self.decay.within("decay", count, 0.0..=1.0)?,
            momentum: self.momentum.within("momentum", count, ..)?,
            epsilon: self.epsilon.within("epsilon", count, 0.0..)?,
        };
        let kinds = [("momentum", &self.mom), ("rms", &self.ms), ("mg", &self.mg)];
        let kinds = kinds.map(|(name, list)| Kind { name, list });
        let numbers = owners.numbers(parameters, if self.centered { &kinds } else { &kinds[..2] })?;
        step.report_missing(&mut owners, self);
        if self.counts() {
            self.step.advance(count)?;
        }
        let plain = |position: usize| {
            let number = numbers[position];
            [&parameters[position], &self.mom[number], &self.ms[number]]
        };
        if !self.centered {
            return step.run(plain, |_| rule);
        }
        let centered = |position| {
            let [p, mom, ms] = plain(position);
            [p, mom, ms, &self.mg[numbers[position]]]
        };
        step.run(centered, |_| rule)
    }
}

#[derive(Clone, Copy)]
struct MeanSquare {
    learning_rate: f64,
    decay: f64,
    momentum: f64,
    epsilon: f64,
}

impl Rule<3> for MeanSquare {
    fn rule<R: Real>(&self) -> impl Fn(R, [R; 3]) -> [R; 3] + Copy + Sync {
        let (learning_rate, decay) = (R::of(self.learning_rate), R::of(self.decay));
        let (momentum, epsilon) = (R::of(self.momentum), R::of(self.epsilon));
        #[inline(always)]
        move |g, [p, mom, ms]| {
            let ms = decay * ms + (R::one() - decay) * g * g;
            let mom = momentum * mom + learning_rate * g / (ms + epsilon).sqrt();
            [p - mom, mom, ms]
        }
    }
}

impl Rule<4> for MeanSquare {
    fn rule<R: Real>(&self) -> impl Fn(R, [R; 4]) -> [R; 4] + Copy + Sync {
        let (learning_rate, decay) = (R::of(self.learning_rate), R::of(self.decay));
        let (momentum, epsilon) = (R::of(self.momentum), R::of(self.epsilon));
        #[inline(always)]
        move |g, [p, mom, ms, mg]| {
            let ms = decay * ms + (R::one() - decay) * g * g;
            let mg = decay * mg + (R::one() - decay) * g;
            let mom = momentum * mom + learning_rate * g / (ms - mg * mg + epsilon).sqrt();
            [p - mom, mom, ms, mg]
        }
    }
}
