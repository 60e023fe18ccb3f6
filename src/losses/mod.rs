//! Losses, one a file.
//!
//! Every loss takes what the model says first and what would be right second, and gives one value for each example (the
//! last axis is reduced; [`sigmoid_cross_entropy`] gives one for each question): take the [`mean`](crate::Tensor::mean) or
//! the [`sum`](crate::Tensor::sum) of them, or weigh the examples first. Inputs are never broadcast against each other,
//! since that hides mistakes: predictions `[n, 1]` and targets `[n]` would silently give `[n, n]`.
//!
//! ```
//! use couplet::{GradientTape, Tensor, losses};
//! let (x, target) = (Tensor::from([[1.0f32, 2.0]]), Tensor::from([[0.0f32, 2.0]]));
//! let tape = GradientTape::new();
//! tape.watch(&x);
//! let loss = losses::mean_squared_error(&x, &target)?.mean()?;
//! let dx = tape.gradient(&loss, &[&x])?.remove(0).expect("the loss depends on x");
//! assert_eq!((loss.item::<f32>()?, dx.dense()?.to_vec::<f32>()?), (0.5, vec![1.0, 0.0]));
//! # Ok::<(), couplet::Error>(())
//! ```

mod huber;
mod kl_divergence;
mod mean_absolute_error;
mod mean_squared_error;
mod sigmoid_cross_entropy;
mod softmax_cross_entropy;
mod sparse_softmax_cross_entropy;

pub use huber::huber;
pub use kl_divergence::kl_divergence;
pub use mean_absolute_error::mean_absolute_error;
pub use mean_squared_error::mean_squared_error;
pub use sigmoid_cross_entropy::sigmoid_cross_entropy;
pub use softmax_cross_entropy::softmax_cross_entropy;
pub use sparse_softmax_cross_entropy::sparse_softmax_cross_entropy;

use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Refuses predictions and targets unless both are floats of one shape of rank 1 or more and one dtype.
fn check_pair(op: &'static str, (name, x): (&'static str, &Tensor), targets: &Tensor) -> Result<()> {
    if !x.dtype().is_float() {
        return Err(Error::dtype(op, name, x.dtype(), "a float dtype; convert it with cast"));
    }
    if targets.dtype() != x.dtype() {
        let expected = format!("{}, that of {name}; convert it with cast", x.dtype());
        return Err(Error::dtype(op, "targets", targets.dtype(), expected));
    }
    if x.rank() == 0 {
        return Err(Error::shape(op, name, x.shape(), "rank 1 or more"));
    }
    if targets.shape() != x.shape() {
        return Err(Error::shape(op, "targets", targets.shape(), format!("{}, that of {name}", x.shape())));
    }
    Ok(())
}
