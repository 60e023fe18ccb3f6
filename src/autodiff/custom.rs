//! Functions with a gradient of the caller's own.

use std::fmt;

use serde::ser::Error as _;

use crate::error::{Error, Result};
use crate::ops::record::Pause;
use crate::ops::{Computed, Gradient, Inputs, Mask, Op, Saved};
use crate::tensor::Tensor;

/// From the gradient of the output to those of the inputs, `None` where there is none.
type GradientFn = Box<dyn Fn(&Tensor) -> Result<Vec<Option<Tensor>>> + Send + Sync>;

/// The result of a user's function, to be recorded with the gradient that came with it.
struct Custom {
    y: Tensor,
    gradient: GradientFn,
    inputs: usize,
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomGradient(<closure>)")
    }
}

impl serde::Serialize for Custom {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("a custom_gradient holds a closure, which cannot be written to a file"))
    }
}

impl Op for Custom {
    fn name(&self) -> &'static str {
        "custom_gradient"
    }

    fn forward(&self, _: &mut Inputs<'_, '_>) -> Result<Computed> {
        Ok(self.y.clone().into())
    }

    fn gradient(&self, _: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok((0..self.inputs).map(|_| None).collect()) };
        let gradients = (self.gradient)(dy)?;
        if gradients.len() != self.inputs {
            let problem =
                format!("the gradient returned {} entries for {} inputs", gradients.len(), self.inputs);
            return Err(Error::usage("custom_gradient", problem, "return one entry for each input"));
        }
        Ok(gradients.into_iter().map(|g| g.map(Gradient::Dense)).collect())
    }
}

/// Computes `f(inputs)`, which returns its result and the function from `dy` to the gradients of the inputs.
///
/// What `f` computes inside is not recorded; what the gradient function computes is, on outer tapes, so that second
/// derivatives follow from it.
///
/// ```
/// use couplet::{GradientTape, Tensor, autodiff::custom_gradient};
/// // log(1 + e^x), whose gradient written naively overflows.
/// let log1pexp = |x: &Tensor| {
///     custom_gradient(&[x], |inputs| {
///         let x = inputs[0].clone();
///         let y = (x.exp()? + 1.0)?.log()?;
///         Ok((y, move |dy: &Tensor| Ok(vec![Some((dy * x.sigmoid())?)])))
///     })
/// };
/// let x = Tensor::from(100.0f32);
/// let tape = GradientTape::new();
/// tape.watch(&x);
/// let dx = tape.gradient(&log1pexp(&x)?, &[&x])?.remove(0);
/// assert_eq!(dx.expect("depends on x").dense()?.item::<f32>()?, 1.0);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `f` fails. A gradient function that returns another number of entries than there are inputs is an error of
/// [`gradient`](crate::GradientTape::gradient).
pub fn custom_gradient<G>(
    inputs: &[&Tensor],
    f: impl FnOnce(&[&Tensor]) -> Result<(Tensor, G)>,
) -> Result<Tensor>
where
    G: Fn(&Tensor) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
{
    let (y, gradient) = {
        let _pause = Pause::new();
        f(inputs)?
    };
    let op = Custom { y: y.fresh(), gradient: Box::new(gradient), inputs: inputs.len() };
    let mut outputs = crate::ops::apply_many(op, inputs.iter().copied())?;
    Ok(outputs.remove(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GradientTape;

    /// `x` forward, and `scale dy` backward.
    fn scaled(x: &Tensor, scale: f64) -> Result<Tensor> {
        custom_gradient(&[x], |inputs| {
            let x = inputs[0].clone();
            Ok((x.clone(), move |dy: &Tensor| Ok(vec![Some((dy * scale)?)])))
        })
    }

    #[test]
    fn the_given_gradient_replaces_that_of_the_function() -> Result<()> {
        let x = Tensor::from(3.0f64);
        let (outer, inner) = (GradientTape::new(), GradientTape::new());
        outer.watch(&x);
        inner.watch(&x);
        let y = scaled(&x, 0.5)?;
        let y = ((&y * &y)? * &y)?; // 3 x^2 * 0.5 = 13.5
        let first = inner.gradient(&y, &[&x])?.remove(0).unwrap().to_dense()?;
        assert_eq!(first.item::<f64>()?, 13.5);
        // 6 x * 0.5 * 0.5 = 4.5: the scale applies once for each differentiation.
        assert_eq!(outer.gradient(&first, &[&x])?.remove(0).unwrap().to_dense()?.item::<f64>()?, 4.5);
        Ok(())
    }

    #[test]
    fn a_gradient_of_the_wrong_length_is_an_error() -> Result<()> {
        let x = Tensor::from(3.0f64);
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = custom_gradient(&[&x], |inputs| Ok((inputs[0].clone(), |_: &Tensor| Ok(vec![]))))?;
        assert!(tape.gradient(&y, &[&x]).unwrap_err().to_string().contains("one entry for each input"));
        Ok(())
    }
}
