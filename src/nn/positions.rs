//! Positions as vectors that are learnt.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::init::{self, Initializer};
use crate::module::{Forward, Once};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

/// Adds a learnt vector for each position: `y[.., t, :] = x[.., t, :] + embeddings[t, :]` (Gehring et al. 2017,
/// "Convolutional sequence to sequence learning", 3.1).
///
/// | tensor | shape |
/// |---|---|
/// | `x`, `y` | `[.., positions, channels]`, rank 2 or more, at most `max_length` positions |
/// | `embeddings` | `[max_length, channels]` |
///
/// `embeddings` starts as a truncated normal with standard deviation 0.02, small beside inputs of unit variance.
///
/// ```
/// use couplet::prelude::*;
/// let positions = LearnedPositions::new(16).init(init::Ones);
/// let y = positions.forward(&Tensor::zeros([2, 10, 4], DType::F32)?)?;
/// assert_eq!(y.sum()?.item::<f32>()?, 80.0);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct LearnedPositions {
    scope: Scope,
    max_length: usize,
    init: Option<Arc<dyn Initializer>>,
    embeddings: Once<Variable>,
}

impl LearnedPositions {
    /// Vectors for positions `0..max_length`.
    pub fn new(max_length: usize) -> Self {
        LearnedPositions { scope: Scope::of::<Self>(), max_length, init: None, embeddings: Once::new() }
    }

    /// Initialiser of the vectors. Default: `TruncatedNormal` with standard deviation 0.02.
    #[must_use]
    pub fn init(mut self, init: impl Initializer) -> Self {
        self.init = Some(Arc::new(init));
        self
    }
}

#[scoped]
impl LearnedPositions {
    /// `x` whose first position is number `first`, as when a sequence is continued.
    ///
    /// # Errors
    /// A rank below 2, a position from `max_length` on, or other channels or another dtype than in the first call. Nothing is
    /// created then.
    pub fn forward_from(&self, x: &Tensor, first: usize) -> Result<Tensor> {
        const OP: &str = "learned_positions";
        if x.rank() < 2 {
            return Err(Error::shape(OP, "x", x.shape(), "rank 2 or more: [.., positions, channels]"));
        }
        let (count, channels) = (x.dim(-2)?, x.dim(-1)?);
        if first.saturating_add(count) > self.max_length {
            let expected = format!("positions below {}, starting from {first}", self.max_length);
            return Err(Error::shape(OP, "x", x.shape(), expected));
        }
        if let Some(size) = self.embeddings.get().map(|v| v.shape()[1]).filter(|&size| size != channels) {
            let expected = format!("{size} as its last dim, as in the first call");
            return Err(Error::shape(OP, "x", x.shape(), expected));
        }
        let init = || self.init.clone().unwrap_or_else(|| Arc::new(init::TruncatedNormal::new(0.02)));
        let shape = [self.max_length, channels];
        let table = self.embeddings.get_or_init(|| Variable::new("embeddings", &shape, x.dtype(), init()))?;
        x + table.value().narrow(0, first, count)?
    }
}

#[scoped]
impl Forward for LearnedPositions {
    /// # Errors
    /// As for [`forward_from`](LearnedPositions::forward_from).
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_from(x, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn positions_are_counted_from_the_first() -> Result<()> {
        let positions = LearnedPositions::new(4).init(init::RandomNormal::new(1.0));
        let zeros = |n: usize| Tensor::zeros([n, 2], DType::F64);
        let all = positions.forward(&zeros(4)?)?.to_vec::<f64>()?;
        assert_eq!(positions.forward_from(&zeros(2)?, 1)?.to_vec::<f64>()?, all[2..6]);
        let message = positions.forward_from(&zeros(2)?, 3).unwrap_err().to_string();
        assert!(message.contains("positions below 4"), "{message}");
        assert!(positions.forward_from(&zeros(1)?, usize::MAX).is_err());
        assert!(positions.forward(&Tensor::zeros([2, 3], DType::F64)?).is_err());
        Ok(())
    }
}
