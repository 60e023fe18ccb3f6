//! Networks made of layers.

mod batch_norm_config;
mod block_group;
mod bottle_neck;
mod bottle_neck_v1;
mod bottle_neck_v2;
mod cifar10_conv_net;
pub mod dnc;
mod mlp;
mod resnet;
mod transformer;
mod vector_quantizer;
mod vector_quantizer_ema;

pub use batch_norm_config::BatchNormConfig;
pub use block_group::BlockGroup;
pub use bottle_neck_v1::BottleNeckBlockV1;
pub use bottle_neck_v2::BottleNeckBlockV2;
pub use cifar10_conv_net::{Cifar10ConvNet, Cifar10Output};
pub use mlp::MLP;
pub use resnet::{ResNet, ResNet50};
pub use transformer::TransformerBlock;
pub use vector_quantizer::{Quantized, VectorQuantizer};
pub use vector_quantizer_ema::VectorQuantizerEMA;
