//! Convolution of each channel by itself, alone and followed by one that mixes channels.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::module::{Forward, Once};
use crate::ops::{ConvOptions, Padding, per_axis};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::conv::channel_orders;
use super::conv_setters::conv_setters;
use super::data_format::{ChannelAxis, channel_axis};
use super::linear::{check_bias_init, fan_in_init, zeros_init};
use super::pad::LayerPadding;
use super::sizes::Sizes;

/// Convolution of each channel by itself, with `channel_multiplier` kernels a channel:
/// `y[b, o, c multiplier + m] = b + sum_k x[b, o stride + k rate - before, c] w[k, c, m]`.
///
/// | tensor | shape |
/// |---|---|
/// | `x` | `[batch, height, width, in]`, or `[batch, in, height, width]` channels first |
/// | `w` | `[kernel height, kernel width, in, channel_multiplier]` |
/// | `b` | `[in * channel_multiplier]` |
/// | `y` | as `x`, with `in * channel_multiplier` channels |
///
/// `w` starts as a normal cut at two standard deviations, with standard deviation `1 / sqrt(kernel size)`, since a unit
/// sees one channel; `b` starts at 0.
///
/// ```
/// use couplet::prelude::*;
/// let conv = DepthwiseConv2D::new(3).channel_multiplier(2);
/// assert_eq!(conv.forward(&Tensor::ones([1, 8, 8, 5], DType::F32)?)?.shape(), &[1, 8, 8, 10]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct DepthwiseConv2D {
    scope: Scope,
    kernel_shape: Sizes,
    #[module(default = 1)]
    channel_multiplier: usize,
    #[module(default = Sizes::from(1))]
    stride: Sizes,
    #[module(default = Sizes::from(1))]
    rate: Sizes,
    #[module(default = LayerPadding::from(Padding::Same))]
    padding: LayerPadding,
    #[module(default = true)]
    with_bias: bool,
    w_init: Option<Arc<dyn Initializer>>,
    b_init: Option<Arc<dyn Initializer>>,
    #[module(default = "NHWC".to_owned())]
    data_format: String,
    w: Once<Variable>,
    b: Once<Variable>,
}

/// A [`DepthwiseConv2D`] without bias, then a 1x1 convolution to `output_channels` (Chollet 2017, "Xception", section 2):
/// far fewer weights than a convolution of the same reach.
///
/// | tensor | shape |
/// |---|---|
/// | `x` | `[batch, height, width, in]`, or `[batch, in, height, width]` channels first |
/// | `w_dw` | `[kernel height, kernel width, in, channel_multiplier]` |
/// | `w_pw` | `[1, 1, in * channel_multiplier, output_channels]` |
/// | `b` | `[output_channels]` |
///
/// Both kernels start with the standard deviation `1 / sqrt(fan-in)`, cut at two; `b` starts at 0.
///
/// ```
/// use couplet::prelude::*;
/// let conv = SeparableConv2D::new(16, 3).stride(2);
/// assert_eq!(conv.forward(&Tensor::ones([1, 8, 8, 5], DType::F32)?)?.shape(), &[1, 4, 4, 16]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct SeparableConv2D {
    scope: Scope,
    output_channels: usize,
    kernel_shape: Sizes,
    #[module(default = 1)]
    channel_multiplier: usize,
    #[module(default = Sizes::from(1))]
    stride: Sizes,
    #[module(default = Sizes::from(1))]
    rate: Sizes,
    #[module(default = LayerPadding::from(Padding::Same))]
    padding: LayerPadding,
    #[module(default = true)]
    with_bias: bool,
    w_init: Option<Arc<dyn Initializer>>,
    b_init: Option<Arc<dyn Initializer>>,
    #[module(default = "NHWC".to_owned())]
    data_format: String,
    w_dw: Once<Variable>,
    w_pw: Once<Variable>,
    b: Once<Variable>,
}

/// What both layers have beside the settings of all convolutions.
macro_rules! own_setters {
    ($layer:ident) => {
        impl $layer {
            /// Kernels a channel. Default: 1.
            #[must_use]
            pub fn channel_multiplier(mut self, channel_multiplier: usize) -> Self {
                self.channel_multiplier = channel_multiplier;
                self
            }

            /// `Padding::Same`, `Padding::Valid`, or functions from [`pad`](crate::nn::pad). Default: `Same`.
            #[must_use]
            pub fn padding(mut self, padding: impl Into<LayerPadding>) -> Self {
                self.padding = padding.into();
                self
            }

            /// What a call needs, checked; the input with channels last.
            fn prepare(&self, op: &'static str, x: &Tensor, known: Option<&Variable>) -> Result<Prepared> {
                let axis = channel_axis(op, &self.data_format)?;
                check_bias_init(op, self.with_bias, self.b_init.as_ref())?;
                if x.rank() != 4 {
                    return Err(Error::shape(op, "x", x.shape(), "rank 4"));
                }
                let kernel = per_axis(op, "kernel_shape", self.kernel_shape.list(), 2)?;
                let rate = per_axis(op, "rate", self.rate.list(), 2)?;
                let stride = per_axis(op, "stride", self.stride.list(), 2)?;
                let padding = self.padding.resolve(op, &kernel, &rate)?;
                let options = ConvOptions { stride, rate, padding };
                options.check(op)?;
                let x = match axis {
                    ChannelAxis::Last => x.clone(),
                    ChannelAxis::First => x.transpose(&channel_orders(4).0)?,
                };
                let channels = x.dim(-1)?;
                if let Some(expected) = known.map(|w| w.shape()[2]).filter(|&c| c != channels) {
                    let expected =
                        format!("{expected} input channels, as in the first call; {channels} came");
                    return Err(Error::shape(op, "x", x.shape(), expected));
                }
                let kernel = [kernel[0], kernel[1], channels, self.channel_multiplier];
                Ok(Prepared { x, axis, kernel, options })
            }
        }
    };
}

own_setters!(DepthwiseConv2D);
own_setters!(SeparableConv2D);
conv_setters!(DepthwiseConv2D);
conv_setters!(SeparableConv2D);

struct Prepared {
    x: Tensor,
    axis: ChannelAxis,
    kernel: [usize; 4],
    options: ConvOptions,
}

impl Prepared {
    /// The channels back to where they came from.
    fn back(&self, y: Tensor) -> Result<Tensor> {
        match self.axis {
            ChannelAxis::Last => Ok(y),
            ChannelAxis::First => y.transpose(&channel_orders(4).1),
        }
    }
}

impl DepthwiseConv2D {
    /// Kernels of the given shape: one number, or one for each spatial axis.
    pub fn new(kernel_shape: impl Into<Sizes>) -> Self {
        DepthwiseConv2D {
            scope: Scope::of::<Self>(),
            kernel_shape: kernel_shape.into(),
            channel_multiplier: 1,
            stride: Sizes::from(1),
            rate: Sizes::from(1),
            padding: Padding::Same.into(),
            with_bias: true,
            w_init: None,
            b_init: None,
            data_format: "NHWC".into(),
            w: Once::new(),
            b: Once::new(),
        }
    }
}

#[scoped]
impl Forward for DepthwiseConv2D {
    /// # Errors
    /// The rank of `x` is not 4, its channels or dtype are not those of the first call, or a setting is out of its range.
    /// Nothing is created then.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let ready = self.prepare("depthwise_conv2d", x, self.w.get())?;
        let [height, width, channels, multiplier] = ready.kernel;
        let init = || fan_in_init(self.w_init.as_ref(), height * width);
        let w = self.w.get_or_init(|| Variable::new("w", &ready.kernel, x.dtype(), init()))?;
        let mut y = ready.x.depthwise_convolve(w, &ready.options)?;
        if self.with_bias {
            let shape = [channels * multiplier];
            let b = || Variable::new("b", &shape, x.dtype(), zeros_init(self.b_init.as_ref()));
            y = (y + self.b.get_or_init(b)?)?;
        }
        ready.back(y)
    }
}

impl SeparableConv2D {
    /// A layer to `output_channels`, with spatial kernels of the given shape: one number, or one for each spatial axis.
    pub fn new(output_channels: usize, kernel_shape: impl Into<Sizes>) -> Self {
        SeparableConv2D {
            scope: Scope::of::<Self>(),
            output_channels,
            kernel_shape: kernel_shape.into(),
            channel_multiplier: 1,
            stride: Sizes::from(1),
            rate: Sizes::from(1),
            padding: Padding::Same.into(),
            with_bias: true,
            w_init: None,
            b_init: None,
            data_format: "NHWC".into(),
            w_dw: Once::new(),
            w_pw: Once::new(),
            b: Once::new(),
        }
    }
}

#[scoped]
impl Forward for SeparableConv2D {
    /// # Errors
    /// The rank of `x` is not 4, its channels or dtype are not those of the first call, or a setting is out of its range.
    /// Nothing is created then.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let ready = self.prepare("separable_conv2d", x, self.w_dw.get())?;
        let [height, width, channels, multiplier] = ready.kernel;
        let init = |fan_in: usize| fan_in_init(self.w_init.as_ref(), fan_in);
        let w_dw = || Variable::new("w_dw", &ready.kernel, x.dtype(), init(height * width));
        let w_dw = self.w_dw.get_or_init(w_dw)?;
        let inner = channels * multiplier;
        let shape = [1, 1, inner, self.output_channels];
        let w_pw = self.w_pw.get_or_init(|| Variable::new("w_pw", &shape, x.dtype(), init(inner)))?;
        let b = || Variable::new("b", &[self.output_channels], x.dtype(), zeros_init(self.b_init.as_ref()));
        let b = if self.with_bias { Some(self.b.get_or_init(b)?.value()) } else { None };
        let y = ready.x.depthwise_convolve(w_dw, &ready.options)?;
        ready.back(y.convolve(w_pw, b.as_ref(), &ConvOptions::default())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{self, Generator};
    use crate::{DType, Module};

    #[test]
    fn a_separable_convolution_is_a_convolution_with_the_product_of_its_kernels() -> Result<()> {
        random::with(&Generator::seed(4), || {
            let conv = SeparableConv2D::new(3, [2, 3]).channel_multiplier(2).stride(2);
            let x = random::current().normal([2, 5, 6, 2], 0.0, 1.0, DType::F64)?;
            let y = conv.forward(&x)?;
            let [w_pw, w_dw] = [&conv.w_pw, &conv.w_dw].map(|w| w.get().expect("made by the call").value());
            // w[k, c, o] = sum_m w_dw[k, c, m] w_pw[c multiplier + m, o]
            let w = Tensor::einsum("hwcm,cmo->hwco", &[&w_dw, &w_pw.reshape([2, 2, 3])?])?;
            let options = ConvOptions { stride: vec![2], ..ConvOptions::default() };
            let want = x.convolve(&w, None, &options)?.to_vec::<f64>()?;
            assert!(y.to_vec::<f64>()?.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-12));
            let names: Vec<String> = conv.variables()?.iter().map(|v| v.name().to_owned()).collect();
            assert_eq!(names, ["b", "w_dw", "w_pw"].map(|name| format!("separable_conv2_d/{name}")));
            Ok(())
        })
    }
}
