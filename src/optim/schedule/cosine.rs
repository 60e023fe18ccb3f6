//! Cosine decay.

use super::{Schedule, half_wave, progress};

/// Half a cosine wave (Loshchilov & Hutter 2017, section 3, without restarts):
/// `initial * ((1 - alpha) * (1 + cos(pi * step / decay_steps)) / 2 + alpha)`, and `initial * alpha` afterwards.
#[derive(Debug, Clone, Copy)]
pub struct CosineDecay {
    initial: f64,
    decay_steps: u64,
    alpha: f64,
}

impl CosineDecay {
    /// Decay from `initial` to 0.
    pub fn new(initial: f64, decay_steps: u64) -> Self {
        CosineDecay { initial, decay_steps, alpha: 0.0 }
    }

    /// The share of `initial` that remains. Default: 0.
    #[must_use]
    pub fn alpha(mut self, alpha: f64) -> Self {
        self.alpha = alpha;
        self
    }
}

impl Schedule for CosineDecay {
    fn value(&self, step: u64) -> f64 {
        half_wave(self.initial, self.initial * self.alpha, progress(step, self.decay_steps))
    }

    fn describe(&self) -> String {
        let Self { initial, decay_steps, alpha } = self;
        let alpha = if *alpha == 0.0 { String::new() } else { format!(", alpha={alpha}") };
        format!("CosineDecay(initial={initial}, decay_steps={decay_steps}{alpha})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wave_passes_its_middle_half_way_and_stays_at_its_end() {
        let rate = CosineDecay::new(2.0, 9).alpha(0.5);
        // A third of the way: 1 + (2 - 1) * (1 + cos(60 deg)) / 2 = 1.75.
        for (step, expected) in [(0, 2.0), (3, 1.75), (6, 1.25), (9, 1.0), (100, 1.0)] {
            assert!((rate.value(step) - expected).abs() < 1e-15, "{step}: {}", rate.value(step));
        }
    }
}
