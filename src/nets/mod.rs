//! Networks made of layers.

mod mlp;

pub use mlp::MLP;
