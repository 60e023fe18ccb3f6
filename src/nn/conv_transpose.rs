//! Transposed convolution layers over one, two and three spatial dims.

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

/// Transposed convolution over `N` spatial dims, the adjoint of [`ConvND`](super::ConvND); use it as [`Conv1DTranspose`],
/// [`Conv2DTranspose`] or [`Conv3DTranspose`].
///
/// `y[b, o, co] = b[co] + sum x[b, i, ci] w[k, co, ci]` over all `i`, `k` and `ci` with `o = i stride + k rate - before`: each
/// input spreads the kernel over the output (Dumoulin and Visin 2016, "A guide to convolution arithmetic for deep
/// learning", chapter 4).
///
/// | tensor | shape |
/// |---|---|
/// | `x` | `[batch, spatial.., in]`, or `[batch, in, spatial..]` channels first |
/// | `w` | `[kernel.., output_channels, in]` |
/// | `b` | `[output_channels]` |
/// | `y` | as `x`, with `output_shape` and `output_channels` |
///
/// `w` starts as a normal cut at two standard deviations, with standard deviation `1 / sqrt(kernel size * in)`; `b` starts
/// at 0.
///
/// ```
/// use couplet::prelude::*;
/// let conv = Conv1DTranspose::new(1, 2).stride(2).w_init(init::Ones);
/// let y = conv.forward(&Tensor::from([[[1.0f32], [2.0]]]))?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(kind = Self::KIND)]
pub struct ConvNDTranspose<const N: usize> {
    scope: Scope,
    output_channels: usize,
    kernel_shape: Sizes,
    output_shape: Option<Sizes>,
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
    #[module(default = Self::LAST.to_owned())]
    data_format: String,
    w: Once<Variable>,
    b: Once<Variable>,
}

/// Transposed convolution over one spatial dim, by default in the layout `NWC`.
pub type Conv1DTranspose = ConvNDTranspose<1>;
/// Transposed convolution over two spatial dims, by default in the layout `NHWC`.
pub type Conv2DTranspose = ConvNDTranspose<2>;
/// Transposed convolution over three spatial dims, by default in the layout `NDHWC`.
pub type Conv3DTranspose = ConvNDTranspose<3>;

conv_setters!(ConvNDTranspose<N>, N);

impl<const N: usize> ConvNDTranspose<N> {
    const KIND: &'static str = ["Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"][N - 1];
    const LAST: &'static str = ["NWC", "NHWC", "NDHWC"][N - 1];
    const OP: &'static str = ["conv1d_transpose", "conv2d_transpose", "conv3d_transpose"][N - 1];

    /// A layer of `output_channels` kernels of the given shape: one number, or one for each spatial axis.
    pub fn new(output_channels: usize, kernel_shape: impl Into<Sizes>) -> Self {
        ConvNDTranspose {
            scope: Scope::for_kind(Self::KIND),
            output_channels,
            kernel_shape: kernel_shape.into(),
            output_shape: None,
            stride: Sizes::from(1),
            rate: Sizes::from(1),
            padding: Padding::Same.into(),
            with_bias: true,
            w_init: None,
            b_init: None,
            data_format: Self::LAST.into(),
            w: Once::new(),
            b: Once::new(),
        }
    }

    /// Spatial dims of the output, of which a convolution must give those of the input. Default: `in * stride`, and
    /// `(kernel - 1) * rate` more with `Padding::Valid`.
    #[must_use]
    pub fn output_shape(mut self, output_shape: impl Into<Sizes>) -> Self {
        self.output_shape = Some(output_shape.into());
        self
    }

    /// `Padding::Same` or `Padding::Valid`, as of the convolution that this one is the adjoint of. Default: `Same`.
    #[must_use]
    pub fn padding(mut self, padding: Padding) -> Self {
        self.padding = padding.into();
        self
    }

    /// Number of channels of the first input, once there was one.
    pub fn input_channels(&self) -> Option<usize> {
        self.w.get().map(|w| w.shape()[N + 1])
    }

    /// The spatial dims of the output for those of an input.
    fn outputs(&self, input: &[usize], kernel: &[usize], options: &ConvOptions) -> Result<Vec<usize>> {
        if let Some(sizes) = &self.output_shape {
            if sizes.list().len() != N {
                let expected = format!("{N} numbers, one for each spatial axis");
                return Err(Error::argument(Self::OP, "output_shape", format!("{sizes:?}"), expected));
            }
            return Ok(sizes.list().to_vec());
        }
        let axes = input.iter().zip(kernel).zip(options.stride.iter().zip(&options.rate));
        Ok(axes
            .map(|((&input, &kernel), (&stride, &rate))| {
                let reach = if options.padding == Padding::Valid {
                    kernel.saturating_sub(1).saturating_mul(rate)
                } else {
                    0
                };
                input.saturating_mul(stride).saturating_add(reach)
            })
            .collect())
    }
}

#[scoped]
impl<const N: usize> Forward for ConvNDTranspose<N> {
    /// # Errors
    /// The rank of `x` is not `N + 2`, its channels or dtype are not those of the first call, or a setting is out of its
    /// range. Nothing is created then.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let axis = channel_axis(Self::OP, &self.data_format)?;
        check_bias_init(Self::OP, self.with_bias, self.b_init.as_ref())?;
        if x.rank() != N + 2 {
            return Err(Error::shape(Self::OP, "x", x.shape(), format!("rank {}", N + 2)));
        }
        let kernel = per_axis(Self::OP, "kernel_shape", self.kernel_shape.list(), N)?;
        let rate = per_axis(Self::OP, "rate", self.rate.list(), N)?;
        let stride = per_axis(Self::OP, "stride", self.stride.list(), N)?;
        let padding = self.padding.resolve(Self::OP, &kernel, &rate)?;
        if matches!(padding, Padding::Explicit(_)) {
            return Err(Error::argument(Self::OP, "padding", format!("{padding:?}"), "Same or Valid"));
        }
        let options = ConvOptions { stride, rate, padding };
        options.check(Self::OP)?;
        let (to_last, to_first) = channel_orders(x.rank());
        let transposed;
        let x = match axis {
            ChannelAxis::Last => x,
            ChannelAxis::First => {
                transposed = x.transpose(&to_last)?;
                &transposed
            }
        };
        let channels = x.dim(-1)?;
        if let Some(expected) = self.input_channels().filter(|&c| c != channels) {
            let expected = format!("{expected} input channels, as in the first call; {channels} came");
            return Err(Error::shape(Self::OP, "x", x.shape(), expected));
        }
        let output = self.outputs(&x.shape()[1..=N], &kernel, &options)?;
        options.check_transpose(Self::OP, &x.shape()[1..=N], &kernel, &output)?;
        let shape: Vec<usize> = kernel.iter().copied().chain([self.output_channels, channels]).collect();
        let fan_in = kernel.iter().product::<usize>() * channels;
        let w = || Variable::new("w", &shape, x.dtype(), fan_in_init(self.w_init.as_ref(), fan_in));
        let w = self.w.get_or_init(w)?;
        let mut y = x.convolve_transpose(w, &output, &options)?;
        if self.with_bias {
            let shape = [self.output_channels];
            let b = || Variable::new("b", &shape, x.dtype(), zeros_init(self.b_init.as_ref()));
            y = (y + self.b.get_or_init(b)?)?;
        }
        match axis {
            ChannelAxis::Last => Ok(y),
            ChannelAxis::First => y.transpose(&to_first),
        }
    }
}
