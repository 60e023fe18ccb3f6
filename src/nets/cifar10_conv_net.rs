//! Convolutional network for small images.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::module::Forward;
use crate::nn::{BatchNorm, BatchNormCall, ChannelAxis, Conv2D, Linear, channel_axis};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::{Module, scoped};

use super::bottle_neck::needs_flag;

/// A plain convolutional network for images such as those of CIFAR-10: `[batch, height, width, channels]` to logits.
///
/// Each layer is a 3x3 convolution, a batch normalisation with an offset and without a trained scale, and ReLU; the mean over
/// all positions then goes through a linear layer. By default there are eleven layers of 64 to 512 channels, and four of
/// them halve the image. Any size of image will do.
///
/// Evaluation normalises by the statistics of its own batch unless it is told not to, by
/// [`forward_with`](Cifar10ConvNet::forward_with): so the reference does.
///
/// ```
/// use couplet::nets::Cifar10ConvNet;
/// use couplet::prelude::*;
/// let net = Cifar10ConvNet::new().num_classes(3).output_channels([8, 16]).strides([1, 2]);
/// let y = net.forward_with(&Tensor::ones([2, 6, 6, 3], DType::F32)?, true, true)?;
/// assert_eq!(y.logits.shape(), &[2, 3]);
/// assert_eq!(y.activations[1].shape(), &[2, 3, 3, 16]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct Cifar10ConvNet {
    scope: Scope,
    #[module(default = 10)]
    num_classes: usize,
    w_init: Option<Arc<dyn Initializer>>,
    b_init: Option<Arc<dyn Initializer>>,
    #[module(default = "NHWC".to_owned())]
    data_format: String,
    #[module(default = CHANNELS.to_vec())]
    output_channels: Vec<usize>,
    #[module(default = STRIDES.to_vec())]
    strides: Vec<usize>,
    #[module(name = "_conv_modules", hidden)]
    conv_modules: Vec<Conv2D>,
    #[module(name = "_bn_modules", hidden)]
    bn_modules: Vec<BatchNorm>,
    #[module(name = "_logits_module", hidden)]
    logits_module: Linear,
}

const CHANNELS: [usize; 11] = [64, 64, 128, 128, 128, 256, 256, 256, 512, 512, 512];
const STRIDES: [usize; 11] = [1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1];

const OP: &str = "cifar10_conv_net";

/// What a [`Cifar10ConvNet`] computes.
#[derive(Debug, Clone)]
pub struct Cifar10Output {
    /// `[batch, num_classes]`.
    pub logits: Tensor,
    /// What each layer gave after its ReLU, and last the mean over all positions.
    pub activations: Vec<Tensor>,
}

impl Default for Cifar10ConvNet {
    fn default() -> Self {
        Self::new()
    }
}

impl Cifar10ConvNet {
    /// A network for ten classes.
    pub fn new() -> Self {
        let scope = Scope::of::<Self>();
        let logits_module = {
            let _in = scope.enter();
            Linear::new(10).name("logits")
        };
        let net = Cifar10ConvNet {
            scope,
            num_classes: 10,
            w_init: None,
            b_init: None,
            data_format: "NHWC".into(),
            output_channels: CHANNELS.to_vec(),
            strides: STRIDES.to_vec(),
            conv_modules: Vec::new(),
            bn_modules: Vec::new(),
            logits_module,
        };
        net.built()
    }

    fn built(mut self) -> Self {
        let _in = self.scope.enter();
        let format = self.data_format.as_str();
        let convolution = |(i, (&channels, &stride)): (usize, (&usize, &usize))| {
            let conv = Conv2D::new(channels, 3).stride(stride).data_format(format);
            let conv = conv.name(&format!("conv_2d_{i}"));
            let conv = self.w_init.iter().fold(conv, |conv, init| conv.w_init(init.clone()));
            self.b_init.iter().fold(conv, |conv, init| conv.b_init(init.clone()))
        };
        let sizes = self.output_channels.iter().zip(&self.strides).enumerate();
        let convolutions: Vec<_> = sizes.map(convolution).collect();
        let norm = |i| BatchNorm::new(false, true).data_format(format).name(&format!("batch_norm_{i}"));
        self.bn_modules = (0..convolutions.len()).map(norm).collect();
        self.conv_modules = convolutions;
        let logits = Linear::new(self.num_classes).name("logits");
        let logits = self.w_init.iter().fold(logits, |logits, init| logits.w_init(init.clone()));
        self.logits_module = self.b_init.iter().fold(logits, |logits, init| logits.b_init(init.clone()));
        drop(_in);
        self
    }

    /// Number of classes. Default: 10.
    #[must_use]
    pub fn num_classes(mut self, num_classes: usize) -> Self {
        self.num_classes = num_classes;
        self.built()
    }

    /// Initialiser of the weights of all convolutions and of the last layer. Default: as for [`Conv2D`] and [`Linear`].
    #[must_use]
    pub fn w_init(mut self, init: impl Initializer) -> Self {
        self.w_init = Some(Arc::new(init));
        self.built()
    }

    /// Initialiser of their biases. Default: `Zeros`.
    #[must_use]
    pub fn b_init(mut self, init: impl Initializer) -> Self {
        self.b_init = Some(Arc::new(init));
        self.built()
    }

    /// `NHWC`, or `NCHW` for channels first.
    #[must_use]
    pub fn data_format(mut self, data_format: &str) -> Self {
        self.data_format = data_format.into();
        self.built()
    }

    /// Channels of the layers, as many as [`strides`](Cifar10ConvNet::strides).
    #[must_use]
    pub fn output_channels(mut self, output_channels: impl Into<Vec<usize>>) -> Self {
        self.output_channels = output_channels.into();
        self.built()
    }

    /// Strides of the layers, as many as [`output_channels`](Cifar10ConvNet::output_channels).
    #[must_use]
    pub fn strides(mut self, strides: impl Into<Vec<usize>>) -> Self {
        self.strides = strides.into();
        self.built()
    }
}

#[scoped]
impl Cifar10ConvNet {
    /// Logits and the outputs of all layers. `test_local_stats` says whether evaluation normalises by the statistics of its
    /// batch instead of the moving averages.
    ///
    /// # Errors
    /// There are not as many strides as channels, or `x` has not rank 4 or not the channels and dtype of the first call.
    /// Nothing is created or moved then.
    pub fn forward_with(
        &self,
        x: &Tensor,
        is_training: bool,
        test_local_stats: bool,
    ) -> Result<Cifar10Output> {
        let (channels, strides) = (self.output_channels.len(), self.strides.len());
        if channels != strides {
            let expected = format!("as many as output_channels, which are {channels}; there are {strides}");
            return Err(Error::argument(OP, "strides", format!("{:?}", self.strides), expected));
        }
        let positions = match channel_axis(OP, &self.data_format)? {
            ChannelAxis::Last => [1, 2],
            ChannelAxis::First => [2, 3],
        };
        if x.rank() != 4 {
            return Err(Error::shape(OP, "x", x.shape(), "rank 4"));
        }
        let mut activations: Vec<Tensor> = Vec::with_capacity(channels + 1);
        for (conv, norm) in self.conv_modules.iter().zip(&self.bn_modules) {
            let y = conv.forward(activations.last().unwrap_or(x))?;
            let call = BatchNormCall { is_training, test_local_stats, ..BatchNormCall::default() };
            activations.push(norm.forward_with(&y, call)?.relu()?);
        }
        activations.push(activations.last().unwrap_or(x).mean_axes(positions, false)?);
        let logits = self.logits_module.forward(activations.last().unwrap_or(x))?;
        Ok(Cifar10Output { logits, activations })
    }
}

#[scoped]
impl Forward for Cifar10ConvNet {
    /// # Errors
    /// Always: the network must be told whether it is trained, by [`forward_t`](Forward::forward_t).
    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        Err(needs_flag(OP))
    }

    /// The logits. In evaluation too they depend on the statistics of the batch.
    ///
    /// # Errors
    /// As for [`forward_with`](Cifar10ConvNet::forward_with).
    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        Ok(self.forward_with(x, is_training, true)?.logits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn sizes_that_do_not_pair_up_are_refused_and_nothing_is_made() -> Result<()> {
        let net = Cifar10ConvNet::new().output_channels([3, 4]).strides([1]);
        let x = Tensor::ones([1, 8, 8, 3], DType::F32)?;
        let told = net.forward_t(&x, true).unwrap_err().to_string();
        assert!(told.contains("output_channels, which are 2; there are 1"), "{told}");
        assert!(net.conv_modules[0].variables().is_err());
        assert!(net.strides([1, 2]).forward_t(&x, true).is_ok());
        Ok(())
    }

    #[test]
    fn evaluation_depends_on_its_batch_unless_told_otherwise() -> Result<()> {
        let net = Cifar10ConvNet::new().num_classes(2).output_channels([4]).strides([1]);
        let image = |phase: f32| (0..48).map(move |i| (i as f32 * 0.3 + phase).sin());
        let one = Tensor::from_vec(image(0.0).collect(), [1, 4, 4, 3])?;
        let two = Tensor::from_vec(image(0.0).chain(image(2.0)).collect(), [2, 4, 4, 3])?;
        net.forward_t(&two, true)?;
        let first =
            |x: &Tensor, local| net.forward_with(x, false, local)?.logits.narrow(0, 0, 1)?.to_vec::<f32>();
        assert_ne!(first(&one, true)?, first(&two, true)?);
        assert_eq!(first(&one, false)?, first(&two, false)?);
        assert_eq!(net.forward_t(&one, false)?.to_vec::<f32>()?, first(&one, true)?);
        Ok(())
    }

    #[test]
    fn without_layers_the_image_itself_is_averaged() -> Result<()> {
        let net = Cifar10ConvNet::new().output_channels([]).strides([]).w_init(crate::init::Ones);
        let y = net.forward_with(&Tensor::full([1, 2, 2, 3], 2.0, DType::F32)?, true, true)?;
        assert_eq!((y.activations.len(), y.logits.to_vec::<f32>()?), (1, vec![6.0; 10]));
        Ok(())
    }
}
