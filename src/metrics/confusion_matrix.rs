//! How often each class is taken for each other.

use crate::autodiff::no_grad;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init;
use crate::module::Once;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::scores::check;

const OP: &str = "confusion_matrix";

/// How many labels of each class (rows) got the largest score in each class (columns), over all batches since the last
/// reset. Of equal scores the first one counts as larger, and NaN as smaller than every number.
///
/// State, not trained: `counts` (i64), `[classes, classes]`.
///
/// ```
/// use couplet::{Tensor, metrics::ConfusionMatrix};
/// let matrix = ConfusionMatrix::new(2);
/// matrix.update(&Tensor::from([[2.0f32, 1.0], [0.0, 3.0], [0.0, 3.0]]), &Tensor::from([0, 0, 1]))?;
/// assert_eq!(matrix.value()?.to_vec::<i64>()?, [1, 1, 0, 1]);
/// assert_eq!(matrix.precision()?.to_vec::<f64>()?, [1.0, 0.5]);
/// assert_eq!(matrix.recall()?.to_vec::<f64>()?, [0.5, 1.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(materialise = Self::counts)]
pub struct ConfusionMatrix {
    scope: Scope,
    classes: usize,
    counts: Once<Variable>,
}

impl ConfusionMatrix {
    /// A matrix of zeros for `classes` classes.
    pub fn new(classes: usize) -> Self {
        ConfusionMatrix { scope: Scope::of::<Self>(), classes, counts: Once::new() }
    }

    /// The counts, `[classes, classes]` in i64: the row is the right class, the column the one that was predicted.
    ///
    /// # Errors
    /// The counters cannot be made.
    pub fn value(&self) -> Result<Tensor> {
        Ok(self.counts()?.peek())
    }

    /// Of those predicted as a class, the share that is of it, `[classes]` in f64; NaN for a class that was never
    /// predicted.
    ///
    /// # Errors
    /// The counters cannot be made.
    pub fn precision(&self) -> Result<Tensor> {
        self.share_of_diagonal(0)
    }

    /// Of those of a class, the share that was predicted as it, `[classes]` in f64; NaN for a class that never came.
    ///
    /// # Errors
    /// The counters cannot be made.
    pub fn recall(&self) -> Result<Tensor> {
        self.share_of_diagonal(1)
    }

    /// Forgets all labels.
    ///
    /// # Errors
    /// The counters cannot be made.
    pub fn reset(&self) -> Result<()> {
        self.counts()?.assign(&Tensor::zeros([self.classes, self.classes], DType::I64)?)
    }

    fn share_of_diagonal(&self, axis: isize) -> Result<Tensor> {
        let counts = self.value()?.cast(DType::F64)?;
        counts.diag_part()? / counts.sum_axes(axis, false)?
    }
}

#[scoped]
impl ConfusionMatrix {
    fn counts(&self) -> Result<&Variable> {
        let shape = [self.classes, self.classes];
        self.counts.get_or_init(|| Variable::non_trainable("counts", &shape, DType::I64, init::Zeros))
    }

    /// Counts a batch: scores (logits will do) of shape `[.., classes]`, and the right classes, `[..]`.
    ///
    /// # Errors
    /// The number of classes is another one, the shapes do not go together, or a label is none of the classes. Nothing is
    /// counted then.
    pub fn update(&self, scores: &Tensor, labels: &Tensor) -> Result<()> {
        let classes = check(OP, scores, labels)?;
        if classes != self.classes {
            let expected = format!("[.., {}]", self.classes);
            return Err(Error::shape(OP, "the scores", scores.shape(), expected));
        }
        let counts = self.counts()?;
        no_grad(|| {
            let places = ((labels.cast(DType::I64)? * classes as i64)? + scores.argmax(-1)?)?;
            let ones = Tensor::ones(labels.shape().clone(), DType::I64)?;
            counts.assign_add(&ones.segment_sum(&places, classes * classes)?.reshape([classes, classes])?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_several_batches_add_up_until_a_reset() -> Result<()> {
        let matrix = ConfusionMatrix::new(3);
        let scores = Tensor::from([[[9.0f32, 0.0, 0.0], [0.0, 0.0, 9.0]]]);
        matrix.update(&scores, &Tensor::from([[0u8, 1]]))?;
        matrix.update(&scores, &Tensor::from([[0i64, 2]]))?;
        assert_eq!(matrix.value()?.to_vec::<i64>()?, [2, 0, 0, 0, 0, 1, 0, 0, 1]);
        let precision = matrix.precision()?.to_vec::<f64>()?;
        assert!(precision[0] == 1.0 && precision[1].is_nan() && precision[2] == 0.5);
        assert_eq!(matrix.recall()?.to_vec::<f64>()?, [1.0, 0.0, 1.0]);
        matrix.reset()?;
        assert_eq!(matrix.value()?.to_vec::<i64>()?, [0; 9]);
        Ok(())
    }

    #[test]
    fn what_is_refused_is_not_counted() -> Result<()> {
        let matrix = ConfusionMatrix::new(2);
        let scores = Tensor::ones([1, 3], DType::F32)?;
        assert!(matrix.update(&scores, &Tensor::from([0])).unwrap_err().to_string().contains("[.., 2]"));
        let scores = scores.narrow(1, 0, 2)?;
        assert!(matrix.update(&scores, &Tensor::from([2])).unwrap_err().to_string().contains("label 2"));
        matrix.update(&Tensor::ones([0, 2], DType::F32)?, &Tensor::zeros([0], DType::I32)?)?;
        assert_eq!(matrix.value()?.to_vec::<i64>()?, [0; 4]);
        Ok(())
    }
}
