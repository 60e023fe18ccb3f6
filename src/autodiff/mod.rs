//! Automatic differentiation: tapes, gradients and their checks.

mod backward;
mod check;
mod custom;
mod hook;
mod jacobian;
mod products;
mod recompute;
mod source;
mod tape;

pub use backward::Seed;
pub use check::check_gradients;
pub use custom::custom_gradient;
pub use hook::{BackwardStep, gradient_hook};
pub use jacobian::{hessian, jacobian};
pub use products::{hvp, jvp, vjp};
pub use recompute::{recompute, recompute_many};
pub use source::Source;
pub use tape::{GradientTape, UnconnectedGradients, no_grad, value_and_grad};
