//! How many steps an optimiser has made.

use crate::Visit;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init::Zeros;
use crate::module::Once;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A count of steps, kept in an `i64` variable named `t`.
#[derive(Visit, Default)]
pub(super) struct Steps(Once<Variable>);

impl Steps {
    /// The variable; the first call makes it, in the scope of the optimiser.
    pub(super) fn variable(&self) -> Result<&Variable> {
        self.0.get_or_init(|| Variable::non_trainable("t", &[], DType::I64, Zeros))
    }

    /// The number of steps made so far.
    pub(super) fn count(&self) -> Result<u64> {
        let count = self.variable()?.peek().item::<i64>()?;
        let whole = u64::try_from(count).ok().filter(|&count| count < i64::MAX as u64);
        whole
            .ok_or_else(|| Error::argument("apply", "the count of steps", count, "0 or more, below 2^63 - 1"))
    }

    /// Counts one more than `count`.
    pub(super) fn advance(&self, count: u64) -> Result<()> {
        self.variable()?.assign(&Tensor::from(count as i64 + 1))
    }
}
