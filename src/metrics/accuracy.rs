//! Share of right predictions.

use crate::Module;
use crate::error::Result;
use crate::scope::Scope;
use crate::tensor::Tensor;

use super::TopK;

/// The share of labels whose class has the largest score, over all batches since the last reset. Of equal scores the first
/// one counts as larger; a label whose score is NaN is wrong.
///
/// State, none of it trained: `count` and `correct` (i64) of `_top`, a [`TopK`] with `k` 1.
///
/// ```
/// use couplet::{Tensor, metrics::Accuracy};
/// let accuracy = Accuracy::new();
/// accuracy.update(&Tensor::from([[2.0f32, 1.0], [0.0, 3.0]]), &Tensor::from([0, 0]))?;
/// accuracy.update(&Tensor::from([[5.0f32, 1.0], [0.0, 3.0]]), &Tensor::from([0, 1]))?;
/// assert_eq!(accuracy.value()?, 0.75);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct Accuracy {
    scope: Scope,
    #[module(name = "_top", hidden)]
    top: TopK,
}

impl Default for Accuracy {
    fn default() -> Self {
        Self::new()
    }
}

impl Accuracy {
    /// An accuracy of nothing yet.
    pub fn new() -> Self {
        let scope = Scope::of::<Self>();
        let top = {
            let _in = scope.enter();
            TopK::new(1)
        };
        Accuracy { scope, top }
    }

    /// Counts a batch: scores (logits will do) of shape `[.., classes]`, and the right classes, `[..]`.
    ///
    /// # Errors
    /// The shapes do not go together, or a label is none of the classes. Nothing is counted then.
    pub fn update(&self, scores: &Tensor, labels: &Tensor) -> Result<()> {
        self.top.update(scores, labels)
    }

    /// The share so far, from 0 to 1.
    ///
    /// # Errors
    /// There was no label yet.
    pub fn value(&self) -> Result<f64> {
        self.top.value()
    }

    /// Forgets all labels.
    ///
    /// # Errors
    /// The counters cannot be made.
    pub fn reset(&self) -> Result<()> {
        self.top.reset()
    }
}
