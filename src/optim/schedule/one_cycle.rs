//! The one-cycle policy.

use super::{Schedule, half_wave};

/// Up once and down once (Smith & Topin 2018), along half cosine waves.
///
/// With `last = total_steps - 1` and `peak = rise * last`: from `max / initial_divisor` at step 0 up to `max` at step
/// `peak`, then down to `max / initial_divisor / final_divisor` at step `last`, where it stays.
#[derive(Debug, Clone, Copy)]
pub struct OneCycle {
    max: f64,
    total_steps: u64,
    rise: f64,
    initial_divisor: f64,
    final_divisor: f64,
}

impl OneCycle {
    /// A cycle of `total_steps` steps with its peak at `max`.
    pub fn new(max: f64, total_steps: u64) -> Self {
        OneCycle { max, total_steps, rise: 0.3, initial_divisor: 25.0, final_divisor: 1e4 }
    }

    /// The share of the steps that lead up, in `[0, 1]`. Default: 0.3.
    #[must_use]
    pub fn rise(mut self, rise: f64) -> Self {
        self.rise = rise;
        self
    }

    /// How often the first number goes into the peak. Default: 25.
    #[must_use]
    pub fn initial_divisor(mut self, initial_divisor: f64) -> Self {
        self.initial_divisor = initial_divisor;
        self
    }

    /// How often the last number goes into the first. Default: 10,000.
    #[must_use]
    pub fn final_divisor(mut self, final_divisor: f64) -> Self {
        self.final_divisor = final_divisor;
        self
    }
}

impl Schedule for OneCycle {
    fn value(&self, step: u64) -> f64 {
        let initial = self.max / self.initial_divisor;
        let last = self.total_steps.saturating_sub(1) as f64;
        let (step, peak) = (step as f64, self.rise * last);
        if step < peak {
            half_wave(initial, self.max, step / peak)
        } else if step < last {
            half_wave(self.max, initial / self.final_divisor, (step - peak) / (last - peak))
        } else {
            initial / self.final_divisor
        }
    }

    fn describe(&self) -> String {
        let Self { max, total_steps, rise, initial_divisor, final_divisor } = self;
        format!(
            "OneCycle(max={max}, total_steps={total_steps}, rise={rise}, initial_divisor={initial_divisor}, \
             final_divisor={final_divisor})"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cycle_goes_through_its_start_its_peak_and_its_end() {
        let rate = OneCycle::new(8.0, 11).rise(0.4).initial_divisor(2.0).final_divisor(4.0);
        // From 4 up to 8 at step 4, then down to 1 at step 10; the middles lie half way.
        for (step, expected) in [(0, 4.0), (2, 6.0), (4, 8.0), (7, 4.5), (10, 1.0), (11, 1.0)] {
            assert!((rate.value(step) - expected).abs() < 1e-12, "{step}: {}", rate.value(step));
        }
    }
}
