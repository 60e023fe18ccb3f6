//! Softmax cross-entropy with one class number a row.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::math::Math;
use crate::kernels::reduce::Number;
use crate::kernels::softmax::{self as kernels, LogSum};
use crate::ops::apply;
use crate::ops::gradient::Gradient;
use crate::ops::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use crate::ops::real::{check_dtype, check_shape, for_real, real_dtype};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::tensor::{Shape, Tensor, take};

use super::{per_row, ready, second_order};

const SPARSE: &str = "sparse_softmax_cross_entropy";

/// The labels, one class number a row, as `i64`; whether they are in range is for the kernel to say.
fn class_labels(logits: &Tensor, labels: &Tensor, shape: &Shape) -> Result<Tensor> {
    if !labels.dtype().is_integer() {
        let expected = "an integer dtype, one class number a row; softmax_cross_entropy takes probabilities";
        return Err(Error::dtype(SPARSE, "labels", labels.dtype(), expected));
    }
    if labels.shape() != shape {
        let expected = format!("{shape}: one label for each row of logits of shape {}", logits.shape());
        return Err(Error::shape(SPARSE, "labels", labels.shape(), expected));
    }
    ready(labels, DType::I64)
}

/// The loss of each row, and what the gradient needs of it.
fn losses<T: Math + Number<Wide = f64>>(
    x: &[T],
    classes: usize,
    labels: &[i64],
    y: &mut [T],
) -> Result<Vec<LogSum<T>>> {
    let mut sums = vec![LogSum::default(); labels.len()];
    match kernels::sparse(x, classes, labels, y, &mut sums) {
        Ok(()) => Ok(sums),
        Err(row) => Err(Error::Index { op: SPARSE, what: "label".into(), index: labels[row], size: classes }),
    }
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
        let (x, labels) = (ready(logits, real)?, class_labels(logits, labels, &shape)?);
        let labels = labels.as_slice::<i64>()?.unwrap_or(&[]);
        let y = for_real!(real, T => {
            let mut y = take::<T>(labels.len());
            losses(x.as_slice::<T>()?.unwrap_or(&[]), classes, labels, &mut y)?;
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
///
/// The sums behind the softmax are taken again instead of kept: a pass over the logits, so that this is a function of its
/// inputs alone.
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
        let (shape, classes) = per_row(SPARSE, logits)?;
        check_dtype(SPARSE, "dy", dy, ("logits", logits))?;
        check_shape(SPARSE, "dy", dy, ("labels", labels))?;
        let labels = class_labels(logits, labels, &shape)?;
        let labels = labels.as_slice::<i64>()?.unwrap_or(&[]);
        let (x, dy) = (ready(logits, real)?, ready(dy, real)?);
        let dx = for_real!(real, T => {
            let (mut y, mut dx) = (take::<T>(labels.len()), take::<T>(x.size()));
            let (x_rows, dy) = (x.as_slice::<T>()?.unwrap_or(&[]), dy.as_slice::<T>()?.unwrap_or(&[]));
            let sums = losses(x_rows, classes, labels, &mut y)?;
            kernels::sparse_gradient(x_rows, classes, labels, &sums, dy, &mut dx);
            Tensor::from_taken(dx, x.shape().clone())
        });
        Ok(dx.converted(logits.dtype())?.into())
    }

    /// With `g` the gradient of `dlogits` and `p = softmax(logits)`: that of `dy` is `sum(g (p - onehot(label)))`, and
    /// that of `logits` is `dy p (g - sum(g p))`.
    fn gradient(&self, saved: &Saved, g: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(g)) = g.first() else { return Ok(vec![None, None, None]) };
        let (logits, labels, dy) = (saved.input(0)?, saved.input(1)?, saved.input(2)?);
        let unit = || {
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
