//! Mean squared error.

use crate::error::Result;
use crate::tensor::Tensor;

use super::check_pair;

/// Mean squared error over the last axis: `loss = mean_j (predictions_j - targets_j)^2`.
///
/// | tensor        | shape                                |
/// |---------------|--------------------------------------|
/// | `predictions` | `[.., n]`, a float dtype             |
/// | `targets`     | as `predictions`                     |
/// | result        | `[..]`, the dtype of `predictions`   |
///
/// For a batch of plain numbers (`[n]`) this is one scalar for the batch.
///
/// # Errors
/// The two differ in shape or dtype, are scalars, or are not floats.
pub fn mean_squared_error(predictions: &Tensor, targets: &Tensor) -> Result<Tensor> {
    check_pair("mean_squared_error", ("predictions", predictions), targets)?;
    (predictions - targets)?.square()?.mean_axes(-1, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_axis_is_averaged() {
        let x = Tensor::from([[1.0f64, 2.0], [3.0, 5.0]]);
        let y = Tensor::from([[1.0f64, 4.0], [0.0, 4.0]]);
        // (0 + 4) / 2 and (9 + 1) / 2.
        assert_eq!(mean_squared_error(&x, &y).unwrap().to_vec::<f64>().unwrap(), [2.0, 5.0]);
    }

    #[test]
    fn shapes_that_would_broadcast_are_refused() {
        let (x, y) = (Tensor::from([[1.0f32], [2.0]]), Tensor::from([1.0f32, 2.0]));
        let message = mean_squared_error(&x, &y).unwrap_err().to_string();
        let expected = "mean_squared_error: targets has shape [2], expected [2, 1], that of predictions";
        assert_eq!(message, expected);
        assert!(mean_squared_error(&Tensor::from([1]), &Tensor::from([1])).is_err());
        assert!(mean_squared_error(&Tensor::from(1.0f32), &Tensor::from(1.0f32)).is_err());
    }
}
