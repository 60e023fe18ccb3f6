//! Networks made of layers.

mod mlp;
mod transformer;

pub use mlp::MLP;
pub use transformer::TransformerBlock;
