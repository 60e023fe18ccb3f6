//! Convolution layers over one, two and three spatial dims.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::module::{Forward, Once};
use crate::ops::{ConvOptions, Padding, per_axis};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::conv_setters::conv_setters;
use super::data_format::{ChannelAxis, channel_axis};
use super::linear::{check_bias_init, fan_in_init, zeros_init};
use super::pad::LayerPadding;
use super::sizes::Sizes;

/// Convolution over `N` spatial dims; use it as [`Conv1D`], [`Conv2D`] or [`Conv3D`].
///
/// `y[b, o, co] = b[co] + sum_{k, ci} x[b, o stride + k rate - before, ci] w[k, ci, co]`, with `x = 0` outside: the
/// cross-correlation that the field calls convolution.
///
/// | tensor | shape |
/// |---|---|
/// | `x` | `[batch, spatial.., in]`, or `[batch, in, spatial..]` channels first |
/// | `w` | `[kernel.., in, output_channels]` |
/// | `b` | `[output_channels]` |
/// | `y` | as `x`, with `output_channels` |
///
/// The number of input channels is read from the first input. `w` starts as a normal cut at two standard deviations,
/// with standard deviation `1 / sqrt(kernel size * in)`, which keeps the scale of zero-centred inputs (LeCun et al. 1998,
/// section 4.6); `b` starts at 0.
///
/// ```
/// use couplet::prelude::*;
/// let conv = Conv1D::new(1, 3).padding(pad::causal).with_bias(false);
/// let x = Tensor::from([[[1.0f32], [2.0], [3.0], [4.0]]]);
/// assert_eq!(conv.forward(&x)?.shape(), &[1, 4, 1]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(kind = Self::KIND)]
pub struct ConvND<const N: usize> {
    scope: Scope,
    output_channels: usize,
    kernel_shape: Sizes,
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

/// Convolution over one spatial dim, by default in the layout `NWC`.
pub type Conv1D = ConvND<1>;
/// Convolution over two spatial dims, by default in the layout `NHWC`.
pub type Conv2D = ConvND<2>;
/// Convolution over three spatial dims, by default in the layout `NDHWC`.
pub type Conv3D = ConvND<3>;

conv_setters!(ConvND<N>, N);

impl<const N: usize> ConvND<N> {
    const KIND: &'static str = ["Conv1D", "Conv2D", "Conv3D"][N - 1];
    const LAST: &'static str = ["NWC", "NHWC", "NDHWC"][N - 1];
    const OP: &'static str = ["conv1d", "conv2d", "conv3d"][N - 1];

    /// A layer of `output_channels` kernels of the given shape: one number, or one for each spatial axis.
    pub fn new(output_channels: usize, kernel_shape: impl Into<Sizes>) -> Self {
        ConvND {
            scope: Scope::for_kind(Self::KIND),
            output_channels,
            kernel_shape: kernel_shape.into(),
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

    /// `Padding::Same`, `Padding::Valid`, or functions from [`pad`](crate::nn::pad). Default: `Same`.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<LayerPadding>) -> Self {
        self.padding = padding.into();
        self
    }

    /// Number of channels of the first input, once there was one.
    pub fn input_channels(&self) -> Option<usize> {
        self.w.get().map(|w| w.shape()[N])
    }

    /// Number of output channels.
    pub fn output_channels(&self) -> usize {
        self.output_channels
    }
}

/// Axis orders that bring channels from first to last and back.
pub(crate) fn channel_orders(rank: usize) -> (Vec<isize>, Vec<isize>) {
    let rank = rank as isize;
    let last = std::iter::once(0).chain(2..rank).chain([1]).collect();
    let first = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    (last, first)
}

#[scoped]
impl<const N: usize> Forward for ConvND<N> {
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
        let shape: Vec<usize> = kernel.iter().copied().chain([channels, self.output_channels]).collect();
        let fan_in = kernel.iter().product::<usize>() * channels;
        let w = || Variable::new("w", &shape, x.dtype(), fan_in_init(self.w_init.as_ref(), fan_in));
        let w = self.w.get_or_init(w)?;
        let b = || Variable::new("b", &[self.output_channels], x.dtype(), zeros_init(self.b_init.as_ref()));
        let b = if self.with_bias { Some(self.b.get_or_init(b)?.value()) } else { None };
        let y = x.convolve(w, b.as_ref(), &options)?;
        match axis {
            ChannelAxis::Last => Ok(y),
            ChannelAxis::First => y.transpose(&to_first),
        }
    }
}
