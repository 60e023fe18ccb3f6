//! LSTMs whose products are convolutions.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::module::{Forward, Once};
use crate::nn::{ChannelAxis, ConvND, Sizes, channel_axis, channel_orders};
use crate::ops::recurrent::lstm_cell;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::lstm_state::LSTMState;
use super::nest::Nest;
use super::rnn_core::{RNNCore, check_dtype, check_part};
use super::weights::{bias_init, value};

/// LSTM over images (Shi et al. 2015); use it as [`Conv1DLSTM`], [`Conv2DLSTM`] or [`Conv3DLSTM`]:
/// `[i, f, g, o] = conv(x, w_i) + conv(h, w_h) + b`, `c' = sigmoid(f) c + sigmoid(i) tanh(g)`, `y = sigmoid(o) tanh(c')`.
///
/// | tensor | shape |
/// |---|---|
/// | `x` | `[batch, spatial.., in]`, or `[batch, in, spatial..]` channels first |
/// | `y`, state `hidden` and `cell` | as `x`, with `output_channels` |
/// | `w_i`, `w_h` | `[kernel.., in, 4 output_channels]`, `[kernel.., output_channels, 4 output_channels]`, gates in the order i, f, g, o |
/// | `b` | `[4 output_channels]` |
///
/// The convolutions have stride 1 and the padding `Same`. The state starts at 0; each filter as a normal cut at two standard
/// deviations, with standard deviation `1 / sqrt(kernel size * its input channels)`; `b` at 0, for the forget gate at 1.
///
/// ```
/// use couplet::prelude::*;
/// let core = Conv2DLSTM::new([8, 8, 3], 4, 3);
/// let xs = Tensor::ones([5, 2, 8, 8, 3], DType::F32)?; // [steps, batch, height, width, channels]
/// let (ys, _) = dynamic_unroll(&core, &xs, &core.initial_state(2)?, None)?;
/// assert_eq!(ys.shape(), &[5, 2, 8, 8, 4]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(kind = Self::KIND)]
pub struct ConvNDLSTM<const N: usize> {
    scope: Scope,
    input_shape: Vec<usize>,
    output_channels: usize,
    kernel_shape: Sizes,
    #[module(default = Self::LAST.to_owned())]
    data_format: String,
    w_i_init: Option<Arc<dyn Initializer>>,
    w_h_init: Option<Arc<dyn Initializer>>,
    b_init: Option<Arc<dyn Initializer>>,
    #[module(default = 1.0)]
    forget_bias: f64,
    #[module(default = DType::F32)]
    dtype: DType,
    #[module(name = "_input_to_hidden", hidden)]
    input_to_hidden: ConvND<N>,
    #[module(name = "_hidden_to_hidden", hidden)]
    hidden_to_hidden: ConvND<N>,
    b: Once<Variable>,
}

/// LSTM over one spatial dim, by default in the layout `NWC`.
pub type Conv1DLSTM = ConvNDLSTM<1>;
/// LSTM over two spatial dims, by default in the layout `NHWC`.
pub type Conv2DLSTM = ConvNDLSTM<2>;
/// LSTM over three spatial dims, by default in the layout `NDHWC`.
pub type Conv3DLSTM = ConvNDLSTM<3>;

impl<const N: usize> ConvNDLSTM<N> {
    const KIND: &'static str = ["Conv1DLSTM", "Conv2DLSTM", "Conv3DLSTM"][N - 1];
    const LAST: &'static str = ["NWC", "NHWC", "NDHWC"][N - 1];
    const OP: &'static str = ["conv1d_lstm", "conv2d_lstm", "conv3d_lstm"][N - 1];

    /// A layer for inputs of this shape (without the batch), of `output_channels` cells at each place, with kernels of the
    /// given shape: one number, or one for each spatial axis.
    pub fn new(
        input_shape: impl Into<Vec<usize>>,
        output_channels: usize,
        kernel_shape: impl Into<Sizes>,
    ) -> Self {
        let (scope, kernel_shape) = (Scope::for_kind(Self::KIND), kernel_shape.into());
        let convolution = |name: &str| {
            let _in = scope.enter();
            ConvND::new(4 * output_channels, kernel_shape.clone()).with_bias(false).name(name)
        };
        let (input_to_hidden, hidden_to_hidden) =
            (convolution("input_to_hidden"), convolution("hidden_to_hidden"));
        ConvNDLSTM {
            scope,
            input_shape: input_shape.into(),
            output_channels,
            kernel_shape,
            data_format: Self::LAST.into(),
            w_i_init: None,
            w_h_init: None,
            b_init: None,
            forget_bias: 1.0,
            dtype: DType::F32,
            input_to_hidden,
            hidden_to_hidden,
            b: Once::new(),
        }
    }

    /// Layout of inputs, outputs and states, such as `NHWC` or `NCHW`; channels last is the faster one.
    #[must_use]
    pub fn data_format(mut self, data_format: &str) -> Self {
        self.data_format = data_format.into();
        self
    }

    /// Initialiser of the filters of the input. Default: as for [`ConvND`].
    #[must_use]
    pub fn w_i_init(mut self, init: impl Initializer) -> Self {
        let init: Arc<dyn Initializer> = Arc::new(init);
        self.w_i_init = Some(init.clone());
        self.input_to_hidden = self.input_to_hidden.w_init(init);
        self
    }

    /// Initialiser of the filters of the state. Default: as for [`ConvND`].
    #[must_use]
    pub fn w_h_init(mut self, init: impl Initializer) -> Self {
        let init: Arc<dyn Initializer> = Arc::new(init);
        self.w_h_init = Some(init.clone());
        self.hidden_to_hidden = self.hidden_to_hidden.w_init(init);
        self
    }

    /// Initialiser of `b`, to which [`forget_bias`](Self::forget_bias) is added. Default: `Zeros`.
    #[must_use]
    pub fn b_init(mut self, init: impl Initializer) -> Self {
        self.b_init = Some(Arc::new(init));
        self
    }

    /// What is added to the biases of the forget gate when they are made. Default: 1.
    #[must_use]
    pub fn forget_bias(mut self, forget_bias: f64) -> Self {
        self.forget_bias = forget_bias;
        self
    }

    /// The dtype of inputs, state and variables. Default: `f32`.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Number of output channels.
    pub fn output_channels(&self) -> usize {
        self.output_channels
    }

    /// The shape of the parts of the state for inputs of this shape, given with the batch.
    fn state_shape(&self, inputs: &[usize], axis: ChannelAxis) -> Vec<usize> {
        let mut shape = inputs.to_vec();
        shape[if axis == ChannelAxis::First { 1 } else { N + 1 }] = self.output_channels;
        shape
    }
}

#[scoped]
impl<const N: usize> RNNCore for ConvNDLSTM<N> {
    /// # Errors
    /// `x` has not rank `N + 2`, the core's dtype or the channels of the first call; the state is no [`LSTMState`] that fits
    /// it; or a setting is out of its range. Nothing is created then.
    fn step(&self, x: &Tensor, state: &Nest) -> Result<(Tensor, Nest)> {
        let axis = channel_axis(Self::OP, &self.data_format)?;
        check_dtype(Self::OP, x, self.dtype)?;
        if x.rank() != N + 2 {
            return Err(Error::shape(Self::OP, "x", x.shape(), format!("rank {}", N + 2)));
        }
        let LSTMState { hidden, cell } = LSTMState::try_from(state)?;
        let shape = self.state_shape(x.shape(), axis);
        check_part(Self::OP, "the hidden state", &hidden, &shape, self.dtype)?;
        check_part(Self::OP, "the cell state", &cell, &shape, self.dtype)?;
        let (to_last, to_first) = channel_orders(N + 2);
        let inward = |x: &Tensor| match axis {
            ChannelAxis::Last => Ok(x.clone()),
            ChannelAxis::First => x.transpose(&to_last),
        };
        let outward = |y: Tensor| match axis {
            ChannelAxis::Last => Ok(y),
            ChannelAxis::First => y.transpose(&to_first),
        };
        let of_input = self.input_to_hidden.forward(&inward(x)?)?;
        let sums = (of_input + self.hidden_to_hidden.forward(&inward(&hidden)?)?)?;
        let b_init = bias_init(self.b_init.as_ref(), self.forget_bias);
        let b = value(&self.b, "b", &[4 * self.output_channels], self.dtype, b_init)?;
        let (y, cell) = lstm_cell((sums + b)?, &inward(&cell)?)?;
        let y = outward(y)?;
        Ok((y.clone(), LSTMState { hidden: y, cell: outward(cell)? }.into()))
    }

    fn initial_state(&self, batch_size: usize) -> Result<Nest> {
        let axis = channel_axis(Self::OP, &self.data_format)?;
        if self.input_shape.len() != N + 1 {
            let expected = format!("{} dims: those of an input without its batch", N + 1);
            return Err(Error::shape(Self::OP, "input_shape", &self.input_shape, expected));
        }
        let inputs: Vec<usize> =
            std::iter::once(batch_size).chain(self.input_shape.iter().copied()).collect();
        let zeros = || Tensor::zeros(self.state_shape(&inputs, axis), self.dtype);
        Ok(LSTMState { hidden: zeros()?, cell: zeros()? }.into())
    }
}

#[cfg(test)]
mod tests;
