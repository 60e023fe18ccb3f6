//! Residual networks.

use std::fmt;

use crate::error::{Error, Result};
use crate::init;
use crate::module::{Copies, Edges, Forward, Node, Printer, Visit};
use crate::nn::{BatchNorm, Conv2D, Linear};
use crate::ops::{Padding, Pool};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::{Module, scoped};

use super::batch_norm_config::BatchNormConfig;
use super::block_group::BlockGroup;
use super::bottle_neck::{convolution, needs_flag};

/// Residual network of bottleneck blocks for images, `[batch, height, width, channels]` to logits `[batch, num_classes]`
/// (He et al. 2015; with `resnet_v2` He et al. 2016).
///
/// ```text
/// conv 7x7 stride 2 to 64;  norm, relu (first version);  max_pool 3x3 stride 2;
/// four block groups of the given numbers of blocks, with strides 1, 2, 2, 2;
/// norm, relu (second version);  mean over height and width;  linear
/// ```
///
/// The last layer starts at 0, so a new network gives all classes the same probability.
///
/// ```
/// use couplet::nets::ResNet;
/// use couplet::prelude::*;
/// let net = ResNet::new([1, 1, 1, 1], 10).channels_per_group_list([8, 8, 16, 16]).resnet_v2(true);
/// let x = Tensor::ones([2, 32, 32, 3], DType::F32)?;
/// assert_eq!(net.forward_t(&x, true)?.to_vec::<f32>()?, [0.0; 20]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct ResNet {
    scope: Scope,
    blocks_per_group_list: Vec<usize>,
    num_classes: usize,
    #[module(default = BatchNormConfig::default())]
    bn_config: BatchNormConfig,
    #[module(default = false)]
    resnet_v2: bool,
    #[module(default = CHANNELS.to_vec())]
    channels_per_group_list: Vec<usize>,
    #[module(name = "_initial_conv", hidden)]
    initial_conv: Conv2D,
    #[module(name = "_initial_batchnorm", hidden)]
    initial_batchnorm: Option<BatchNorm>,
    #[module(name = "_block_groups", hidden)]
    block_groups: Vec<BlockGroup>,
    #[module(name = "_final_batchnorm", hidden)]
    final_batchnorm: Option<BatchNorm>,
    #[module(name = "_logits", hidden)]
    logits: Linear,
}

/// Channels of the four groups unless others are asked for.
const CHANNELS: [usize; 4] = [256, 512, 1024, 2048];

const OP: &str = "res_net";

impl ResNet {
    /// A network of the first version; `blocks_per_group_list` has four numbers, such as `[3, 4, 6, 3]` for ResNet-50 and
    /// `[3, 4, 23, 3]` for ResNet-101.
    pub fn new(blocks_per_group_list: impl Into<Vec<usize>>, num_classes: usize) -> Self {
        Self::in_scope(Scope::of::<Self>(), blocks_per_group_list.into(), num_classes)
    }

    fn in_scope(scope: Scope, blocks_per_group_list: Vec<usize>, num_classes: usize) -> Self {
        let (initial_conv, logits) = {
            let _in = scope.enter();
            let logits = Linear::new(num_classes).w_init(init::Zeros).name("logits");
            (convolution("initial_conv", 64, 7, 2), logits)
        };
        let net = ResNet {
            scope,
            blocks_per_group_list,
            num_classes,
            bn_config: BatchNormConfig::default(),
            resnet_v2: false,
            channels_per_group_list: CHANNELS.to_vec(),
            initial_conv,
            initial_batchnorm: None,
            block_groups: Vec::new(),
            final_batchnorm: None,
            logits,
        };
        net.built()
    }

    fn built(mut self) -> Self {
        let _in = self.scope.enter();
        let norm = |name: &str| self.bn_config.layer().name(name);
        self.initial_batchnorm = (!self.resnet_v2).then(|| norm("initial_batchnorm"));
        self.final_batchnorm = self.resnet_v2.then(|| norm("final_batchnorm"));
        let sizes = self.channels_per_group_list.iter().zip(&self.blocks_per_group_list).enumerate();
        let group = |(i, (&channels, &num_blocks)): (usize, (&usize, &usize))| {
            let group = BlockGroup::new(channels, num_blocks, if i == 0 { 1 } else { 2 });
            group.bn_config(self.bn_config).resnet_v2(self.resnet_v2).name(&format!("block_group_{i}"))
        };
        self.block_groups = sizes.map(group).collect();
        drop(_in);
        self
    }

    /// Settings of the batch normalisations.
    #[must_use]
    pub fn bn_config(mut self, bn_config: BatchNormConfig) -> Self {
        self.bn_config = bn_config;
        self.built()
    }

    /// Whether the network normalises before its convolutions, as the second version does. Default: no.
    #[must_use]
    pub fn resnet_v2(mut self, resnet_v2: bool) -> Self {
        self.resnet_v2 = resnet_v2;
        self.built()
    }

    /// Channels of the four groups. Default: `[256, 512, 1024, 2048]`.
    #[must_use]
    pub fn channels_per_group_list(mut self, channels: impl Into<Vec<usize>>) -> Self {
        self.channels_per_group_list = channels.into();
        self.built()
    }
}

#[scoped]
impl Forward for ResNet {
    /// # Errors
    /// Always: the network must be told whether it is trained, by [`forward_t`](Forward::forward_t).
    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        Err(needs_flag(OP))
    }

    /// # Errors
    /// A list has not four numbers, or `x` has not rank 4 or not the channels and dtype of the first call. Nothing is created
    /// or moved then.
    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        let lists = [
            ("blocks_per_group_list", &self.blocks_per_group_list),
            ("channels_per_group_list", &self.channels_per_group_list),
        ];
        if let Some((name, list)) = lists.into_iter().find(|(_, list)| list.len() != 4) {
            let expected = format!("four numbers; there are {}", list.len());
            return Err(Error::argument(OP, name, format!("{list:?}"), expected));
        }
        let mut y = self.initial_conv.forward(x)?;
        if let Some(norm) = &self.initial_batchnorm {
            y = norm.forward_t_owned(y, is_training)?.relu()?;
        }
        y = y.max_pool(&Pool::new([3]).stride([2]).padding(Padding::Same))?;
        for group in &self.block_groups {
            y = group.forward_t_owned(y, is_training)?;
        }
        if let Some(norm) = &self.final_batchnorm {
            y = norm.forward_t_owned(y, is_training)?.relu()?;
        }
        self.logits.forward(&y.global_average_pool(false)?)
    }
}

/// [`ResNet`] of 50 layers: 3, 4, 6 and 3 blocks.
///
/// ```
/// use couplet::nets::ResNet50;
/// use couplet::prelude::*;
/// let net = ResNet50::new(1000).resnet_v2(true);
/// assert_eq!(format!("{net:?}"), "ResNet50(num_classes=1000, resnet_v2=true)");
/// ```
pub struct ResNet50 {
    net: ResNet,
}

impl ResNet50 {
    /// A network of the first version.
    pub fn new(num_classes: usize) -> Self {
        ResNet50 { net: ResNet::in_scope(Scope::of::<Self>(), vec![3, 4, 6, 3], num_classes) }
    }

    /// Settings of the batch normalisations.
    #[must_use]
    pub fn bn_config(mut self, bn_config: BatchNormConfig) -> Self {
        self.net = self.net.bn_config(bn_config);
        self
    }

    /// Whether the network normalises before its convolutions, as the second version does. Default: no.
    #[must_use]
    pub fn resnet_v2(mut self, resnet_v2: bool) -> Self {
        self.net = self.net.resnet_v2(resnet_v2);
        self
    }
}

impl Forward for ResNet50 {
    /// # Errors
    /// As for [`ResNet`].
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.net.forward(x)
    }

    /// # Errors
    /// As for [`ResNet`].
    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        self.net.forward_t(x, is_training)
    }
}

// It is the network inside, under its own name.
impl Visit for ResNet50 {
    fn node(&self) -> Node<'_> {
        Node::Module(self)
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        ResNet50 { net: self.net.copy(copies) }
    }
}

impl Module for ResNet50 {
    fn scope(&self) -> &Scope {
        self.net.scope()
    }

    fn visit<'a>(&'a self, edges: &mut Edges<'a>) {
        self.net.visit(edges);
    }
}

impl fmt::Debug for ResNet50 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (net, usual) = (&self.net, BatchNormConfig::default());
        let mut print = Printer::new("ResNet50");
        print.argument("num_classes", &net.num_classes);
        if net.bn_config != usual {
            print.argument("bn_config", &net.bn_config);
        }
        if net.resnet_v2 {
            print.argument("resnet_v2", &net.resnet_v2);
        }
        print.name(&net.scope);
        write!(f, "{print}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    fn small() -> ResNet {
        ResNet::new([1, 1, 1, 1], 3).channels_per_group_list([4, 4, 8, 8])
    }

    #[test]
    fn lists_of_another_length_than_four_are_refused_by_name() -> Result<()> {
        let x = Tensor::ones([1, 16, 16, 3], DType::F32)?;
        for length in [3, 5] {
            let net = ResNet::new(vec![1; length], 3);
            let told = net.forward_t(&x, true).unwrap_err().to_string();
            assert!(
                told.contains("blocks_per_group_list") && told.contains(&format!("there are {length}")),
                "{told}"
            );
            let told =
                small().channels_per_group_list(vec![4; length]).forward_t(&x, true).unwrap_err().to_string();
            assert!(told.contains("channels_per_group_list") && told.contains("four"), "{told}");
            assert!(net.initial_conv.variables().is_err());
        }
        Ok(())
    }

    #[test]
    fn a_call_without_the_flag_is_refused_and_says_what_to_call() {
        let x = Tensor::ones([1, 16, 16, 3], DType::F32).unwrap();
        assert!(small().forward(&x).unwrap_err().to_string().contains("forward_t"));
        assert!(ResNet50::new(3).forward(&x).unwrap_err().to_string().contains("in res_net50"));
    }

    #[test]
    fn the_image_halves_where_the_reference_says() -> Result<()> {
        // 33: convolution 17, pooling 9, groups 9, 5, 3, 2.
        let net = small();
        let mut y = net.initial_conv.forward(&Tensor::ones([1, 33, 33, 3], DType::F32)?)?;
        assert_eq!(y.shape(), &[1, 17, 17, 64]);
        y = y.max_pool(&Pool::new([3]).stride([2]).padding(Padding::Same))?;
        let mut sides = vec![y.dim(1)?];
        for group in &net.block_groups {
            y = group.forward_t(&y, true)?;
            sides.push(y.dim(1)?);
        }
        assert_eq!(sides, [9, 9, 5, 3, 2]);
        Ok(())
    }

    #[test]
    fn settings_apply_in_any_order_and_a_name_reaches_all_parts() -> Result<()> {
        let config = BatchNormConfig { decay_rate: 0.5, ..Default::default() };
        let net = small().name("stem").bn_config(config).resnet_v2(true);
        let x = Tensor::from_vec((0..768).map(|i| (i % 7) as f32).collect(), [1, 16, 16, 3])?;
        net.forward_t(&x, true)?;
        let named = net.named_variables()?;
        assert!(named.iter().all(|(_, variable)| variable.name().starts_with("stem/")));
        // The first step of an average that keeps half: the hidden value is half of the debiased one.
        for (path, hidden) in named.iter().filter(|(path, _)| path.ends_with("moving_mean/_hidden")) {
            let average = path.replace("_hidden", "average");
            let average = &named.iter().find(|(path, _)| *path == average).expect("it is beside it").1;
            assert_eq!((hidden.value() * 2.0)?.to_vec::<f32>()?, average.value().to_vec::<f32>()?, "{path}");
        }
        Ok(())
    }
}
