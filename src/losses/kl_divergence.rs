//! Kullback-Leibler divergence.

use crate::error::Result;
use crate::tensor::Tensor;

use super::check_pair;

/// Divergence of a prediction from the target distribution:
/// `loss = sum_j targets_j (ln(targets_j) - log_predictions_j)` over the last axis.
///
/// | tensor            | shape                                                               |
/// |-------------------|---------------------------------------------------------------------|
/// | `log_predictions` | `[.., n]`, a float dtype: logarithms, as `log_softmax` gives them   |
/// | `targets`         | as `log_predictions`; not negative, summing to one a row            |
/// | result            | `[..]`, the dtype of `log_predictions`, in nats                     |
///
/// A target of 0 contributes exactly 0, also where its prediction is 0 (a logarithm of minus infinity), and no gradient.
/// Not negative, and 0 only if the two distributions agree (Kullback and Leibler 1951).
///
/// # Errors
/// The two differ in shape or dtype, are scalars, or are not floats.
pub fn kl_divergence(log_predictions: &Tensor, targets: &Tensor) -> Result<Tensor> {
    check_pair("kl_divergence", ("log_predictions", log_predictions), targets)?;
    let counts = targets.not_equal(0.0)?;
    let difference = (counts.where_else(targets, 1.0)?.log()? - counts.where_else(log_predictions, 0.0)?)?;
    (targets * difference)?.sum_axes(-1, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GradientTape;

    #[test]
    fn equal_distributions_cost_nothing_and_zeros_take_no_part() {
        let p = Tensor::from([[0.5f64, 0.5, 0.0], [0.25, 0.0, 0.75]]);
        let q = Tensor::from([[0.5f64, 0.5, 0.0], [0.5, 0.5, 0.0]]);
        let log_p = p.log().unwrap();
        assert_eq!(kl_divergence(&log_p, &p).unwrap().to_vec::<f64>().unwrap(), [0.0, 0.0]);
        let loss = kl_divergence(&log_p, &q).unwrap().to_vec::<f64>().unwrap();
        // Second row: the prediction says 0 where the target has 1/2.
        assert_eq!(loss, [0.0, f64::INFINITY]);
    }

    #[test]
    fn masked_entries_get_no_gradient() {
        let x = Tensor::from([[f64::NEG_INFINITY, 0.3, 0.1]]);
        let target = Tensor::from([[0.0f64, 0.25, 0.75]]);
        let tape = GradientTape::new();
        tape.watch(&x);
        tape.watch(&target);
        let loss = kl_divergence(&x, &target).unwrap();
        let want = 0.25 * (0.25f64.ln() - 0.3) + 0.75 * (0.75f64.ln() - 0.1);
        assert!((loss.to_vec::<f64>().unwrap()[0] - want).abs() < 1e-15);
        let list = tape.gradient(&loss, &[&x, &target]).unwrap();
        let list: Vec<Vec<f64>> =
            list.into_iter().map(|g| g.unwrap().dense().unwrap().to_vec().unwrap()).collect();
        assert_eq!(list[0], [0.0, -0.25, -0.75]);
        let slope = |p: f64, q: f64| p.ln() + 1.0 - q;
        assert_eq!(list[1][0], 0.0);
        assert!(
            (list[1][1] - slope(0.25, 0.3)).abs() < 1e-15 && (list[1][2] - slope(0.75, 0.1)).abs() < 1e-15
        );
    }
}
