//! Learning rates that change from step to step.
//!
//! A schedule is a function of the step, counted from 0, and keeps no state: the optimiser counts its steps, and a
//! checkpoint saves the count. Any hyper-parameter can be a schedule.
//!
//! ```
//! use couplet::optim::{SGD, Schedule, schedule::{CosineDecay, LinearWarmup}};
//! let rate = LinearWarmup::new(10, CosineDecay::new(0.1, 90));
//! assert_eq!([rate.value(0), rate.value(5), rate.value(10), rate.value(100)], [0.0, 0.05, 0.1, 0.0]);
//! let optimizer = SGD::new(rate);
//! ```

mod constant;
mod cosine;
mod exponential;
mod one_cycle;
mod piecewise;
mod polynomial;
mod restarts;
mod warmup;

use std::sync::Arc;

pub use constant::Constant;
pub use cosine::CosineDecay;
pub use exponential::ExponentialDecay;
pub use one_cycle::OneCycle;
pub use piecewise::PiecewiseConstant;
pub use polynomial::PolynomialDecay;
pub use restarts::CosineRestarts;
pub use warmup::LinearWarmup;

/// A number that depends on the step, counted from 0.
///
/// Closures are schedules: `SGD::new(|step: u64| 0.1 / (1.0 + step as f64))`.
pub trait Schedule: Send + Sync + 'static {
    /// The number at a step. An optimiser refuses one that is not finite.
    fn value(&self, step: u64) -> f64;

    /// The printed form, as in `CosineDecay(initial=0.1, decay_steps=90)`.
    fn describe(&self) -> String {
        "<closure>".to_owned()
    }
}

impl<F: Fn(u64) -> f64 + Send + Sync + 'static> Schedule for F {
    fn value(&self, step: u64) -> f64 {
        self(step)
    }
}

impl<S: Schedule + ?Sized> Schedule for Arc<S> {
    fn value(&self, step: u64) -> f64 {
        (**self).value(step)
    }

    fn describe(&self) -> String {
        (**self).describe()
    }
}

/// The share of `steps` that lies behind, at most 1; of 0 steps, all does.
fn progress(step: u64, steps: u64) -> f64 {
    if step >= steps { 1.0 } else { step as f64 / steps as f64 }
}

/// Half a cosine wave, from `from` at progress 0 to `to` at progress 1.
fn half_wave(from: f64, to: f64, progress: f64) -> f64 {
    // The ends are met exactly.
    if progress >= 1.0 {
        return to;
    }
    to + (from - to) * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schedule_stays_finite_without_steps_and_far_beyond_the_last() {
        let schedules: Vec<Box<dyn Schedule>> = vec![
            Box::new(Constant::new(0.1)),
            Box::new(PiecewiseConstant::new(0.1)),
            Box::new(ExponentialDecay::new(0.1, 0, 0.5)),
            Box::new(CosineDecay::new(0.1, 0)),
            Box::new(CosineRestarts::new(0.1, 0)),
            Box::new(PolynomialDecay::new(0.1, 0, 0.01)),
            Box::new(LinearWarmup::new(0, Constant::new(0.1))),
            Box::new(OneCycle::new(0.1, 0)),
            Box::new(OneCycle::new(0.1, 1)),
        ];
        for schedule in schedules {
            for step in [0, 1, 2, 1 << 40, u64::MAX] {
                assert!(schedule.value(step).is_finite(), "{} at {step}", schedule.describe());
            }
        }
    }

    #[test]
    fn printed_forms_show_what_differs_from_the_default() {
        let printed = [
            PiecewiseConstant::new(0.1).from_step(10, 0.01).describe(),
            ExponentialDecay::new(0.1, 10, 0.5).staircase(true).describe(),
            CosineDecay::new(0.1, 10).alpha(0.1).describe(),
            LinearWarmup::new(5, Constant::new(0.1)).describe(),
        ];
        let expected = [
            "PiecewiseConstant(0.1, 0.01 from 10)",
            "ExponentialDecay(initial=0.1, decay_steps=10, decay_rate=0.5, staircase=true)",
            "CosineDecay(initial=0.1, decay_steps=10, alpha=0.1)",
            "LinearWarmup(steps=5, then=Constant(0.1), start=0)",
        ];
        assert_eq!(printed, expected);
    }
}
