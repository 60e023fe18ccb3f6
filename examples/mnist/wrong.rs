//! How many digits were read wrongly.

use std::fmt;

/// Number of test images that were classified wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrong {
    pub wrong: usize,
    pub total: usize,
}

impl Wrong {
    /// Share of the images classified rightly, in percent.
    pub fn accuracy(self) -> f64 {
        100.0 * (self.total - self.wrong) as f64 / self.total as f64
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:.2} % ({} wrong of {})", self.accuracy(), self.wrong, self.total)
    }
}
