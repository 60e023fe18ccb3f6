//! Functions that change gradients and leave values alone, or nearly so.

use crate::autodiff::custom_gradient;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// `y = t`, with the gradient `dt = scale dy`: 0 blocks it, a negative number turns it around.
///
/// ```
/// use couplet::{GradientTape, Tensor, nn::scale_gradient};
/// let t = Tensor::from(3.0f64);
/// let tape = GradientTape::new();
/// tape.watch(&t);
/// let y = scale_gradient(&t, 0.5)?.square()?;
/// let dt = tape.gradient(&y, &[&t])?.remove(0).expect("depends on t");
/// assert_eq!(dt.dense()?.item::<f64>()?, 3.0);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `scale` is not finite.
pub fn scale_gradient(t: &Tensor, scale: f64) -> Result<Tensor> {
    if !scale.is_finite() {
        return Err(Error::argument("scale_gradient", "scale", scale, "a finite number"));
    }
    custom_gradient(&[t], |inputs| {
        let y = inputs[0].clone();
        Ok((y, move |dy: &Tensor| Ok(vec![Some((dy * scale)?)])))
    })
}

/// `y = max(min(t, clip_value_max), clip_value_min)`, through which a gradient passes unless a step against it would push a
/// clipped value further out.
///
/// So a value outside of the range can be drawn back by the loss, which clipping proper prevents: `dt` is 0 where `t` is below
/// and `dy` above 0, or `t` above and `dy` below 0, and `dy` elsewhere. It is written for minimisation.
///
/// ```
/// use couplet::{GradientTape, Tensor, nn::leaky_clip_by_value};
/// let t = Tensor::from([-0.5f32, 0.5, 1.5]);
/// let tape = GradientTape::new();
/// tape.watch(&t);
/// let y = leaky_clip_by_value(&t, 0.0, 1.0)?;
/// let dt = tape.gradient(&y.sum()?, &[&t])?.remove(0).expect("depends on t");
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
/// assert_eq!(dt.dense()?.to_vec::<f32>()?, [0.0, 1.0, 1.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// A bound is NaN, or `t` is not of a float dtype.
pub fn leaky_clip_by_value(t: &Tensor, clip_value_min: f64, clip_value_max: f64) -> Result<Tensor> {
    const OP: &str = "leaky_clip_by_value";
    if clip_value_min.is_nan() || clip_value_max.is_nan() {
        let got = format!("{clip_value_min} and {clip_value_max}");
        return Err(Error::argument(OP, "clip_value_min and clip_value_max", got, "numbers"));
    }
    if !t.dtype().is_float() {
        return Err(Error::dtype(OP, "t", t.dtype(), "a float dtype"));
    }
    custom_gradient(&[t], |inputs| {
        let t = inputs[0].clone();
        let y = t.minimum(clip_value_max)?.maximum(clip_value_min)?;
        let gradient = move |dy: &Tensor| {
            let below = t.less(clip_value_min)?.logical_and(&dy.greater(0.0)?)?;
            let above = t.greater(clip_value_max)?.logical_and(&dy.less(0.0)?)?;
            let zeros = Tensor::zeros(dy.shape().clone(), dy.dtype())?;
            Ok(vec![Some(below.logical_or(&above)?.where_else(&zeros, dy)?)])
        };
        Ok((y, gradient))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GradientTape;

    #[test]
    fn the_scale_applies_once_for_each_differentiation() -> Result<()> {
        let t = Tensor::from(3.0f64);
        let (outer, inner) = (GradientTape::new(), GradientTape::new());
        outer.watch(&t);
        inner.watch(&t);
        let y = scale_gradient(&t, 0.5)?;
        let y = (y.square()? * &y)?;
        let first = inner.gradient(&y, &[&t])?.remove(0).expect("depends on t").to_dense()?;
        let second = outer.gradient(&first, &[&t])?.remove(0).expect("depends on t").to_dense()?;
        // 3 t^2 / 2 and 6 t / 4.
        assert_eq!((first.item::<f64>()?, second.item::<f64>()?), (13.5, 4.5));
        assert!(scale_gradient(&t, f64::NAN).is_err());
        Ok(())
    }

    #[test]
    fn clipped_values_may_be_drawn_back_but_not_pushed_on() -> Result<()> {
        let t = Tensor::from([-0.5f64, 0.0, 0.5, 1.0, 1.5]);
        let run = |seed: f64| -> Result<Vec<f64>> {
            let tape = GradientTape::new();
            tape.watch(&t);
            let y = leaky_clip_by_value(&t, 0.0, 1.0)?;
            let seed = Tensor::full([5], seed, t.dtype())?;
            tape.gradient_with_seed(&y, &seed, &[&t])?.remove(0).expect("depends on t").to_dense()?.to_vec()
        };
        assert_eq!(run(1.0)?, [0.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(run(-1.0)?, [-1.0, -1.0, -1.0, -1.0, 0.0]);
        // The lower bound wins.
        assert_eq!(leaky_clip_by_value(&t, 2.5, 1.5)?.to_vec::<f64>()?, [2.5; 5]);
        Ok(())
    }
}
