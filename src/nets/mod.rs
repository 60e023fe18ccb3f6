//! Networks made of layers.

pub mod dnc;
mod mlp;
mod transformer;

pub use mlp::MLP;
pub use transformer::TransformerBlock;
