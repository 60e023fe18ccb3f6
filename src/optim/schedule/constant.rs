//! The same number at every step.

use super::Schedule;

/// The same number at every step, for [`LinearWarmup`](super::LinearWarmup) and the like.
#[derive(Debug, Clone, Copy)]
pub struct Constant {
    value: f64,
}

impl Constant {
    /// `value` at every step.
    pub fn new(value: f64) -> Self {
        Constant { value }
    }
}

impl Schedule for Constant {
    fn value(&self, _: u64) -> f64 {
        self.value
    }

    fn describe(&self) -> String {
        format!("Constant({})", self.value)
    }
}
