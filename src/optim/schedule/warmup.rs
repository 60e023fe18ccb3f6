//! Linear warmup.

use std::sync::Arc;

use super::{Schedule, progress};

/// A straight line from `start` to the first number of another schedule, which then follows (Goyal et al. 2017, section
/// 2.2): `start + (then(0) - start) * step / steps` for the first `steps` steps, `then(step - steps)` afterwards.
#[derive(Clone)]
pub struct LinearWarmup {
    steps: u64,
    then: Arc<dyn Schedule>,
    start: f64,
}

impl LinearWarmup {
    /// Warmup from 0 over `steps` steps.
    pub fn new(steps: u64, then: impl Schedule) -> Self {
        LinearWarmup { steps, then: Arc::new(then), start: 0.0 }
    }

    /// The number at the first step. Default: 0.
    #[must_use]
    pub fn start(mut self, start: f64) -> Self {
        self.start = start;
        self
    }
}

impl Schedule for LinearWarmup {
    fn value(&self, step: u64) -> f64 {
        match step.checked_sub(self.steps) {
            Some(after) => self.then.value(after),
            None => self.start + (self.then.value(0) - self.start) * progress(step, self.steps),
        }
    }

    fn describe(&self) -> String {
        format!("LinearWarmup(steps={}, then={}, start={})", self.steps, self.then.describe(), self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_meets_the_schedule_that_follows() {
        let rate = LinearWarmup::new(4, |step: u64| 9.0 - step as f64).start(1.0);
        assert_eq!([0, 1, 3, 4, 5].map(|step| rate.value(step)), [1.0, 3.0, 7.0, 9.0, 8.0]);
    }
}
