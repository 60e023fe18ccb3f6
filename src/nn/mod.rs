//! Layers.

mod attention;
mod batch_norm;
mod bias;
mod conv;
mod data_format;
mod dropout;
mod linear;
pub mod pad;
mod positions;
mod reshape;
mod rotary;
mod sequential;
mod sizes;

pub use attention::MultiHeadAttention;
pub use batch_norm::{BatchNorm, BatchNormCall};
pub use bias::Bias;
pub use conv::{Conv1D, Conv2D, Conv3D, ConvND};
pub use data_format::{ChannelAxis, channel_axis};
pub use dropout::{Dropout, Rate};
pub use linear::Linear;
pub use positions::LearnedPositions;
pub use reshape::{Flatten, Reshape};
pub use rotary::Rotary;
pub use sequential::Sequential;
pub use sizes::Sizes;
