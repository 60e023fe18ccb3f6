//! Huber loss.

use crate::error::{Error, Result};
use crate::tensor::Tensor;

use super::check_pair;

/// Huber loss over the last axis: the mean of `e^2 / 2` where `|e| <= delta` and of `delta (|e| - delta / 2)` beyond, for
/// `e = predictions - targets`.
///
/// | tensor        | shape                                |
/// |---------------|--------------------------------------|
/// | `predictions` | `[.., n]`, a float dtype             |
/// | `targets`     | as `predictions`                     |
/// | result        | `[..]`, the dtype of `predictions`   |
///
/// Quadratic near the target and linear far away, so that outliers pull with bounded force (Huber 1964). `delta` is in
/// the units of the targets, finite and above 0.
///
/// # Errors
/// The two differ in shape or dtype, are scalars, or are not floats; `delta` is not finite and above 0.
pub fn huber(predictions: &Tensor, targets: &Tensor, delta: f64) -> Result<Tensor> {
    check_pair("huber", ("predictions", predictions), targets)?;
    if !(delta.is_finite() && delta > 0.0) {
        return Err(Error::argument("huber", "delta", delta, "a finite number above 0"));
    }
    let distance = (predictions - targets)?.abs()?;
    // With q = min(|e|, delta), both branches are q^2 / 2 + delta (|e| - q).
    let near = distance.minimum(delta)?;
    let far = ((distance - &near)? * delta)?;
    ((near.square()? * 0.5)? + far)?.mean_axes(-1, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GradientTape;

    #[test]
    fn it_is_quadratic_near_and_linear_far() {
        let x = Tensor::from([[1.0f64], [2.0], [-5.0], [1e4]]);
        let y = Tensor::from([[0.0f64], [0.0], [0.0], [0.0]]);
        let tape = GradientTape::new();
        tape.watch(&x);
        let loss = huber(&x, &y, 2.0).unwrap();
        // 1/2, 4/2, 2 (5 - 1), 2 (10000 - 1).
        assert_eq!(loss.to_vec::<f64>().unwrap(), [0.5, 2.0, 8.0, 19998.0]);
        let total = loss.sum().unwrap();
        let dx = tape.gradient(&total, &[&x]).unwrap().remove(0).unwrap();
        assert_eq!(dx.dense().unwrap().to_vec::<f64>().unwrap(), [1.0, 2.0, -2.0, 2.0]);
    }

    #[test]
    fn delta_must_be_above_zero() {
        let x = Tensor::from([1.0f32]);
        for delta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(huber(&x, &x, delta).is_err());
        }
    }
}
