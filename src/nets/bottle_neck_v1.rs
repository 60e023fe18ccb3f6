//! Residual block that normalises after each convolution.

use crate::error::Result;
use crate::init;
use crate::module::Forward;
use crate::nn::{BatchNorm, Conv2D};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::{Module, scoped};

use super::batch_norm_config::BatchNormConfig;
use super::bottle_neck::{check, convolutions, needs_flag, shortcut};

/// Bottleneck block of the first ResNet (He et al. 2015, "Deep residual learning for image recognition", figure 5):
/// `y = relu(f(x) + s(x))`.
///
/// ```text
/// f:  conv 1x1 to channels/4, norm, relu;  conv 3x3 with stride, norm, relu;  conv 1x1 to channels, norm
/// s:  the identity, or with use_projection a conv 1x1 to channels with stride, norm
/// ```
///
/// `x` is `[batch, height, width, in]`; `y` has `channels`, and height and width divided by the stride, rounded up. The last
/// norm of `f` starts with a scale of 0, so that the block begins as its shortcut (Goyal et al. 2017, section 5.1).
#[derive(Module)]
pub struct BottleNeckBlockV1 {
    scope: Scope,
    channels: usize,
    stride: usize,
    use_projection: bool,
    #[module(default = BatchNormConfig::default())]
    bn_config: BatchNormConfig,
    #[module(name = "_proj_conv", hidden)]
    proj_conv: Option<Conv2D>,
    #[module(name = "_proj_batchnorm", hidden)]
    proj_batchnorm: Option<BatchNorm>,
    #[module(name = "_layers", hidden)]
    layers: Vec<(Conv2D, BatchNorm)>,
}

impl BottleNeckBlockV1 {
    /// A block of `channels` outputs. Without a projection, its input must have their shape.
    pub fn new(channels: usize, stride: usize, use_projection: bool) -> Self {
        let block = BottleNeckBlockV1 {
            scope: Scope::of::<Self>(),
            channels,
            stride,
            use_projection,
            bn_config: BatchNormConfig::default(),
            proj_conv: None,
            proj_batchnorm: None,
            layers: Vec::new(),
        };
        block.bn_config(BatchNormConfig::default())
    }

    /// Settings of the batch normalisations.
    #[must_use]
    pub fn bn_config(mut self, bn_config: BatchNormConfig) -> Self {
        self.bn_config = bn_config;
        let _in = self.scope.enter();
        let projected = self.use_projection;
        self.proj_conv = projected.then(|| shortcut(self.channels, self.stride));
        self.proj_batchnorm = projected.then(|| bn_config.layer().name("shortcut_batchnorm"));
        let norm = |i: usize| {
            let norm = bn_config.layer().name(&format!("batchnorm_{i}"));
            // Without a scale there is none to start at 0.
            if i == 2 && bn_config.create_scale { norm.scale_init(init::Zeros) } else { norm }
        };
        let layers = convolutions(self.channels, self.stride).into_iter().enumerate();
        self.layers = layers.map(|(i, conv)| (conv, norm(i))).collect();
        drop(_in);
        self
    }
}

const OP: &str = "bottle_neck_block_v1";

#[scoped]
impl Forward for BottleNeckBlockV1 {
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
        let shortcut = match (&self.proj_conv, &self.proj_batchnorm) {
            (Some(conv), Some(norm)) => norm.forward_t_owned(conv.forward(x)?, is_training)?,
            _ => x.clone(),
        };
        let mut y = x.clone();
        for (i, (conv, norm)) in self.layers.iter().enumerate() {
            y = norm.forward_t_owned(conv.forward_owned(y)?, is_training)?;
            if i < 2 {
                y = y.relu()?;
            }
        }
        (y + shortcut)?.relu()
    }
}
