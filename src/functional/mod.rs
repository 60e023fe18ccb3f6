//! Models and optimisers as pure functions of their parameters.
//!
//! A module holds its variables, and a call may change them. Here nothing is held: [`transform`] makes a pair of functions out of
//! a module and what is computed with it, `init`, which gives the parameters at their start, and `apply`, which computes with
//! parameters that are passed in. Parameters are an ordered map from path to tensor, [`Params`]: they can be kept, compared,
//! averaged, sent to another thread, or differentiated with respect to. An [`optimizer`] maps parameters to parameters.
//!
//! ```
//! use couplet::{functional, prelude::*};
//!
//! let net = MLP::new([8, 1]);
//! let loss = functional::transform(&net, |net, (x, y): &(Tensor, Tensor)| {
//!     losses::mean_squared_error(&net.forward(x)?, y)?.mean()
//! });
//! let optimizer = functional::adam(0.05);
//!
//! let x = Tensor::linspace(-1.0, 1.0, 16, DType::F32)?.reshape([16, 1])?;
//! let batch = (x.clone(), x.square()?);
//! let mut params = loss.init(&Generator::seed(1), &batch)?;
//! let mut state = optimizer.init(&params)?;
//! let first = loss.apply(&params, &batch)?;
//! for _ in 0..150 {
//!     let (_, grads) = functional::value_and_grad(|params| loss.apply(params, &batch), &params)?;
//!     (params, state) = optimizer.apply(state, &grads, params)?;
//! }
//! assert_eq!(params["_layers/0/w"].shape(), &[1, 8]);
//! assert!(loss.apply(&params, &batch)?.item::<f32>()? < 0.1 * first.item::<f32>()?);
//! # Ok::<(), couplet::Error>(())
//! ```
//!
//! Several functions over one module share its parameters: `init` with the loss, and `apply` a second transformed function,
//! say the accuracy, to the same map. Paths are those of files, so parameters also come from a module
//! ([`transform`] one that was built, and `init` gives its values) and go back into one by [`assign`].
//!
//! How it works: `apply` lays the given values over the variables of a copy of the module, for this thread and for the length
//! of the call. What the function assigns goes to that layer. So calls on several threads do not meet, and a failed
//! one leaves nothing behind; threads that the function itself starts do not see the values. What it draws comes from the
//! thread's current generator: `random::with(&generator, || f.apply(..))` makes the call a function of the generator too.
//!
//! Calls nest: a function may apply, initialise and train others, take gradients by the variables of its module with a tape
//! of its own, and step them with an imperative optimiser. A [`custom_variable_getter`](crate::custom_variable_getter)
//! around `apply` sees the given values; one for chosen modules belongs inside the function, which gets the copies. In a
//! [`mixed_precision`](crate::mixed_precision) mode every `apply` is like a second call, `init` like a first.

mod assign;
mod grad;
mod instance;
mod optimizer;
mod template;
mod transform;
mod tree;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::ops::Gradient;
use crate::tensor::Tensor;

pub use assign::assign;
pub use grad::{grad, value_and_grad, value_and_grad_with_aux};
pub use optimizer::{Updater, adam, momentum, optimizer, rmsprop, sgd};
pub use transform::{Transformed, TransformedWithState, transform, transform_with_state};
pub use tree::Tree;

/// Parameters by path, in the order of their code points.
pub type Params = BTreeMap<String, Tensor>;

/// What is not trained, by path: averages and counters of a module, or slots of an optimiser.
pub type State = BTreeMap<String, Tensor>;

/// Gradients by the path of their parameter. A parameter that the value does not depend on is not in it.
pub type Gradients = BTreeMap<String, Gradient>;
