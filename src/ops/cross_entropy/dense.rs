//! Softmax cross-entropy with a distribution over the classes a row.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernels::softmax::{self as kernels, LogSum};
use crate::ops::apply;
use crate::ops::gradient::Gradient;
use crate::ops::op::{Binary, Computed, Inputs, Mask, Op, Saved, Saves};
use crate::ops::real::{check_dtype, check_shape, for_real, real_dtype};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::tensor::{Tensor, take};

use super::{per_row, ready, second_order};

const DENSE: &str = "softmax_cross_entropy";

/// Refuses labels that have not the dtype and shape of the logits.
fn check_labels(op: &'static str, logits: &Tensor, labels: &Tensor) -> Result<()> {
    check_dtype(op, "labels", labels, ("logits", logits))?;
    check_shape(op, "labels", labels, ("logits", logits))
}

/// `y = -sum_j labels_j log_softmax(logits)_j` over the last axis; inputs `logits` and `labels`, both `[.., classes]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SoftmaxCrossEntropy;

impl Binary for SoftmaxCrossEntropy {
    const NAME: &'static str = DENSE;

    fn saves(&self, tracked: Mask) -> Saves {
        if tracked.has(0) { Saves::INPUTS } else { Saves::inputs(Mask::only(0)) }
    }

    fn forward(&self, logits: Tensor, labels: Tensor) -> Result<Tensor> {
        let real = real_dtype(DENSE, "logits", &logits)?;
        let (shape, classes) = per_row(DENSE, &logits)?;
        check_labels(DENSE, &logits, &labels)?;
        let (x, labels) = (ready(&logits, real)?, ready(&labels, real)?);
        let y = for_real!(real, T => {
            let mut y = take::<T>(shape.size());
            let (x, labels) = (x.as_slice::<T>()?.unwrap_or(&[]), labels.as_slice::<T>()?.unwrap_or(&[]));
            let mut sums = vec![LogSum::default(); y.len()];
            kernels::dense(x, labels, classes, &mut y, &mut sums);
            Tensor::from_taken(y, shape)
        });
        y.converted(logits.dtype())
    }

    /// `dlogits = dy (softmax(logits) sum(labels) - labels)`, where labels usually sum to one;
    /// `dlabels = -dy log_softmax(logits)`.
    fn gradient(&self, saved: &Saved, dy: &Tensor, needs: Mask) -> Result<[Option<Tensor>; 2]> {
        let logits = saved.input(0)?;
        let dlogits = match needs.has(0) {
            true => Some(apply(SoftmaxCrossEntropyGradient, [logits, saved.input(1)?, dy])?),
            false => None,
        };
        let dlabels = match needs.has(1) {
            true => Some(((-dy)?.expand_dims(-1)? * logits.log_softmax(-1)?)?),
            false => None,
        };
        Ok([dlogits, dlabels])
    }
}

impl Listed for SoftmaxCrossEntropy {
    fn samples() -> Vec<Sample> {
        let sample = |shape: &[usize]| {
            Sample::new(
                SoftmaxCrossEntropy,
                [SampleInput::float(shape), SampleInput::within(shape, 0.1, 0.9)],
            )
        };
        vec![sample(&[2, 3, 4]), sample(&[4])]
    }
}

/// `dlogits = dy (softmax(logits) sum(labels) - labels)`; inputs `logits [.., classes]`, `labels [.., classes]`, `dy [..]`.
///
/// The sums behind the softmax are taken again instead of kept, so that this is a function of its inputs alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SoftmaxCrossEntropyGradient;

impl Op for SoftmaxCrossEntropyGradient {
    fn name(&self) -> &'static str {
        "softmax_cross_entropy_gradient"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (logits, labels, dy) = (inputs.get(0)?, inputs.get(1)?, inputs.get(2)?);
        let real = real_dtype(DENSE, "logits", logits)?;
        let (shape, classes) = per_row(DENSE, logits)?;
        check_labels(DENSE, logits, labels)?;
        check_dtype(DENSE, "dy", dy, ("logits", logits))?;
        if dy.shape() != &shape {
            return Err(Error::shape(DENSE, "dy", dy.shape(), format!("{shape}, one value a row")));
        }
        let (x, labels, dy) = (ready(logits, real)?, ready(labels, real)?, ready(dy, real)?);
        let dx = for_real!(real, T => {
            let (mut y, mut dx) = (take::<T>(shape.size()), take::<T>(x.size()));
            let (x_rows, labels) = (x.as_slice::<T>()?.unwrap_or(&[]), labels.as_slice::<T>()?.unwrap_or(&[]));
            let dy = dy.as_slice::<T>()?.unwrap_or(&[]);
            let mut sums = vec![LogSum::default(); y.len()];
            kernels::dense(x_rows, labels, classes, &mut y, &mut sums);
            kernels::dense_gradient(x_rows, labels, classes, &sums, dy, &mut dx);
            Tensor::from_taken(dx, x.shape().clone())
        });
        Ok(dx.converted(logits.dtype())?.into())
    }

    /// With `g` the gradient of `dlogits`, `p = softmax(logits)` and `s = sum(labels)`: that of `dy` is
    /// `sum(g (p s - labels))`, that of `logits` is `dy s p (g - sum(g p))`, and that of `labels` is `dy (sum(g p) - g)`.
    fn gradient(&self, saved: &Saved, g: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(g)) = g.first() else { return Ok(vec![None, None, None]) };
        let (logits, labels, dy) = (saved.input(0)?, saved.input(1)?, saved.input(2)?);
        let unit = || {
            let ones = Tensor::ones(dy.shape().clone(), dy.dtype())?;
            apply(SoftmaxCrossEntropyGradient, [logits, labels, &ones])
        };
        let weight = (dy * labels.sum_axes(-1, false)?)?;
        let [of_logits, of_dy] = second_order(logits, &weight, g, [needs.has(0), needs.has(2)], unit)?;
        let of_labels = match needs.has(1) {
            true => {
                let mean = (g * logits.softmax(-1)?)?.sum_axes(-1, true)?;
                Some(Gradient::Dense((dy.expand_dims(-1)? * (mean - g)?)?))
            }
            false => None,
        };
        Ok(vec![of_logits, of_labels, of_dy])
    }
}

impl Listed for SoftmaxCrossEntropyGradient {
    fn samples() -> Vec<Sample> {
        let inputs =
            [SampleInput::float(&[2, 3, 4]), SampleInput::float(&[2, 3, 4]), SampleInput::float(&[2, 3])];
        vec![Sample::new(SoftmaxCrossEntropyGradient, inputs)]
    }
}
