//! Automatic differentiation: tapes, gradients and their checks.

mod backward;
mod check;
mod custom;
mod tape;

pub use backward::Seed;
pub use check::check_gradients;
pub use custom::custom_gradient;
pub use tape::{GradientTape, Source, no_grad, value_and_grad};
