//! Automatic differentiation: tapes, gradients and their checks.

mod backward;
mod tape;

pub use backward::Seed;
pub use tape::{GradientTape, Source, no_grad, value_and_grad};
