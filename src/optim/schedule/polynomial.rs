//! Polynomial decay.

use super::{Schedule, progress};

/// `end + (initial - end) * (1 - step / decay_steps)^power`, and `end` afterwards. Linear by default.
#[derive(Debug, Clone, Copy)]
pub struct PolynomialDecay {
    initial: f64,
    decay_steps: u64,
    end: f64,
    power: f64,
}

impl PolynomialDecay {
    /// A straight line from `initial` to `end`.
    pub fn new(initial: f64, decay_steps: u64, end: f64) -> Self {
        PolynomialDecay { initial, decay_steps, end, power: 1.0 }
    }

    /// The power. Default: 1.
    #[must_use]
    pub fn power(mut self, power: f64) -> Self {
        self.power = power;
        self
    }
}

impl Schedule for PolynomialDecay {
    fn value(&self, step: u64) -> f64 {
        if step >= self.decay_steps {
            return self.end;
        }
        let left = 1.0 - progress(step, self.decay_steps);
        self.end + (self.initial - self.end) * left.powf(self.power)
    }

    fn describe(&self) -> String {
        let Self { initial, decay_steps, end, power } = self;
        format!("PolynomialDecay(initial={initial}, decay_steps={decay_steps}, end={end}, power={power})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_and_a_parabola_end_at_the_same_number() {
        let line = PolynomialDecay::new(5.0, 4, 1.0);
        assert_eq!([0, 1, 2, 4, 9].map(|step| line.value(step)), [5.0, 4.0, 3.0, 1.0, 1.0]);
        let parabola = line.power(2.0);
        assert_eq!([0, 2, 3, 4].map(|step| parabola.value(step)), [5.0, 2.0, 1.25, 1.0]);
    }
}
