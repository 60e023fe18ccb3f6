//! Softmax and sigmoid cross-entropy, fused with the function in front of them.

mod dense;
mod sigmoid;
mod sparse;

pub(crate) use dense::{SoftmaxCrossEntropy, SoftmaxCrossEntropyGradient};
pub(crate) use sigmoid::SigmoidCrossEntropy;
pub(crate) use sparse::{SparseSoftmaxCrossEntropy, SparseSoftmaxCrossEntropyGradient};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor};

use super::gradient::Gradient;
use super::softmax::softmax_gradient;

/// The shape of one value a row: that of `logits` without the last axis.
fn per_row(op: &'static str, logits: &Tensor) -> Result<(Shape, usize)> {
    match logits.shape().split_last() {
        Some((&classes, rows)) => Ok((Shape::from(rows), classes)),
        None => Err(Error::shape(op, "logits", logits.shape(), "rank 1 or more, the classes last")),
    }
}

/// Contiguous elements in the dtype to compute in; not recorded.
fn ready(x: &Tensor, like: DType) -> Result<Tensor> {
    Ok(x.converted(like)?.to_contiguous())
}

/// Gradients of `dlogits = dy (w softmax(logits) - labels)` with respect to `logits` and `dy`, given `g`, that of
/// `dlogits`, and the `weight` `dy w` of each row; `unit` computes `w softmax(logits) - labels`.
fn second_order(
    logits: &Tensor,
    weight: &Tensor,
    g: &Tensor,
    needs: [bool; 2],
    unit: impl Fn() -> Result<Tensor>,
) -> Result<[Option<Gradient>; 2]> {
    let of_logits = match needs[0] {
        true => {
            let through = softmax_gradient(logits.rank() - 1, &logits.softmax(-1)?, g)?;
            Some(Gradient::Dense((weight.expand_dims(-1)? * through)?))
        }
        false => None,
    };
    let of_dy = match needs[1] {
        true => Some(Gradient::Dense((g * unit()?)?.sum_axes(-1, false)?)),
        false => None,
    };
    Ok([of_logits, of_dy])
}
