//! Cosine decay with warm restarts.

use super::{Schedule, half_wave};

/// Cosine decay that starts anew (Loshchilov & Hutter 2017, section 3).
///
/// Period `i`, from 0, takes `first_period * period_factor^i` steps, and goes along half a cosine wave from
/// `initial * restart_factor^i` to `initial * restart_factor^i * alpha`. A period takes at least 1 step.
#[derive(Debug, Clone, Copy)]
pub struct CosineRestarts {
    initial: f64,
    first_period: u64,
    period_factor: f64,
    restart_factor: f64,
    alpha: f64,
}

impl CosineRestarts {
    /// Periods that double in length, all from `initial` to 0.
    pub fn new(initial: f64, first_period: u64) -> Self {
        CosineRestarts { initial, first_period, period_factor: 2.0, restart_factor: 1.0, alpha: 0.0 }
    }

    /// How much longer each period is than the one before; below 1 counts as 1. Default: 2.
    #[must_use]
    pub fn period_factor(mut self, period_factor: f64) -> Self {
        self.period_factor = period_factor;
        self
    }

    /// How much higher each period starts than the one before. Default: 1.
    #[must_use]
    pub fn restart_factor(mut self, restart_factor: f64) -> Self {
        self.restart_factor = restart_factor;
        self
    }

    /// The share of a period's start that remains at its end. Default: 0.
    #[must_use]
    pub fn alpha(mut self, alpha: f64) -> Self {
        self.alpha = alpha;
        self
    }

    /// The number of the period that a step lies in, and how far into it, in `[0, 1)`.
    fn period(&self, step: u64) -> (f64, f64) {
        let steps = step as f64 / self.first_period.max(1) as f64;
        // NaN counts as 1, too.
        let factor = if self.period_factor > 1.0 { self.period_factor } else { 1.0 };
        if factor == 1.0 {
            return (steps.floor(), steps.fract());
        }
        // The first i periods take (factor^i - 1) / (factor - 1) times the first.
        let start = |i: f64| (factor.powf(i) - 1.0) / (factor - 1.0);
        let mut i = (1.0 + steps * (factor - 1.0)).log(factor).floor();
        // Logarithms may be off by one where a period begins.
        i += f64::from(u8::from(steps >= start(i + 1.0))) - f64::from(u8::from(steps < start(i)));
        (i, (steps - start(i)) / factor.powf(i))
    }
}

impl Schedule for CosineRestarts {
    fn value(&self, step: u64) -> f64 {
        let (i, progress) = self.period(step);
        let start = self.initial * self.restart_factor.powf(i);
        half_wave(start, start * self.alpha, progress)
    }

    fn describe(&self) -> String {
        let Self { initial, first_period, period_factor, restart_factor, alpha } = self;
        format!(
            "CosineRestarts(initial={initial}, first_period={first_period}, period_factor={period_factor}, \
             restart_factor={restart_factor}, alpha={alpha})"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_grow_and_start_where_the_factors_say() {
        let rate = CosineRestarts::new(8.0, 4).restart_factor(0.5).alpha(0.25);
        // Periods begin at 0, 4, 12 and 28. The middle of a period lies half way between its ends.
        let expected = [(0, 8.0), (2, 5.0), (4, 4.0), (8, 2.5), (12, 2.0), (20, 1.25), (28, 1.0)];
        for (step, expected) in expected {
            assert!((rate.value(step) - expected).abs() < 1e-12, "{step}: {}", rate.value(step));
        }
        let equal = CosineRestarts::new(1.0, 3).period_factor(1.0);
        assert_eq!([0, 3, 6, 3000].map(|step| equal.value(step)), [1.0; 4]);
        assert!(equal.value(5) < equal.value(4));
    }

    #[test]
    fn a_period_begins_on_its_step_however_late() {
        for (first, factor) in [(1, 2.0), (3, 3.0), (10, 2.0), (7, 5.0)] {
            let rate = CosineRestarts::new(1.0, first).period_factor(factor);
            let (mut start, mut length) = (0u64, first);
            while start < 1 << 40 {
                assert_eq!(rate.value(start), 1.0, "{first} {factor} {start}");
                (start, length) = (start + length, length * factor as u64);
            }
        }
    }
}
