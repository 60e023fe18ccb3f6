//! Residual blocks at one resolution.

use crate::error::Result;
use crate::module::Forward;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::{Module, scoped};

use super::batch_norm_config::BatchNormConfig;
use super::bottle_neck::{check, needs_flag};
use super::bottle_neck_v1::BottleNeckBlockV1;
use super::bottle_neck_v2::BottleNeckBlockV2;

/// `num_blocks` bottleneck blocks one after another. The first takes the stride and projects; the others keep the shape.
///
/// The blocks are called `block_0`, `block_1`, ..; in files `_blocks/0`, ..
#[derive(Module)]
pub struct BlockGroup {
    scope: Scope,
    channels: usize,
    num_blocks: usize,
    stride: usize,
    #[module(default = BatchNormConfig::default())]
    bn_config: BatchNormConfig,
    #[module(default = false)]
    resnet_v2: bool,
    #[module(name = "_blocks", hidden)]
    blocks: Vec<Box<dyn Forward>>,
}

impl BlockGroup {
    /// A group of blocks of the first version.
    pub fn new(channels: usize, num_blocks: usize, stride: usize) -> Self {
        let group = BlockGroup {
            scope: Scope::of::<Self>(),
            channels,
            num_blocks,
            stride,
            bn_config: BatchNormConfig::default(),
            resnet_v2: false,
            blocks: Vec::new(),
        };
        group.built()
    }

    fn built(mut self) -> Self {
        let _in = self.scope.enter();
        let block = |i: usize| -> Box<dyn Forward> {
            let (name, stride) = (format!("block_{i}"), if i == 0 { self.stride } else { 1 });
            match self.resnet_v2 {
                false => {
                    let block = BottleNeckBlockV1::new(self.channels, stride, i == 0);
                    Box::new(block.bn_config(self.bn_config).name(&name))
                }
                true => {
                    let block = BottleNeckBlockV2::new(self.channels, stride, i == 0);
                    Box::new(block.bn_config(self.bn_config).name(&name))
                }
            }
        };
        self.blocks = (0..self.num_blocks).map(block).collect();
        drop(_in);
        self
    }

    /// Settings of the batch normalisations.
    #[must_use]
    pub fn bn_config(mut self, bn_config: BatchNormConfig) -> Self {
        self.bn_config = bn_config;
        self.built()
    }

    /// Whether the blocks are [`BottleNeckBlockV2`]. Default: [`BottleNeckBlockV1`].
    #[must_use]
    pub fn resnet_v2(mut self, resnet_v2: bool) -> Self {
        self.resnet_v2 = resnet_v2;
        self.built()
    }
}

const OP: &str = "block_group";

#[scoped]
impl Forward for BlockGroup {
    /// # Errors
    /// Always: the group must be told whether it is trained, by [`forward_t`](Forward::forward_t).
    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        Err(needs_flag(OP))
    }

    /// # Errors
    /// `x` has not rank 4, or not the channels and dtype of the first call. Nothing is created or moved then.
    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        check(OP, x, self.channels, self.stride, true)?;
        self.blocks.iter().try_fold(x.clone(), |y, block| block.forward_t_owned(y, is_training))
    }
}
