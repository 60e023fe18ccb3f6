//! Layers.

mod attention;
mod batch_norm;
mod bias;
mod channel_parameters;
mod conv;
mod data_format;
mod dropout;
mod group_norm;
mod instance_norm;
mod layer_norm;
mod linear;
mod norm_axes;
pub mod pad;
mod positions;
mod reshape;
mod rms_norm;
mod rotary;
mod sequential;
mod sizes;

pub use attention::MultiHeadAttention;
pub use batch_norm::{BatchNorm, BatchNormCall};
pub use bias::Bias;
pub use conv::{Conv1D, Conv2D, Conv3D, ConvND};
pub use data_format::{ChannelAxis, channel_axis};
pub use dropout::{Dropout, Rate};
pub use group_norm::GroupNorm;
pub use instance_norm::InstanceNorm;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use norm_axes::NormAxes;
pub use positions::LearnedPositions;
pub use reshape::{Flatten, Reshape};
pub use rms_norm::RMSNorm;
pub use rotary::Rotary;
pub use sequential::Sequential;
pub use sizes::Sizes;
