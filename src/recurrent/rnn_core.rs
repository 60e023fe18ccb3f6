//! What recurrent cores have in common.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::module::{Copies, Description, Edges, Module, Node, Visit};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::getter::seen_dtype;

use super::nest::Nest;

/// One step of a recurrent network: from an input and the state so far to an output and the next state.
///
/// Inputs, outputs and states have the batch as their first axis; a part of the state that is a scalar, such as a count of
/// steps, is shared by the batch. The next state has the structure and the shapes of the one before.
///
/// ```
/// use couplet::prelude::*;
/// let core = LSTM::new(16);
/// let x = Tensor::ones([2, 5], DType::F32)?;
/// let (y, state) = core.step(&x, &core.initial_state(2)?)?;
/// let (y, state) = core.step(&y.narrow(1, 0, 5)?, &state)?;
/// assert_eq!((y.shape(), state.get("cell")?.leaf()?.shape()), (&[2, 16].into(), &[2, 16].into()));
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// A core of one's own:
///
/// ```
/// use couplet::prelude::*;
///
/// /// Adds up what it sees.
/// #[derive(Module)]
/// #[module(allow_empty_variables)]
/// struct Total {
///     scope: Scope,
///     size: usize,
/// }
///
/// #[scoped]
/// impl RNNCore for Total {
///     fn step(&self, x: &Tensor, state: &Nest) -> Result<(Tensor, Nest)> {
///         let y = (x + state.leaf()?)?;
///         Ok((y.clone(), y.into()))
///     }
///
///     fn initial_state(&self, batch_size: usize) -> Result<Nest> {
///         Ok(Tensor::zeros([batch_size, self.size], DType::F32)?.into())
///     }
/// }
///
/// let total = Total { scope: Scope::of::<Total>(), size: 1 };
/// let xs = Tensor::from([[[1.0f32]], [[2.0]], [[3.0]]]); // [steps, batch, size]
/// let (ys, _) = static_unroll(&total, &xs, &total.initial_state(1)?, None)?;
/// assert_eq!(ys.to_vec::<f32>()?, [1.0, 3.0, 6.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
pub trait RNNCore: Module + DynCore {
    /// The output and the next state.
    ///
    /// # Errors
    /// The input or the state does not fit. Nothing is created or changed in that case.
    fn step(&self, x: &Tensor, state: &Nest) -> Result<(Tensor, Nest)>;

    /// The state before the first step, for a batch of this size.
    ///
    /// # Errors
    /// The core's settings are out of their range.
    fn initial_state(&self, batch_size: usize) -> Result<Nest>;

    /// [`step`](Self::step) for cores whose inputs or outputs are nested. Default: a single tensor on both sides.
    ///
    /// # Errors
    /// As for [`step`](Self::step).
    fn step_nested(&self, x: &Nest, state: &Nest) -> Result<(Nest, Nest)> {
        let (y, state) = self.step(x.leaf()?, state)?;
        Ok((y.into(), state))
    }

    /// All steps over a sequence at once, for cores that have a faster way than one step after the other: the outputs, and
    /// the states after each step, both with time as their first axis. [`dynamic_unroll`](super::dynamic_unroll) asks for
    /// it. Default: there is no such way.
    ///
    /// # Errors
    /// As for [`step`](Self::step).
    fn sequence(&self, xs: &Tensor, state: &Nest) -> Result<Option<(Tensor, Nest)>> {
        let _ = (xs, state);
        Ok(None)
    }
}

/// A recurrent network that takes a whole sequence at once.
pub trait UnrolledRNN: Module {
    /// The outputs for a sequence, `[steps, batch, ..]` both, and the state after it.
    ///
    /// # Errors
    /// The sequence or the state does not fit, or there are no steps. Nothing is created or changed in that case.
    fn unroll(&self, input_sequence: &Tensor, initial_state: &Nest) -> Result<(Tensor, Nest)>;

    /// The state before the first step, for a batch of this size.
    ///
    /// # Errors
    /// The network's settings are out of their range.
    fn initial_state(&self, batch_size: usize) -> Result<Nest>;
}

/// Copies of a core behind `dyn RNNCore`. Every core has it.
pub trait DynCore {
    /// A copy in a box.
    #[doc(hidden)]
    fn copy_boxed_core(&self, copies: &mut Copies) -> Box<dyn RNNCore>;
}

impl<T: RNNCore + 'static> DynCore for T {
    fn copy_boxed_core(&self, copies: &mut Copies) -> Box<dyn RNNCore> {
        Box::new(self.copy(copies))
    }
}

impl Visit for Box<dyn RNNCore> {
    fn node(&self) -> Node<'_> {
        (**self).node()
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        (**self).copy_boxed_core(copies)
    }

    fn describe(&self) -> Option<Description> {
        (**self).describe()
    }
}

impl Module for Box<dyn RNNCore> {
    fn scope(&self) -> &Scope {
        (**self).scope()
    }

    fn visit<'a>(&'a self, edges: &mut Edges<'a>) {
        (**self).visit(edges);
    }

    fn materialise(&self) -> Result<()> {
        (**self).materialise()
    }

    fn materialises(&self) -> bool {
        (**self).materialises()
    }

    fn allows_empty_variables(&self) -> bool {
        (**self).allows_empty_variables()
    }

    fn kind(&self) -> &'static str {
        (**self).kind()
    }
}

/// The calls of a core that is held by a pointer.
macro_rules! core_through_pointer {
    ($($generics:ident)? ; $pointer:ty) => {
        impl$(<$generics: RNNCore + 'static>)? RNNCore for $pointer {
            fn step(&self, x: &Tensor, state: &Nest) -> Result<(Tensor, Nest)> {
                (**self).step(x, state)
            }

            fn initial_state(&self, batch_size: usize) -> Result<Nest> {
                (**self).initial_state(batch_size)
            }

            fn step_nested(&self, x: &Nest, state: &Nest) -> Result<(Nest, Nest)> {
                (**self).step_nested(x, state)
            }

            fn sequence(&self, xs: &Tensor, state: &Nest) -> Result<Option<(Tensor, Nest)>> {
                (**self).sequence(xs, state)
            }
        }
    };
}

core_through_pointer!(C; Arc<C>);
core_through_pointer!(; Box<dyn RNNCore>);

/// Refuses an input that has not the core's dtype.
pub(super) fn check_dtype(op: &'static str, x: &Tensor, dtype: DType) -> Result<()> {
    let dtype = seen_dtype(dtype);
    if x.dtype() == dtype {
        return Ok(());
    }
    let expected =
        format!("{dtype}, the core's own: cast the input, or give the core another with .dtype(..)");
    Err(Error::dtype(op, "x", x.dtype(), expected))
}

/// Refuses a tensor of another shape or dtype.
pub(super) fn check_part(
    op: &'static str,
    what: &'static str,
    part: &Tensor,
    shape: &[usize],
    dtype: DType,
) -> Result<()> {
    if part.shape() != shape {
        return Err(Error::shape(op, what, part.shape(), format!("{shape:?}")));
    }
    let dtype = seen_dtype(dtype);
    if part.dtype() != dtype {
        return Err(Error::dtype(op, what, part.dtype(), format!("{dtype}, the core's own")));
    }
    Ok(())
}
