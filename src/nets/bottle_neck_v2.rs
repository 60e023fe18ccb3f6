//! Residual block that normalises before each convolution.

use crate::error::Result;
use crate::module::Forward;
use crate::nn::{BatchNorm, Conv2D};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::{Module, scoped};

use super::batch_norm_config::BatchNormConfig;
use super::bottle_neck::{check, convolutions, needs_flag, shortcut};

/// Pre-activation bottleneck block (He et al. 2016, "Identity mappings in deep residual networks", figure 1b):
/// `y = f(x) + s(x)`, with nothing but a sum on the way from block to block.
///
/// ```text
/// f:  norm, relu, conv 1x1 to channels/4;  norm, relu, conv 3x3 with stride;  norm, relu, conv 1x1 to channels
/// s:  the identity, or with use_projection a conv 1x1 to channels with stride of the first relu
/// ```
///
/// `x` is `[batch, height, width, in]`; `y` has `channels`, and height and width divided by the stride, rounded up.
#[derive(Module)]
pub struct BottleNeckBlockV2 {
    scope: Scope,
    channels: usize,
    stride: usize,
    use_projection: bool,
    #[module(default = BatchNormConfig::default())]
    bn_config: BatchNormConfig,
    #[module(name = "_proj_conv", hidden)]
    proj_conv: Option<Conv2D>,
    #[module(name = "_conv_0", hidden)]
    conv_0: Conv2D,
    #[module(name = "_bn_0", hidden)]
    bn_0: BatchNorm,
    #[module(name = "_conv_1", hidden)]
    conv_1: Conv2D,
    #[module(name = "_bn_1", hidden)]
    bn_1: BatchNorm,
    #[module(name = "_conv_2", hidden)]
    conv_2: Conv2D,
    #[module(name = "_bn_2", hidden)]
    bn_2: BatchNorm,
}

/// The normalisations of a block, in the scope that is entered.
fn norms(bn_config: BatchNormConfig) -> [BatchNorm; 3] {
    [0, 1, 2].map(|i| bn_config.layer().name(&format!("batchnorm_{i}")))
}

impl BottleNeckBlockV2 {
    /// A block of `channels` outputs. Without a projection, its input must have their shape.
    pub fn new(channels: usize, stride: usize, use_projection: bool) -> Self {
        let (scope, bn_config) = (Scope::of::<Self>(), BatchNormConfig::default());
        let _in = scope.enter();
        let proj_conv = use_projection.then(|| shortcut(channels, stride));
        let [conv_0, conv_1, conv_2] = convolutions(channels, stride);
        let [bn_0, bn_1, bn_2] = norms(bn_config);
        drop(_in);
        BottleNeckBlockV2 {
            scope,
            channels,
            stride,
            use_projection,
            bn_config,
            proj_conv,
            conv_0,
            bn_0,
            conv_1,
            bn_1,
            conv_2,
            bn_2,
        }
    }

    /// Settings of the batch normalisations.
    #[must_use]
    pub fn bn_config(mut self, bn_config: BatchNormConfig) -> Self {
        let norms = {
            let _in = self.scope.enter();
            norms(bn_config)
        };
        self.bn_config = bn_config;
        [self.bn_0, self.bn_1, self.bn_2] = norms;
        self
    }
}

const OP: &str = "bottle_neck_block_v2";

#[scoped]
impl Forward for BottleNeckBlockV2 {
    /// # Errors
    /// Always: the block must be told whether it is trained, by [`forward_t`](Forward::forward_t).
    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        Err(needs_flag(OP))
    }

    /// # Errors
    /// `x` has not rank 4 or not the channels and dtype of the first call, or without a projection it has not `channels`
    /// or the stride is not 1. Nothing is created or moved then.
    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        check(OP, x, self.channels, self.stride, self.use_projection)?;
        let y = self.bn_0.forward_t(x, is_training)?.relu()?;
        let shortcut = match &self.proj_conv {
            Some(conv) => conv.forward(&y)?,
            None => x.clone(),
        };
        let y = self.conv_0.forward_owned(y)?;
        let y = self.bn_1.forward_t_owned(y, is_training)?.relu()?;
        let y = self.conv_1.forward_owned(y)?;
        let y = self.bn_2.forward_t_owned(y, is_training)?.relu()?;
        self.conv_2.forward_owned(y)? + shortcut
    }
}
