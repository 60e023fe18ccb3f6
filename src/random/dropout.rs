//! Dropout: the mask is drawn here, the rest is an op.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{Dropout, apply};
use crate::tensor::{Shape, Tensor};

use super::current;

impl Tensor {
    /// Inverted dropout: each element is kept with probability `1 - rate` and multiplied by `1 / (1 - rate)`, else it is
    /// exactly 0 (a dropped NaN too), so that the expected value stays.
    ///
    /// Without `is_training`, and for a `rate` of 0, this is the tensor itself and nothing is drawn. The mask is drawn
    /// from the thread's [current generator](crate::random::current) and serves the gradient too.
    ///
    /// `noise_shape` is the shape of the mask, which broadcasts to that of `self`: a dim of 1 keeps or drops the whole
    /// axis together, and `None` stands for the dim of `self`. Without it every element has its own draw.
    ///
    /// Source: Srivastava et al. 2014.
    ///
    /// ```
    /// use couplet::Tensor;
    /// let x = Tensor::from([[1.0f32; 4]; 3]);
    /// let y = x.dropout(0.5, Some(&[None, Some(1)]), true)?;
    /// // Rows are dropped as a whole; what is left is doubled.
    /// for row in y.to_vec::<f32>()?.chunks(4) {
    ///     assert!(row == [0.0; 4] || row == [2.0; 4]);
    /// }
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// In training only: `rate` lies outside `[0, 1)`, the dtype is not a float, or `noise_shape` does not broadcast to
    /// the shape.
    pub fn dropout(
        &self,
        rate: f64,
        noise_shape: Option<&[Option<usize>]>,
        is_training: bool,
    ) -> Result<Tensor> {
        if !is_training {
            return Ok(self.clone());
        }
        if !(0.0..1.0).contains(&rate) {
            return Err(Error::argument("dropout", "rate", rate, "0 or more and below 1"));
        }
        if !self.dtype().is_float() {
            return Err(Error::dtype("dropout", "x", self.dtype(), "a float dtype; convert it with cast"));
        }
        let mask = match noise_shape {
            None => self.shape().clone(),
            Some(dims) => mask_shape(self, dims)?,
        };
        if rate == 0.0 {
            return Ok(self.clone());
        }
        let mask = current().bernoulli(mask, 1.0 - rate, DType::Bool)?;
        apply(Dropout { scale: 1.0 / (1.0 - rate) }, [self, &mask])
    }
}

/// The shape of a mask for `x`.
fn mask_shape(x: &Tensor, dims: &[Option<usize>]) -> Result<Shape> {
    let lead = x.rank().checked_sub(dims.len());
    let shape = lead.and_then(|lead| {
        let dim = |(&own, &dim): (&usize, &Option<usize>)| match dim {
            Some(dim) if dim == own || dim == 1 => Some(dim),
            None if lead == 0 => Some(own),
            _ => None,
        };
        x.shape()[lead..].iter().zip(dims).map(dim).collect::<Option<Shape>>()
    });
    shape.ok_or_else(|| {
        let expected = format!("a shape that broadcasts to {}, or None for a dim of it", x.shape());
        Error::argument("dropout", "noise_shape", format!("{dims:?}"), expected)
    })
}

#[cfg(test)]
mod tests {
    use crate::{DType, GradientTape, Tensor, random};

    fn ones(shape: &[usize]) -> Tensor {
        Tensor::ones(shape, DType::F32).unwrap()
    }

    #[test]
    fn the_kept_part_and_the_sum_are_near_their_expectation() {
        random::set_seed(1);
        for rate in [0.25, 0.5, 0.8] {
            let y = ones(&[10_000]).dropout(rate, None, true).unwrap().to_vec::<f32>().unwrap();
            let kept = y.iter().filter(|&&y| y != 0.0).count();
            assert!((kept as f64 / 10_000.0 - (1.0 - rate)).abs() < 0.03, "{rate}: {kept}");
            assert!(y.iter().all(|&y| y == 0.0 || y == (1.0 / (1.0 - rate)) as f32));
        }
    }

    #[test]
    fn the_gradient_has_the_mask_of_the_forward() {
        random::set_seed(2);
        let x = Tensor::arange(1.0, 101.0, 1.0, DType::F64).unwrap();
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = x.dropout(0.3, None, true).unwrap();
        let total = y.sum().unwrap();
        let dx = tape.gradient(&total, &[&x]).unwrap().remove(0).unwrap();
        let want = (&y / &x).unwrap().to_vec::<f64>().unwrap();
        for (got, want) in dx.dense().unwrap().to_vec::<f64>().unwrap().into_iter().zip(want) {
            assert!((got - want).abs() < 1e-15);
        }
    }

    #[test]
    fn a_dropped_nan_is_zero() {
        random::set_seed(3);
        let x = Tensor::from(vec![f32::NAN; 100]);
        let y = x.dropout(0.5, None, true).unwrap().to_vec::<f32>().unwrap();
        assert!(y.iter().any(|y| y.is_nan()) && y.iter().all(|&y| y.is_nan() || y == 0.0));
    }

    #[test]
    fn evaluation_returns_the_tensor_itself_and_draws_nothing() {
        random::set_seed(4);
        let state = random::current().state();
        let x = Tensor::from([1, 2]);
        assert!(x.dropout(7.0, None, false).unwrap().shares_memory_with(&x));
        let x = ones(&[3]);
        assert!(x.dropout(0.0, None, true).unwrap().shares_memory_with(&x));
        assert_eq!(random::current().state(), state);
    }

    #[test]
    fn what_cannot_be_dropped_is_refused_before_a_draw() {
        random::set_seed(5);
        let state = random::current().state();
        let x = ones(&[3, 4]);
        for rate in [-0.1, 1.0, f64::NAN] {
            let message = x.dropout(rate, None, true).unwrap_err().to_string();
            assert!(message.contains("rate") && message.contains("below 1"), "{message}");
        }
        let message = Tensor::from([1]).dropout(0.5, None, true).unwrap_err().to_string();
        assert!(message.contains("float"), "{message}");
        for noise in [&[Some(2), None][..], &[None], &[Some(1), Some(3), Some(4)]] {
            assert!(x.dropout(0.5, Some(noise), true).is_err());
        }
        assert_eq!(random::current().state(), state);
    }

    #[test]
    fn a_short_noise_shape_is_counted_from_the_last_axis() {
        random::set_seed(6);
        let y = ones(&[3, 40]).dropout(0.5, Some(&[Some(40)]), true).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(y[..40], y[40..80]);
        assert_eq!(y[..40], y[80..]);
    }
}
