//! Softmax cross-entropy with one class number a row.

use serde::{Deserialize, Serialize};

use crate::dtype::{Element, for_dtype};
use crate::error::{Error, Result};
use crate::kernels::softmax as kernels;
use crate::ops::apply;
use crate::ops::gradient::Gradient;
use crate::ops::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use crate::ops::real::{check_dtype, check_shape, for_real, real_dtype};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::tensor::{Tensor, take};

use super::{dense, per_row, second_order};

const SPARSE: &str = "sparse_softmax_cross_entropy";

/// Labels of one class a row, checked against the logits.
fn class_labels(op: &'static str, logits: &Tensor, labels: &Tensor) -> Result<Vec<usize>> {
    let (shape, classes) = per_row(op, logits)?;
    if !labels.dtype().is_integer() {
        let expected = "an integer dtype, one class number a row; softmax_cross_entropy takes probabilities";
        return Err(Error::dtype(op, "labels", labels.dtype(), expected));
    }
    if labels.shape() != &shape {
        let expected = format!("{shape}: one label for each row of logits of shape {}", logits.shape());
        return Err(Error::shape(op, "labels", labels.shape(), expected));
    }
    let index = |index: i64| {
        let label = usize::try_from(index).ok().filter(|&label| label < classes);
        label.ok_or(Error::Index { op, what: "label".into(), index, size: classes })
    };
    for_dtype!(labels.dtype(), T => labels.to_vec::<T>()?.into_iter().map(|label| index(label.to_i64())).collect())
}

/// `y = ln(sum_j exp(logits_j)) - logits[label]` over the last axis; inputs `logits [.., classes]`, `labels [..]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SparseSoftmaxCrossEntropy;

impl Op for SparseSoftmaxCrossEntropy {
    fn name(&self) -> &'static str {
        SPARSE
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (logits, labels) = (inputs.get(0)?, inputs.get(1)?);
        let real = real_dtype(SPARSE, "logits", logits)?;
        let (shape, classes) = per_row(SPARSE, logits)?;
        let labels = class_labels(SPARSE, logits, labels)?;
        let x = dense(logits, real)?;
        let y = for_real!(real, T => {
            let mut y = take::<T>(labels.len());
            kernels::sparse_cross_entropy(x.as_slice::<T>()?.unwrap_or(&[]), &labels, classes, &mut y);
            Tensor::from_taken(y, shape)
        });
        Ok(y.converted(logits.dtype())?.into())
    }

    /// `dlogits = dy (softmax(logits) - onehot(label))`.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None, None]) };
        let dx = apply(SparseSoftmaxCrossEntropyGradient, [saved.input(0)?, saved.input(1)?, dy])?;
        Ok(vec![Some(Gradient::Dense(dx)), None])
    }
}

impl Listed for SparseSoftmaxCrossEntropy {
    fn samples() -> Vec<Sample> {
        let sample = |lead: &[usize]| {
            let labels = SampleInput::Index { shape: lead.to_vec(), below: 4 };
            Sample::new(SparseSoftmaxCrossEntropy, [SampleInput::float(&[lead, &[4]].concat()), labels])
        };
        vec![sample(&[3]), sample(&[2, 3]), sample(&[])]
    }
}

/// `dlogits = dy (softmax(logits) - onehot(label))`; inputs `logits [.., classes]`, `labels [..]`, `dy [..]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SparseSoftmaxCrossEntropyGradient;

impl Op for SparseSoftmaxCrossEntropyGradient {
    fn name(&self) -> &'static str {
        "sparse_softmax_cross_entropy_gradient"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (logits, labels, dy) = (inputs.get(0)?, inputs.get(1)?, inputs.get(2)?);
        let real = real_dtype(SPARSE, "logits", logits)?;
        let (_, classes) = per_row(SPARSE, logits)?;
        check_dtype(SPARSE, "dy", dy, ("logits", logits))?;
        check_shape(SPARSE, "dy", dy, ("labels", labels))?;
        let labels = class_labels(SPARSE, logits, labels)?;
        let (x, dy) = (dense(logits, real)?, dense(dy, real)?);
        let dx = for_real!(real, T => {
            let mut dx = take::<T>(x.size());
            let (x_rows, dy) = (x.as_slice::<T>()?.unwrap_or(&[]), dy.as_slice::<T>()?.unwrap_or(&[]));
            kernels::sparse_cross_entropy_gradient(x_rows, &labels, dy, classes, &mut dx);
            Tensor::from_taken(dx, x.shape().clone())
        });
        Ok(dx.converted(logits.dtype())?.into())
    }

    /// With `g` the gradient of `dlogits` and `p = softmax(logits)`: that of `dy` is `sum(g (p - onehot(label)))`, and
    /// that of `logits` is `dy p (g - sum(g p))`.
    fn gradient(&self, saved: &Saved, g: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(g)) = g.first() else { return Ok(vec![None, None, None]) };
        let (logits, labels, dy) = (saved.input(0)?, saved.input(1)?, saved.input(2)?);
        let unit = |logits: &Tensor| {
            let ones = Tensor::ones(dy.shape().clone(), dy.dtype())?;
            apply(SparseSoftmaxCrossEntropyGradient, [logits, labels, &ones])
        };
        second_order(logits, dy, g, [needs.has(0), needs.has(2)], unit)
            .map(|[of_logits, of_dy]| vec![of_logits, None, of_dy])
    }
}

impl Listed for SparseSoftmaxCrossEntropyGradient {
    fn samples() -> Vec<Sample> {
        let labels = SampleInput::Index { shape: vec![2, 3], below: 4 };
        let inputs = [SampleInput::float(&[2, 3, 4]), labels, SampleInput::float(&[2, 3])];
        vec![Sample::new(SparseSoftmaxCrossEntropyGradient, inputs)]
    }
}
