//! Derivatives with respect to structures of tensors.

use crate::autodiff::GradientTape;
use crate::error::Result;
use crate::tensor::Tensor;

use super::tree::{Tree, distinct};

/// The scalar that `f` computes from `at`, and its gradients with respect to the tensors in `at`, in the same structure.
///
/// Only what `f` is given is differentiated: other tensors and variables that it uses are constants. Calls nest, for
/// derivatives of any order.
///
/// ```
/// use couplet::{functional::value_and_grad, prelude::*};
/// let at = (Tensor::from(3.0f32), Tensor::from(5.0f32));
/// let (y, (da, db)) = value_and_grad(|(a, b)| a.square()? * b, &at)?;
/// assert_eq!(y.item::<f32>()?, 45.0);
/// assert_eq!(da.expect("2 a b").dense()?.item::<f32>()?, 30.0);
/// assert_eq!(db.expect("a^2").dense()?.item::<f32>()?, 9.0);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `f` fails, or its result is not a scalar of a float dtype.
pub fn value_and_grad<T: Tree>(
    f: impl FnOnce(&T) -> Result<Tensor>,
    at: &T,
) -> Result<(Tensor, T::Gradients)> {
    let ((y, ()), gradients) = value_and_grad_with_aux(|at| Ok((f(at)?, ())), at)?;
    Ok((y, gradients))
}

/// As [`value_and_grad`], for a function that returns something else beside its scalar, such as the next state of
/// [`transform_with_state`](super::transform_with_state).
///
/// ```
/// use couplet::{functional::value_and_grad_with_aux, prelude::*};
/// let x = Tensor::from(3.0f32);
/// let f = |x: &Tensor| Ok((x.square()?, "aux"));
/// let ((y, aux), dx) = value_and_grad_with_aux(f, &x)?;
/// assert_eq!((y.item::<f32>()?, aux), (9.0, "aux"));
/// assert_eq!(dx.expect("2 x").dense()?.item::<f32>()?, 6.0);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// As there.
pub fn value_and_grad_with_aux<T: Tree, A>(
    f: impl FnOnce(&T) -> Result<(Tensor, A)>,
    at: &T,
) -> Result<((Tensor, A), T::Gradients)> {
    let at = distinct(at)?;
    let mut leaves = Vec::new();
    at.leaves(&mut leaves);
    let tape = GradientTape::new().watch_accessed_variables(false);
    leaves.iter().for_each(|leaf| tape.watch(leaf));
    let (y, aux) = f(&at)?;
    let mut found = tape.gradient(&y, &leaves)?.into_iter();
    let gradients = at.gradients(&mut || found.next().flatten());
    Ok(((y, aux), gradients))
}

/// The gradients of the scalar that `f` computes from `at`, as in [`value_and_grad`].
///
/// ```
/// use couplet::{functional::grad, prelude::*};
/// let x = Tensor::from(3.0f64);
/// let first = |x: &Tensor| grad(|x| x.square()? * x, x)?.expect("3 x^2").to_dense();
/// assert_eq!(first(&x)?.item::<f64>()?, 27.0);
/// assert_eq!(grad(first, &x)?.expect("6 x").dense()?.item::<f64>()?, 18.0);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// As there.
pub fn grad<T: Tree>(f: impl FnOnce(&T) -> Result<Tensor>, at: &T) -> Result<T::Gradients> {
    value_and_grad(f, at).map(|(_, gradients)| gradients)
}
