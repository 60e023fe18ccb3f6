//! What the examples that read digits share, everything but the model; the other examples on MNIST use some of it.

mod cli;
mod flags;
mod idx;
mod launch;
mod page;
mod pixels;
mod plot;
mod progress;
pub mod session;
mod train;
mod wrong;

pub use flags::Defaults;
pub use session::main;
