//! Mean absolute error.

use crate::error::Result;
use crate::tensor::Tensor;

use super::check_pair;

/// Mean absolute error over the last axis: `loss = mean_j |predictions_j - targets_j|`.
///
/// | tensor        | shape                                |
/// |---------------|--------------------------------------|
/// | `predictions` | `[.., n]`, a float dtype             |
/// | `targets`     | as `predictions`                     |
/// | result        | `[..]`, the dtype of `predictions`   |
///
/// The gradient is 0 where the two are equal.
///
/// # Errors
/// The two differ in shape or dtype, are scalars, or are not floats.
pub fn mean_absolute_error(predictions: &Tensor, targets: &Tensor) -> Result<Tensor> {
    check_pair("mean_absolute_error", ("predictions", predictions), targets)?;
    (predictions - targets)?.abs()?.mean_axes(-1, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GradientTape;

    #[test]
    fn the_last_axis_is_averaged_and_a_hit_has_no_gradient() {
        let x = Tensor::from([[1.0f64, 2.0], [3.0, 5.0]]);
        let y = Tensor::from([[1.0f64, 4.0], [0.0, 4.0]]);
        let tape = GradientTape::new();
        tape.watch(&x);
        let loss = mean_absolute_error(&x, &y).unwrap();
        // (0 + 2) / 2 and (3 + 1) / 2.
        assert_eq!(loss.to_vec::<f64>().unwrap(), [1.0, 2.0]);
        let total = loss.sum().unwrap();
        let dx = tape.gradient(&total, &[&x]).unwrap().remove(0).unwrap();
        assert_eq!(dx.dense().unwrap().to_vec::<f64>().unwrap(), [0.0, -0.5, 0.5, 0.5]);
    }
}
