//! Structures of tensors that a function can be differentiated with respect to.

use serde::Serialize;

use crate::error::Result;
use crate::ops::{Computed, Gradient, Inputs, Mask, Op, Saved, apply};
use crate::tensor::Tensor;

use super::{Gradients, Params};

/// A structure of tensors: a tensor, [`Params`], or a tuple or vector of structures. Gradients have the same structure.
///
/// ```
/// use couplet::{functional, prelude::*};
/// let at = (vec![Tensor::from(2.0f32), Tensor::from(3.0f32)], Tensor::from(5.0f32));
/// let (list, last) = functional::grad(|(list, _)| &list[0] * &list[1], &at)?;
/// assert_eq!(list[1].as_ref().expect("list[0]").dense()?.item::<f32>()?, 2.0);
/// assert!(last.is_none());
/// # Ok::<(), couplet::Error>(())
/// ```
pub trait Tree: Sized {
    /// The gradients with respect to its tensors: `Option<Gradient>` for a tensor, [`Gradients`] for [`Params`], tuples and
    /// vectors of them for tuples and vectors.
    type Gradients;

    /// The structure with `f` applied to each tensor.
    ///
    /// # Errors
    /// Those of `f`.
    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<Self>;

    /// The tensors in order.
    fn leaves<'a>(&'a self, leaves: &mut Vec<&'a Tensor>);

    /// The gradients, which come in the order of the tensors.
    fn gradients(&self, next: &mut dyn FnMut() -> Option<Gradient>) -> Self::Gradients;
}

impl Tree for Tensor {
    type Gradients = Option<Gradient>;

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<Self> {
        f(self)
    }

    fn leaves<'a>(&'a self, leaves: &mut Vec<&'a Tensor>) {
        leaves.push(self);
    }

    fn gradients(&self, next: &mut dyn FnMut() -> Option<Gradient>) -> Option<Gradient> {
        next()
    }
}

impl Tree for Params {
    type Gradients = Gradients;

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<Self> {
        self.iter().map(|(path, x)| Ok((path.clone(), f(x)?))).collect()
    }

    fn leaves<'a>(&'a self, leaves: &mut Vec<&'a Tensor>) {
        leaves.extend(self.values());
    }

    fn gradients(&self, next: &mut dyn FnMut() -> Option<Gradient>) -> Gradients {
        self.keys().filter_map(|path| next().map(|gradient| (path.clone(), gradient))).collect()
    }
}

impl<T: Tree> Tree for Vec<T> {
    type Gradients = Vec<T::Gradients>;

    fn map(&self, f: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<Self> {
        self.iter().map(|part| part.map(f)).collect()
    }

    fn leaves<'a>(&'a self, leaves: &mut Vec<&'a Tensor>) {
        self.iter().for_each(|part| part.leaves(leaves));
    }

    fn gradients(&self, next: &mut dyn FnMut() -> Option<Gradient>) -> Vec<T::Gradients> {
        self.iter().map(|part| part.gradients(next)).collect()
    }
}

macro_rules! tuple {
    ($($t:ident $i:tt),*) => {
        impl<$($t: Tree),*> Tree for ($($t,)*) {
            type Gradients = ($($t::Gradients,)*);

            fn map(&self, f: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<Self> {
                Ok(($(self.$i.map(f)?,)*))
            }

            fn leaves<'a>(&'a self, leaves: &mut Vec<&'a Tensor>) {
                $(self.$i.leaves(leaves);)*
            }

            fn gradients(&self, next: &mut dyn FnMut() -> Option<Gradient>) -> Self::Gradients {
                ($(self.$i.gradients(next),)*)
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

/// `y = x`, as another value.
#[derive(Debug, Serialize)]
struct Same;

impl Op for Same {
    fn name(&self) -> &'static str {
        "same"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        Ok(inputs.take(0)?.into())
    }

    /// `dx = dy`.
    fn gradient(&self, _: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        Ok(vec![dy.first().cloned().flatten().map(Gradient::Dense)])
    }
}

/// The structure as another value, so that a tape which watches it does not watch the original. Tapes that track the
/// original track it too.
pub(super) fn distinct<T: Tree>(tree: &T) -> Result<T> {
    tree.map(&mut |x| {
        let y = apply(Same, [x])?;
        Ok(if y.id() == x.id() { y.fresh() } else { y })
    })
}
