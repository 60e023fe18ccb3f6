//! Adam with decoupled weight decay.

use std::sync::Arc;

use crate::error::Result;
use crate::kernels::update::Real;
use crate::module::List;
use crate::ops::Gradient;
use crate::scope::Scope;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::adam::Moments;
use super::slots::{Kind, Owners};
use super::step::{Repeats, Rule, Step};
use super::steps::Steps;
use super::{HyperParameter, Optimizer};

/// Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2), at step `t`, counted from 1:
///
/// ```text
/// m = beta1 * m + (1 - beta1) * g
/// v = beta2 * v + (1 - beta2) * g^2
/// p = p - learning_rate * ((m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay * p)
/// ```
///
/// The decay is not part of the moments. It falls on all parameters that get an update, on the touched rows only of one
/// whose update is sparse; [`decays`](AdamW::decays) leaves parameters out, often biases and scales:
///
/// ```
/// use couplet::{Variable, optim::AdamW};
/// let optimizer = AdamW::new(1e-3, 0.01).decays(|parameter: &Variable| parameter.shape().rank() > 1);
/// ```
#[derive(Module)]
#[module(materialise = Self::count)]
pub struct AdamW {
    scope: Scope,
    learning_rate: HyperParameter,
    weight_decay: HyperParameter,
    #[module(default = HyperParameter::from(0.9))]
    beta1: HyperParameter,
    #[module(default = HyperParameter::from(0.999))]
    beta2: HyperParameter,
    #[module(default = HyperParameter::from(1e-8))]
    epsilon: HyperParameter,
    #[module(skip)]
    decays: Option<Arc<dyn Fn(&Variable) -> bool + Send + Sync>>,
    #[module(hidden)]
    step: Steps,
    #[module(hidden)]
    m: List<Variable>,
    #[module(hidden)]
    v: List<Variable>,
    #[module(slot_owners)]
    owners: Owners,
}

impl AdamW {
    /// Adam's coefficients at a learning rate, with a weight decay, often 0.01.
    pub fn new(learning_rate: impl Into<HyperParameter>, weight_decay: impl Into<HyperParameter>) -> Self {
        AdamW {
            scope: Scope::of::<Self>(),
            learning_rate: learning_rate.into(),
            weight_decay: weight_decay.into(),
            beta1: 0.9.into(),
            beta2: 0.999.into(),
            epsilon: 1e-8.into(),
            decays: None,
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

    /// Which parameters decay. Default: all.
    #[must_use]
    pub fn decays(mut self, decays: impl Fn(&Variable) -> bool + Send + Sync + 'static) -> Self {
        self.decays = Some(Arc::new(decays));
        self
    }
}

#[scoped]
impl AdamW {
    /// The number of steps made.
    fn count(&self) -> Result<u64> {
        self.step.count()
    }
}

#[scoped]
impl Optimizer for AdamW {
    fn apply(&self, updates: &[Option<Gradient>], parameters: &[Variable]) -> Result<()> {
        let step = Step::new(updates, parameters, Repeats::Sum)?;
        let mut owners = self.owners.lock();
        let count = self.count()?;
        let moments = Moments {
            t: count + 1,
            learning_rate: self.learning_rate.within("learning_rate", count, ..)?,
            beta1: self.beta1.within("beta1", count, 0.0..1.0)?,
            beta2: self.beta2.within("beta2", count, 0.0..1.0)?,
            epsilon: self.epsilon.within("epsilon", count, 0.0..)?,
        };
        let weight_decay = self.weight_decay.within("weight_decay", count, 0.0..)?;
        // User code runs before anything is written.
        let decays: Vec<bool> =
            parameters.iter().map(|p| self.decays.as_ref().is_none_or(|decays| decays(p))).collect();
        let kinds = [Kind { name: "m", list: &self.m }, Kind { name: "v", list: &self.v }];
        let numbers = owners.numbers(parameters, &kinds)?;
        step.report_missing(&mut owners, self);
        self.step.advance(count)?;
        let with_slots = |position: usize| {
            let number = numbers[position];
            [&parameters[position], &self.m[number], &self.v[number]]
        };
        let rule = |position: usize| Decayed {
            moments,
            weight_decay: if decays[position] { weight_decay } else { 0.0 },
        };
        step.run(with_slots, rule)
    }
}

#[derive(Clone, Copy)]
struct Decayed {
    moments: Moments,
    weight_decay: f64,
}

impl Rule<3> for Decayed {
    fn rule<R: Real>(&self) -> impl Fn(R, [R; 3]) -> [R; 3] + Copy + Sync {
        let (learning_rate, weight_decay) = (R::of(self.moments.learning_rate), R::of(self.weight_decay));
        let direction = self.moments.direction::<R>();
        #[inline(always)]
        move |g, [p, m, v]| {
            let [direction, m, v] = direction(g, m, v);
            [p - learning_rate * (direction + weight_decay * p), m, v]
        }
    }
}
