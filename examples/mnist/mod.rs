//! What the MNIST examples share: everything but the model.

mod cli;
mod idx;
mod plot;
mod progress;
pub mod session;
mod train;

pub use cli::Defaults;
pub use session::main;
