//! Exponential decay.

use super::Schedule;

/// `initial * decay_rate^(step / decay_steps)`: one factor of `decay_rate` each `decay_steps` steps.
///
/// 0 `decay_steps` count as 1.
#[derive(Debug, Clone, Copy)]
pub struct ExponentialDecay {
    initial: f64,
    decay_steps: u64,
    decay_rate: f64,
    staircase: bool,
}

impl ExponentialDecay {
    /// Smooth decay from `initial`.
    pub fn new(initial: f64, decay_steps: u64, decay_rate: f64) -> Self {
        ExponentialDecay { initial, decay_steps, decay_rate, staircase: false }
    }

    /// Whether to go down in steps: the exponent is rounded down to a whole number. Default: no.
    #[must_use]
    pub fn staircase(mut self, staircase: bool) -> Self {
        self.staircase = staircase;
        self
    }
}

impl Schedule for ExponentialDecay {
    fn value(&self, step: u64) -> f64 {
        let exponent = step as f64 / self.decay_steps.max(1) as f64;
        let exponent = if self.staircase { exponent.floor() } else { exponent };
        self.initial * self.decay_rate.powf(exponent)
    }

    fn describe(&self) -> String {
        let Self { initial, decay_steps, decay_rate, staircase } = self;
        let staircase = if *staircase { ", staircase=true" } else { "" };
        format!(
            "ExponentialDecay(initial={initial}, decay_steps={decay_steps}, decay_rate={decay_rate}{staircase})"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_reached_after_the_steps_and_its_root_half_way() {
        let rate = ExponentialDecay::new(2.0, 10, 0.25);
        let stairs = rate.staircase(true);
        assert_eq!([0, 5, 10, 20].map(|step| rate.value(step)), [2.0, 1.0, 0.5, 0.125]);
        assert_eq!([0, 9, 10, 29].map(|step| stairs.value(step)), [2.0, 2.0, 0.5, 0.125]);
    }
}
