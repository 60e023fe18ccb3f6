//! Softmax cross-entropy with distributions.

use crate::error::Result;
use crate::ops::{SoftmaxCrossEntropy, apply};
use crate::tensor::Tensor;

/// Softmax cross-entropy with a distribution over the classes: `loss = -sum_j labels_j log_softmax(logits)_j`.
///
/// | tensor   | shape                                                            |
/// |----------|------------------------------------------------------------------|
/// | `logits` | `[.., classes]`, a float dtype                                   |
/// | `labels` | as `logits`; not negative, usually summing to one a row           |
/// | result   | `[..]`, the dtype of `logits`, in nats                           |
///
/// Softmax and logarithm are one op: the loss stays finite for logits of any finite size, and a class whose label is 0
/// may be masked with minus infinity. The gradient with respect to `logits` is `softmax(logits) sum(labels) - labels`, so
/// that labels may carry weights; that with respect to `labels` is `-log_softmax(logits)`.
///
/// # Errors
/// `logits` is not of a float dtype or a scalar; `labels` has another shape or dtype.
pub fn softmax_cross_entropy(logits: &Tensor, labels: &Tensor) -> Result<Tensor> {
    apply(SoftmaxCrossEntropy, [logits, labels])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::sparse_softmax_cross_entropy;
    use crate::{DType, GradientTape};

    #[test]
    fn one_hot_labels_agree_with_class_numbers() {
        let logits = Tensor::from([[1.0f64, -2.0, 0.5], [4.0, 4.0, -1e4]]);
        let labels = Tensor::from([[0.0f64, 1.0, 0.0], [1.0, 0.0, 0.0]]);
        let dense = softmax_cross_entropy(&logits, &labels).unwrap().to_vec::<f64>().unwrap();
        let sparse = sparse_softmax_cross_entropy(&logits, &Tensor::from([1, 0])).unwrap();
        assert_eq!(dense, sparse.to_vec::<f64>().unwrap());
    }

    #[test]
    fn a_masked_class_with_label_zero_takes_no_part() {
        let logits = Tensor::from([[f32::NEG_INFINITY, 1.0, 1.0]]);
        let labels = Tensor::from([[0.0f32, 0.5, 0.5]]);
        let tape = GradientTape::new();
        tape.watch(&logits);
        let loss = softmax_cross_entropy(&logits, &labels).unwrap();
        assert!((loss.to_vec::<f32>().unwrap()[0] - 2f32.ln()).abs() < 1e-6);
        let dx = tape.gradient(&loss, &[&logits]).unwrap().remove(0).unwrap();
        assert_eq!(dx.dense().unwrap().to_vec::<f32>().unwrap(), [0.0; 3]);
    }

    #[test]
    fn weighted_labels_scale_loss_and_gradient() {
        let logits = Tensor::from([[0.5f64, -1.0, 2.0]]);
        let gradient = |labels: [f64; 3]| {
            let tape = GradientTape::new();
            tape.watch(&logits);
            let loss = softmax_cross_entropy(&logits, &Tensor::from([labels])).unwrap();
            let dx = tape.gradient(&loss, &[&logits]).unwrap().remove(0).unwrap();
            let dx = dx.dense().unwrap().to_vec::<f64>().unwrap();
            (loss.to_vec::<f64>().unwrap()[0], dx)
        };
        let (one, three) = (gradient([0.0, 1.0, 0.0]), gradient([0.0, 3.0, 0.0]));
        assert!((3.0 * one.0 - three.0).abs() < 1e-15);
        assert!(one.1.iter().zip(&three.1).all(|(one, three)| (3.0 * one - three).abs() < 1e-15));
    }

    #[test]
    fn labels_of_another_shape_or_dtype_are_refused() {
        let logits = Tensor::zeros([2, 3], DType::F32).unwrap();
        assert!(softmax_cross_entropy(&logits, &Tensor::zeros([3], DType::F32).unwrap()).is_err());
        let message =
            softmax_cross_entropy(&logits, &Tensor::zeros([2, 3], DType::I32).unwrap()).unwrap_err();
        assert!(message.to_string().contains("labels has dtype i32, expected f32"), "{message}");
        assert!(softmax_cross_entropy(&Tensor::from(0.0f32), &Tensor::from(1.0f32)).is_err());
    }
}
