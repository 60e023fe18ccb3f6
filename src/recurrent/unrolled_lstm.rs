//! Long short-term memory over a whole sequence.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::module::Once;
use crate::nn::fan_in_init;
use crate::ops::recurrent::lstm_sequence;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::lstm_state::LSTMState;
use super::nest::Nest;
use super::rnn_core::{UnrolledRNN, check_dtype, check_part};
use super::weights::{bias_init, check_inputs, value};

const OP: &str = "unrolled_lstm";

/// An [`LSTM`](super::LSTM) that takes a whole sequence, `[steps, batch, input_size]`, as one op, forward and backward.
///
/// Variables, their order and their start are those of [`LSTM`](super::LSTM), and so are the outputs up to rounding. Any
/// call may have its own number of steps.
///
/// ```
/// use couplet::prelude::*;
/// let lstm = UnrolledLSTM::new(16);
/// let xs = Tensor::ones([64, 2, 8], DType::F32)?;
/// let (ys, state) = lstm.unroll(&xs, &lstm.initial_state(2)?)?;
/// assert_eq!((ys.shape(), state.get("cell")?.leaf()?.shape()), (&[64, 2, 16].into(), &[2, 16].into()));
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct UnrolledLSTM {
    scope: Scope,
    hidden_size: usize,
    w_i_init: Option<Arc<dyn Initializer>>,
    w_h_init: Option<Arc<dyn Initializer>>,
    b_init: Option<Arc<dyn Initializer>>,
    #[module(default = 1.0)]
    forget_bias: f64,
    #[module(default = DType::F32)]
    dtype: DType,
    #[module(name = "_w_i")]
    w_i: Once<Variable>,
    #[module(name = "_w_h")]
    w_h: Once<Variable>,
    b: Once<Variable>,
}

impl UnrolledLSTM {
    /// A network of `hidden_size` cells.
    pub fn new(hidden_size: usize) -> Self {
        UnrolledLSTM {
            scope: Scope::of::<Self>(),
            hidden_size,
            w_i_init: None,
            w_h_init: None,
            b_init: None,
            forget_bias: 1.0,
            dtype: DType::F32,
            w_i: Once::new(),
            w_h: Once::new(),
            b: Once::new(),
        }
    }

    /// Initialiser of the weights of the input. Default: `TruncatedNormal` with standard deviation `1 / sqrt(input_size)`.
    #[must_use]
    pub fn w_i_init(mut self, init: impl Initializer) -> Self {
        self.w_i_init = Some(Arc::new(init));
        self
    }

    /// Initialiser of the weights of the state. Default: `TruncatedNormal` with standard deviation `1 / sqrt(hidden_size)`.
    #[must_use]
    pub fn w_h_init(mut self, init: impl Initializer) -> Self {
        self.w_h_init = Some(Arc::new(init));
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

    /// Number of cells.
    pub fn hidden_size(&self) -> usize {
        self.hidden_size
    }
}

#[scoped]
impl UnrolledRNN for UnrolledLSTM {
    /// # Errors
    /// The sequence has not rank 3, the network's dtype or the last dim of the first call, or it has no steps; or the state
    /// is no [`LSTMState`] of the network's sizes. Nothing is created then.
    fn unroll(&self, input_sequence: &Tensor, initial_state: &Nest) -> Result<(Tensor, Nest)> {
        let xs = input_sequence;
        check_dtype(OP, xs, self.dtype)?;
        let (batch, inputs) = match xs.shape().dims() {
            &[steps, batch, inputs] if steps > 0 => (batch, inputs),
            _ => {
                let expected = "rank 3 and at least one step: [steps, batch, input_size]";
                return Err(Error::shape(OP, "the input sequence", xs.shape(), expected));
            }
        };
        let LSTMState { hidden, cell } = LSTMState::try_from(initial_state)?;
        check_part(OP, "the hidden state", &hidden, &[batch, self.hidden_size], self.dtype)?;
        check_part(OP, "the cell state", &cell, &[batch, self.hidden_size], self.dtype)?;
        check_inputs(OP, xs, &self.w_i)?;
        let (gates, dtype) = (4 * self.hidden_size, self.dtype);
        let init = |given: &Option<Arc<dyn Initializer>>, rows| fan_in_init(given.as_ref(), rows);
        let w_i = value(&self.w_i, "w_i", &[inputs, gates], dtype, init(&self.w_i_init, inputs))?;
        let w_h = init(&self.w_h_init, self.hidden_size);
        let w_h = value(&self.w_h, "w_h", &[self.hidden_size, gates], dtype, w_h)?;
        let b = value(&self.b, "b", &[gates], dtype, bias_init(self.b_init.as_ref(), self.forget_bias))?;
        let (ys, cells) = lstm_sequence(xs, (&hidden, &cell), (&w_i, &w_h, &b))?;
        let state = LSTMState { hidden: ys.index(-1)?, cell: cells.index(-1)? };
        Ok((ys, state.into()))
    }

    fn initial_state(&self, batch_size: usize) -> Result<Nest> {
        let zeros = || Tensor::zeros([batch_size, self.hidden_size], self.dtype);
        Ok(LSTMState { hidden: zeros()?, cell: zeros()? }.into())
    }
}

#[cfg(test)]
mod tests;
