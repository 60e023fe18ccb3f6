//! Sigmoid cross-entropy.

use crate::error::Result;
use crate::ops::{SigmoidCrossEntropy, apply};
use crate::tensor::Tensor;

/// Cross-entropy of independent yes-or-no questions:
/// `loss = -labels ln(sigmoid(logits)) - (1 - labels) ln(1 - sigmoid(logits))`.
///
/// | tensor   | shape                                           |
/// |----------|-------------------------------------------------|
/// | `logits` | any, a float dtype                              |
/// | `labels` | as `logits`; probabilities of yes, in `[0, 1]`  |
/// | result   | as `logits`: one value a question, in nats      |
///
/// Finite for logits of any finite size. Unlike the other losses it keeps the last axis: take the mean or the sum over
/// the questions of an example with `mean_axes` or `sum_axes`.
///
/// # Errors
/// `logits` is not of a float dtype; `labels` has another shape or dtype.
pub fn sigmoid_cross_entropy(logits: &Tensor, labels: &Tensor) -> Result<Tensor> {
    apply(SigmoidCrossEntropy, [logits, labels])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_logits_cost_their_distance_or_nothing() {
        let logits = Tensor::from([1e4f32, 1e4, -1e4, -1e4, 0.0]);
        let labels = Tensor::from([0.0f32, 1.0, 0.0, 1.0, 0.5]);
        let loss = sigmoid_cross_entropy(&logits, &labels).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(loss, [1e4, 0.0, 0.0, 1e4, 2f32.ln()]);
    }

    #[test]
    fn shapes_are_not_broadcast() {
        let (logits, labels) = (Tensor::from([[1.0f32], [2.0]]), Tensor::from([1.0f32, 0.0]));
        let message = sigmoid_cross_entropy(&logits, &labels).unwrap_err().to_string();
        assert!(message.contains("labels has shape [2], expected [2, 1], that of logits"), "{message}");
    }
}
