//! Numbers that hold from one step to another.

use std::fmt::Write;

use super::Schedule;

/// One number after the other, each from a step on.
///
/// ```
/// use couplet::optim::{Schedule, schedule::PiecewiseConstant};
/// let rate = PiecewiseConstant::new(0.1).from_step(100, 0.01).from_step(200, 0.001);
/// assert_eq!([rate.value(99), rate.value(100), rate.value(250)], [0.1, 0.01, 0.001]);
/// ```
#[derive(Debug, Clone)]
pub struct PiecewiseConstant {
    initial: f64,
    /// First step and number of each later piece, sorted.
    pieces: Vec<(u64, f64)>,
}

impl PiecewiseConstant {
    /// `initial` at every step, until told otherwise.
    pub fn new(initial: f64) -> Self {
        PiecewiseConstant { initial, pieces: Vec::new() }
    }

    /// From `step` on, `value`. Pieces may be given in any order; of two for the same step the later one holds.
    #[must_use]
    pub fn from_step(mut self, step: u64, value: f64) -> Self {
        let after = self.pieces.partition_point(|&(other, _)| other <= step);
        self.pieces.insert(after, (step, value));
        self
    }
}

impl Schedule for PiecewiseConstant {
    fn value(&self, step: u64) -> f64 {
        let begun = self.pieces.partition_point(|&(first, _)| first <= step);
        begun.checked_sub(1).map_or(self.initial, |last| self.pieces[last].1)
    }

    fn describe(&self) -> String {
        let mut text = format!("PiecewiseConstant({}", self.initial);
        for (step, value) in &self.pieces {
            let _ = write!(text, ", {value} from {step}");
        }
        text + ")"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_may_come_in_any_order() {
        let rate = PiecewiseConstant::new(4.0).from_step(20, 1.0).from_step(10, 3.0).from_step(10, 2.0);
        let at = [0, 9, 10, 19, 20, u64::MAX].map(|step| rate.value(step));
        assert_eq!(at, [4.0, 4.0, 2.0, 2.0, 1.0, 1.0]);
    }
}
