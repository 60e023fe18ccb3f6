//! Learning rates that change from step to step.

/// A number that depends on the step, counted from 0.
///
/// Closures `|step: u64| -> f64` are schedules.
pub trait Schedule: Send + Sync + 'static {
    /// The number at a step.
    fn value(&self, step: u64) -> f64;

    /// The printed form, as in `CosineDecay(initial=0.1, decay_steps=1000)`.
    fn describe(&self) -> String {
        "<closure>".to_owned()
    }
}

impl<F: Fn(u64) -> f64 + Send + Sync + 'static> Schedule for F {
    fn value(&self, step: u64) -> f64 {
        self(step)
    }
}
