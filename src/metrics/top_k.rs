//! Share of labels among the best scores.

use crate::autodiff::no_grad;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init;
use crate::module::Once;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::scores::{check, nothing_yet};

const OP: &str = "top_k";

/// The share of labels that are among the `k` classes of the largest scores, over all batches since the last reset. Of
/// equal scores the first one counts as larger; a label whose score is NaN is not among them.
///
/// State, none of it trained: `count` and `correct` (i64), so that the share is exact however many batches there were.
///
/// ```
/// use couplet::{Tensor, metrics::TopK};
/// let top = TopK::new(2);
/// top.update(&Tensor::from([[0.1f32, 0.5, 0.4], [0.1, 0.5, 0.4]]), &Tensor::from([2, 0]))?;
/// assert_eq!(top.value()?, 0.5);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(materialise = Self::counters)]
pub struct TopK {
    scope: Scope,
    k: usize,
    count: Once<Variable>,
    correct: Once<Variable>,
}

impl TopK {
    /// The share of labels among the `k` best, 1 or more.
    pub fn new(k: usize) -> Self {
        TopK { scope: Scope::of::<Self>(), k, count: Once::new(), correct: Once::new() }
    }

    /// The share so far, from 0 to 1.
    ///
    /// # Errors
    /// There was no label yet.
    pub fn value(&self) -> Result<f64> {
        let (count, correct) = self.counters()?;
        match count.peek().item::<i64>()? {
            0 => Err(nothing_yet(OP)),
            count => Ok(correct.peek().item::<i64>()? as f64 / count as f64),
        }
    }

    /// Forgets all labels.
    ///
    /// # Errors
    /// The counters cannot be made.
    pub fn reset(&self) -> Result<()> {
        let (count, correct) = self.counters()?;
        count.assign(&Tensor::from(0i64))?;
        correct.assign(&Tensor::from(0i64))
    }
}

#[scoped]
impl TopK {
    fn counters(&self) -> Result<(&Variable, &Variable)> {
        let counter = |name| Variable::non_trainable(name, &[], DType::I64, init::Zeros);
        let count = self.count.get_or_init(|| counter("count"))?;
        Ok((count, self.correct.get_or_init(|| counter("correct"))?))
    }

    /// Counts a batch: scores (logits will do) of shape `[.., classes]`, and the right classes, `[..]`.
    ///
    /// # Errors
    /// `k` is 0 or more than the classes, the shapes do not go together, or a label is none of the classes. Nothing is
    /// counted then.
    pub fn update(&self, scores: &Tensor, labels: &Tensor) -> Result<()> {
        let classes = check(OP, scores, labels)?;
        if !(1..=classes).contains(&self.k) {
            return Err(Error::argument(OP, "k", self.k, format!("1 to {classes}, the number of classes")));
        }
        let (count, correct) = self.counters()?;
        no_grad(|| {
            let labels = labels.cast(DType::I64)?.expand_dims(-1)?;
            let own = scores.take_along_axis(&labels, -1)?;
            let before = Tensor::arange(0.0, classes as f64, 1.0, DType::I64)?.less(&labels)?;
            let better = scores.greater(&own)?.logical_or(&scores.equal(&own)?.logical_and(&before)?)?;
            let rank = better.count_nonzero_axes(-1, false)?;
            let right = rank.less(self.k as i64)?.logical_and(&own.equal(&own)?.squeeze(-1)?)?;
            let right = right.count_nonzero()?.cast(DType::I64)?;
            count.assign_add(&Tensor::from(labels.size() as i64))?;
            correct.assign_add(&right)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_all_batches_until_a_reset() -> Result<()> {
        let top = TopK::new(1);
        assert!(top.value().unwrap_err().to_string().contains("call update first"));
        top.update(&Tensor::from([[1.0f32, 2.0], [2.0, 1.0], [2.0, 1.0]]), &Tensor::from([1u8, 0, 0]))?;
        top.update(&Tensor::from([[1.0f64, 2.0]]), &Tensor::from([0i64]))?;
        assert_eq!(top.value()?, 0.75);
        top.reset()?;
        assert!(top.value().is_err());
        Ok(())
    }

    #[test]
    fn of_equal_scores_the_first_is_larger_and_nan_is_never_right() -> Result<()> {
        let share = |k, scores: [f32; 3], label: i32| {
            let top = TopK::new(k);
            top.update(&Tensor::from([scores]), &Tensor::from([label]))?;
            top.value()
        };
        assert_eq!([share(1, [1.0, 1.0, 0.0], 0)?, share(1, [1.0, 1.0, 0.0], 1)?], [1.0, 0.0]);
        assert_eq!(share(2, [1.0, 1.0, 1.0], 1)?, 1.0);
        assert_eq!([share(3, [f32::NAN, 0.0, 0.0], 0)?, share(3, [f32::NAN, 0.0, 0.0], 2)?], [0.0, 1.0]);
        Ok(())
    }

    #[test]
    fn what_is_refused_is_not_counted() -> Result<()> {
        let top = TopK::new(2);
        let scores = Tensor::ones([2, 3], DType::F32)?;
        let message = |scores: &Tensor, labels: Tensor| top.update(scores, &labels).unwrap_err().to_string();
        assert!(message(&scores, Tensor::from([0, 3])).contains("label 3 is out of range"));
        assert!(message(&scores, Tensor::from([-1, 0])).contains("label -1"));
        assert!(message(&scores, Tensor::from([0])).contains("[2]"));
        assert!(message(&Tensor::ones([2, 1], DType::F32)?, Tensor::from([0, 0])).contains("k is 2"));
        assert!(message(&scores.cast(DType::I32)?, Tensor::from([0, 0])).contains("float"));
        assert!(top.value().is_err());
        top.update(&Tensor::ones([0, 3], DType::F32)?, &Tensor::zeros([0], DType::I32)?)?;
        assert!(top.value().is_err());
        Ok(())
    }
}
