//! Softmax cross-entropy with class numbers.

use crate::error::Result;
use crate::ops::{SparseSoftmaxCrossEntropy, apply};
use crate::tensor::Tensor;

/// Softmax cross-entropy with the number of the right class: `loss = ln(sum_j exp(logits_j)) - logits[label]`.
///
/// | tensor   | shape                                              |
/// |----------|----------------------------------------------------|
/// | `logits` | `[.., classes]`, a float dtype                     |
/// | `labels` | `[..]`, any integer dtype, each in `0..classes`    |
/// | result   | `[..]`, the dtype of `logits`, in nats             |
///
/// Softmax and logarithm are one op: the loss stays finite for logits of any finite size, and classes masked with minus
/// infinity take no part. The gradient with respect to `logits` is `softmax(logits) - onehot(label)`. This is the
/// negative log-likelihood of the labels (Bridle 1990).
///
/// ```
/// use couplet::{Tensor, losses};
/// let logits = Tensor::from([[2.0f32, 0.0, -1.0], [0.0, 0.0, 0.0]]);
/// let loss = losses::sparse_softmax_cross_entropy(&logits, &Tensor::from([0, 2]))?.to_vec::<f32>()?;
/// assert!((loss[0] - 0.1698).abs() < 1e-4 && (loss[1] - 3f32.ln()).abs() < 1e-6);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `logits` is not of a float dtype or a scalar; `labels` is not of an integer dtype, has not the shape of `logits`
/// without the last axis, or holds a label outside `0..classes`.
pub fn sparse_softmax_cross_entropy(logits: &Tensor, labels: &Tensor) -> Result<Tensor> {
    apply(SparseSoftmaxCrossEntropy, [logits, labels])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, GradientTape};

    #[test]
    fn far_and_masked_logits_give_finite_losses_and_gradients() {
        let far = Tensor::from([[1e4f32, -1e4, 0.0], [f32::NEG_INFINITY, 3.0, 3.0]]);
        let tape = GradientTape::new();
        tape.watch(&far);
        let loss = sparse_softmax_cross_entropy(&far, &Tensor::from([1u8, 2])).unwrap();
        let ln2 = 2f32.ln();
        let got = loss.to_vec::<f32>().unwrap();
        assert!(got[0] == 2e4 && (got[1] - ln2).abs() < 1e-6, "{got:?}");
        let total = loss.sum().unwrap();
        let dx = tape.gradient(&total, &[&far]).unwrap().remove(0).unwrap();
        let dx = dx.dense().unwrap().to_vec::<f32>().unwrap();
        assert_eq!(dx, [1.0, -1.0, 0.0, 0.0, 0.5, -0.5]);
    }

    #[test]
    fn every_integer_dtype_serves_as_labels() {
        let logits = Tensor::from([[1.0f64, 2.0, 3.0], [3.0, 2.0, 1.0]]);
        let labels = Tensor::from([2i64, 0]);
        let want = sparse_softmax_cross_entropy(&logits, &labels).unwrap().to_vec::<f64>().unwrap();
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_integer()) {
            let labels = labels.cast(dtype).unwrap();
            let got = sparse_softmax_cross_entropy(&logits, &labels).unwrap().to_vec::<f64>().unwrap();
            assert_eq!(got, want, "{dtype}");
        }
    }

    #[test]
    fn a_label_out_of_range_is_named_with_the_range() {
        let logits = Tensor::zeros([2, 3], DType::F32).unwrap();
        let message =
            |labels: Tensor| sparse_softmax_cross_entropy(&logits, &labels).unwrap_err().to_string();
        let start = "sparse_softmax_cross_entropy: ";
        assert_eq!(message(Tensor::from([0, 3])), format!("{start}label 3 is out of range, expected 0 to 2"));
        assert_eq!(
            message(Tensor::from([-1, 0])),
            format!("{start}label -1 is out of range, expected 0 to 2")
        );
        assert!(
            message(Tensor::from([0.0f32, 1.0])).contains("labels has dtype f32, expected an integer dtype")
        );
        assert!(message(Tensor::from([[0], [1]])).contains("labels has shape [2, 1], expected [2]"));
    }

    #[test]
    fn no_rows_give_no_losses() {
        let logits = Tensor::zeros([0, 3], DType::F32).unwrap();
        let labels = Tensor::zeros([0], DType::I32).unwrap();
        assert_eq!(sparse_softmax_cross_entropy(&logits, &labels).unwrap().shape(), &[0]);
    }
}
