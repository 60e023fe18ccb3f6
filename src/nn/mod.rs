//! Layers.

mod batch_norm;
mod bias;
mod conv;
mod data_format;
mod dropout;
mod linear;
pub mod pad;
mod reshape;
mod sequential;
mod sizes;

pub use batch_norm::{BatchNorm, BatchNormCall};
pub use bias::Bias;
pub(crate) use conv::channel_orders;
pub use conv::{Conv1D, Conv2D, Conv3D, ConvND};
pub use data_format::{ChannelAxis, channel_axis};
pub use dropout::{Dropout, Rate};
pub use linear::Linear;
pub(crate) use linear::{fan_in_init, zeros_init};
pub use reshape::{Flatten, Reshape};
pub use sequential::Sequential;
pub use sizes::Sizes;
