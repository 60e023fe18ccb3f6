//! Convolutions, their adjoints, and those of each channel by itself; channels last.

mod adjoint;
mod convolve;
mod depthwise;
mod options;
mod window;

pub(crate) use adjoint::{ConvFilterGradient, ConvInputGradient};
pub(crate) use convolve::Convolve;
pub(crate) use depthwise::{DepthwiseConvolve, DepthwiseFilterGradient, DepthwiseInputGradient};
pub use options::{ConvOptions, Padding};
pub(crate) use options::{per_axis, window};
