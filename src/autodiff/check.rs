//! Gradients against finite differences.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::Gradient;
use crate::tensor::Tensor;

use super::tape::{GradientTape, no_grad};

/// Checks the gradients of `f` at `inputs` against central differences, in `f64`.
///
/// `f` may return any shape: what is differentiated is the sum of its elements with unequal weights. Float inputs are
/// converted to `f64` and differentiated, all others are handed on as they are. An element passes if
///
/// ```text
/// |gradient - difference| <= tolerance * max(1, |gradient|, |difference|)
/// ```
///
/// where the difference is `(f(x + h) - f(x - h)) / 2h` and `h = 6e-6 max(1, |x|)`, the step at which rounding and
/// curvature weigh the same. A smooth function of moderate size passes at 1e-6. An input without a gradient counts as
/// one whose gradient is 0. Second derivatives are checked by an `f` that returns a gradient, taken on a tape inside.
///
/// ```
/// use couplet::{Tensor, autodiff::check_gradients};
/// let (a, b) = (Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]), Tensor::from([0.5f32, -1.0]));
/// check_gradients(|x| (&x[0] * &x[1])?.tanh(), &[&a, &b], 1e-6)?;
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// A gradient is off (the message names the input, the element and both numbers), or `f` fails or returns another
/// dtype than `f64`.
pub fn check_gradients(
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[&Tensor],
    tolerance: f64,
) -> Result<()> {
    let convert = |x: &&Tensor| {
        let x = if x.dtype().is_float() { x.cast(DType::F64)? } else { (*x).clone() };
        Ok(x.stop_gradient())
    };
    let inputs: Vec<Tensor> = no_grad(|| inputs.iter().map(convert).collect::<Result<_>>())?;
    let tape = GradientTape::new();
    let floats = || inputs.iter().enumerate().filter(|(_, x)| x.dtype().is_float());
    floats().for_each(|(_, x)| tape.watch(x));
    let y = f(&inputs)?;
    if y.dtype() != DType::F64 {
        return Err(Error::dtype("check_gradients", "the result of f", y.dtype(), "f64, as its inputs have"));
    }
    let weights = weights(&y)?;
    let sources: Vec<&Tensor> = floats().map(|(_, x)| x).collect();
    let gradients = tape.gradient_with_seed(&y, &weights, &sources)?;
    for ((position, x), gradient) in floats().zip(gradients) {
        let gradient = gradient.map(|g| Gradient::to_dense(&g)).transpose()?;
        let gradient = gradient.map_or_else(|| Ok(vec![0.0; x.size()]), |g| g.to_vec::<f64>())?;
        let values = x.to_vec::<f64>()?;
        for (element, (&at, &dx)) in values.iter().zip(&gradient).enumerate() {
            let step = 6e-6 * at.abs().max(1.0);
            let (above, below) = (at + step, at - step);
            let moved = |to: f64| {
                let mut values = values.clone();
                values[element] = to;
                let mut inputs = inputs.clone();
                inputs[position] = Tensor::from_vec(values, x.shape().clone())?;
                f(&inputs)
            };
            let change = no_grad(|| ((moved(above)? - moved(below)?)? * &weights)?.sum()?.item::<f64>())?;
            let difference = change / (above - below);
            let allowed = tolerance * 1f64.max(dx.abs()).max(difference.abs());
            // NaN fails too.
            if (dx - difference).abs() > allowed || (dx - difference).is_nan() {
                return Err(off(position, x, element, dx, difference));
            }
        }
    }
    Ok(())
}

/// Weights between 1/2 and 3/2 that no symmetry of `y` cancels.
fn weights(y: &Tensor) -> Result<Tensor> {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let weights: Vec<f64> = (1..=y.size()).map(|i| 0.5 + (i as f64 * GOLDEN).fract()).collect();
    Tensor::from_vec(weights, y.shape().clone())
}

fn off(position: usize, x: &Tensor, element: usize, gradient: f64, difference: f64) -> Error {
    let mut rest = element;
    let mut index = vec![0; x.rank()];
    for (i, &dim) in index.iter_mut().zip(x.shape().iter()).rev() {
        *i = rest % dim;
        rest /= dim;
    }
    Error::usage(
        "check_gradients",
        format!(
            "at element {index:?} of input {position} the gradient is {gradient:e}, but finite differences give {difference:e}"
        ),
        "correct the gradient, or take inputs away from kinks and poles",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Saved, Saves, Unary, apply};

    /// A cube with a gradient that is right or half of it.
    #[derive(Debug, serde::Serialize, serde::Deserialize)]
    struct Cube {
        right: bool,
    }

    impl Unary for Cube {
        const NAME: &'static str = "cube";
        const SAVES: Saves = Saves::INPUTS;

        fn forward(&self, x: Tensor) -> Result<Tensor> {
            no_grad(|| (&x * &x)? * &x)
        }

        fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
            let x = saved.input(0)?;
            ((dy * x)? * x)? * if self.right { 3.0 } else { 1.5 }
        }
    }

    #[test]
    fn a_right_gradient_passes_and_a_wrong_one_is_named() {
        let x = Tensor::from([[0.0f32, 2.0], [-1.0, 0.5]]);
        check_gradients(|x| apply(Cube { right: true }, [&x[0]]), &[&x], 1e-6).unwrap();
        let e =
            check_gradients(|x| apply(Cube { right: false }, [&x[0]]), &[&x], 1e-6).unwrap_err().to_string();
        assert!(e.contains("element [0, 1] of input 0"), "{e}");
    }

    #[test]
    fn a_missing_gradient_is_zero_and_integers_are_left_alone() {
        let (x, n) = (Tensor::from([1.0f64, 2.0]), Tensor::from([1i64, 0]));
        assert!(check_gradients(|x| Ok(x[0].stop_gradient()), &[&x], 1e-6).is_err());
        check_gradients(|x| (&x[0] * 0.0)? + x[1].cast(DType::F64), &[&x, &n], 1e-6).unwrap();
        assert!(
            check_gradients(|x| x[0].cast(DType::F32), &[&x], 1e-6).unwrap_err().to_string().contains("f64")
        );
    }

    #[test]
    fn second_derivatives_are_those_of_a_gradient() {
        let slope = |x: &[Tensor]| {
            let tape = GradientTape::new();
            tape.watch(&x[0]);
            let y = apply(Cube { right: true }, [&x[0]])?.sum()?;
            tape.gradient(&y, &[&x[0]])?.remove(0).expect("y depends on x").to_dense()
        };
        check_gradients(slope, &[&Tensor::from([1.5f64, -2.0])], 1e-6).unwrap();
    }
}
