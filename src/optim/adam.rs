//! Adam.

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

/// Adam (Kingma & Ba 2015, algorithm 1), at step `t`, counted from 1:
///
/// ```text
/// m = beta1 * m + (1 - beta1) * g
/// v = beta2 * v + (1 - beta2) * g^2
/// p = p - learning_rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
/// ```
///
/// `m` and `v` start at 0. The step counts calls: it is the same for a parameter whose first update comes late. Half
/// floats are computed in f32, where the reference's coefficients round to 1 and its result is NaN.
#[derive(Module)]
#[module(materialise = Self::count)]
pub struct Adam {
    scope: Scope,
    #[module(default = HyperParameter::from(0.001))]
    learning_rate: HyperParameter,
    #[module(default = HyperParameter::from(0.9))]
    beta1: HyperParameter,
    #[module(default = HyperParameter::from(0.999))]
    beta2: HyperParameter,
    #[module(default = HyperParameter::from(1e-8))]
    epsilon: HyperParameter,
    #[module(hidden)]
    step: Steps,
    #[module(hidden)]
    m: List<Variable>,
    #[module(hidden)]
    v: List<Variable>,
    #[module(slot_owners)]
    owners: Owners,
}

impl Adam {
    /// The paper's coefficients at a learning rate.
    pub fn new(learning_rate: impl Into<HyperParameter>) -> Self {
        Adam {
            scope: Scope::of::<Self>(),
            learning_rate: learning_rate.into(),
            beta1: 0.9.into(),
            beta2: 0.999.into(),
            epsilon: 1e-8.into(),
            step: Steps::default(),
            m: List::new(),
            v: List::new(),
            owners: Owners::default(),
        }
    }

    /// How much of the mean is kept at each step, in `[0, 1)`. Default: 0.9.
    #[must_use]
    pub fn beta1(mut self, beta1: impl Into<HyperParameter>) -> Self {
        self.beta1 = beta1.into();
        self
    }

    /// How much of the mean square is kept at each step, in `[0, 1)`. Default: 0.999.
    #[must_use]
    pub fn beta2(mut self, beta2: impl Into<HyperParameter>) -> Self {
        self.beta2 = beta2.into();
        self
    }

    /// Added to the root of the mean square; 0 or more. Default: 1e-8.
    #[must_use]
    pub fn epsilon(mut self, epsilon: impl Into<HyperParameter>) -> Self {
        self.epsilon = epsilon.into();
        self
    }
}

impl Default for Adam {
    /// Learning rate 0.001.
    fn default() -> Self {
        Adam::new(0.001)
    }
}

#[scoped]
impl Adam {
    /// The number of steps made.
    fn count(&self) -> Result<u64> {
        self.step.count()
    }
}

#[scoped]
impl Optimizer for Adam {
    fn apply(&self, updates: &[Option<Gradient>], parameters: &[Variable]) -> Result<()> {
        let step = Step::new(updates, parameters, Repeats::Sum)?;
        let mut owners = self.owners.lock();
        let count = self.count()?;
        let rule = Moments {
            t: count + 1,
            learning_rate: self.learning_rate.within("learning_rate", count, ..)?,
            beta1: self.beta1.within("beta1", count, 0.0..1.0)?,
            beta2: self.beta2.within("beta2", count, 0.0..1.0)?,
            epsilon: self.epsilon.within("epsilon", count, 0.0..)?,
        };
        let kinds = [Kind { name: "m", list: &self.m }, Kind { name: "v", list: &self.v }];
        let numbers = owners.numbers(parameters, &kinds)?;
        step.report_missing(&mut owners, self);
        self.step.advance(count)?;
        let with_slots = |position: usize| {
            let number = numbers[position];
            [&parameters[position], &self.m[number], &self.v[number]]
        };
        step.run(with_slots, |_| rule)
    }
}

/// The numbers of step `t`, from 1.
#[derive(Clone, Copy)]
pub(super) struct Moments {
    pub(super) t: u64,
    pub(super) learning_rate: f64,
    pub(super) beta1: f64,
    pub(super) beta2: f64,
    pub(super) epsilon: f64,
}

impl Moments {
    /// The function of `g`, `m` and `v` that gives the direction of descent and the next `m` and `v`.
    pub(super) fn direction<R: Real>(&self) -> impl Fn(R, R, R) -> [R; 3] + Copy + Sync {
        let [beta1, beta2, epsilon] = [self.beta1, self.beta2, self.epsilon].map(R::of);
        // In f32, 1 - beta^t would lose its digits for a beta near 1.
        let correction = |beta: R| R::of(1.0 - beta.wide().powf(self.t as f64));
        let (correction1, correction2) = (correction(beta1), correction(beta2));
        #[inline(always)]
        move |g, m, v| {
            let m = beta1 * m + (R::one() - beta1) * g;
            let v = beta2 * v + (R::one() - beta2) * g * g;
            [(m / correction1) / ((v / correction2).sqrt() + epsilon), m, v]
        }
    }
}

impl Rule<3> for Moments {
    fn rule<R: Real>(&self) -> impl Fn(R, [R; 3]) -> [R; 3] + Copy + Sync {
        let (learning_rate, direction) = (R::of(self.learning_rate), self.direction::<R>());
        #[inline(always)]
        move |g, [p, m, v]| {
            let [direction, m, v] = direction(g, m, v);
            [p - learning_rate * direction, m, v]
        }
    }
}
