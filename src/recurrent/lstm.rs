//! Long short-term memory.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::module::Once;
use crate::nn::fan_in_init;
use crate::ops::recurrent::{lstm_cell, lstm_sequence, recurrent_sums};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::lstm_state::LSTMState;
use super::nest::Nest;
use super::rnn_core::{RNNCore, check_dtype, check_part};
use super::weights::{bias_init, check_inputs, value};

const OP: &str = "lstm";

/// Long short-term memory (Hochreiter & Schmidhuber 1997), with forget gates (Gers et al. 2000):
/// `[i, f, g, o] = x w_i + h w_h + b`, `c' = sigmoid(f) c + sigmoid(i) tanh(g)`, `y = sigmoid(o) tanh(c')`.
///
/// | tensor | shape |
/// |---|---|
/// | `x` | `[batch, input_size]` |
/// | `y`, state `hidden` | `[batch, hidden_size]`, with a projection `[batch, projection_size]` |
/// | state `cell` | `[batch, hidden_size]` |
/// | `w_i` | `[input_size, 4 hidden_size]`, columns in the order i, f, g, o |
/// | `w_h` | `[hidden_size, 4 hidden_size]`, with a projection `[projection_size, 4 hidden_size]` |
/// | `b` | `[4 hidden_size]` |
/// | `projection` | `[hidden_size, projection_size]` |
///
/// With a projection the output, and with it the next `hidden`, is `y projection` (Sak et al. 2014): fewer recurrent weights
/// for as many cells. The state starts at 0; each weight as a normal cut at two standard deviations, with standard
/// deviation `1 / sqrt(rows)`; `b` at 0, for the forget gate at 1, so that the memory is kept at first (Jozefowicz et al.
/// 2015).
///
/// A state is a [`Nest`] of the form [`LSTMState`]. [`dynamic_unroll`](super::dynamic_unroll) runs a layer without projection
/// as one op.
///
/// ```
/// use couplet::prelude::*;
/// let core = LSTM::new(3);
/// let x = Tensor::ones([2, 5], DType::F32)?;
/// let (y, state) = core.step(&x, &core.initial_state(2)?)?;
/// let LSTMState { hidden, cell } = state.try_into()?;
/// assert_eq!(y.to_vec::<f32>()?, hidden.to_vec::<f32>()?);
/// assert_eq!(cell.shape(), &[2, 3]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct LSTM {
    scope: Scope,
    hidden_size: usize,
    projection_size: Option<usize>,
    projection_init: Option<Arc<dyn Initializer>>,
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
    projection: Once<Variable>,
}

/// The values of a layer's variables.
struct Weights {
    w_i: Tensor,
    w_h: Tensor,
    b: Tensor,
    projection: Option<Tensor>,
}

impl LSTM {
    /// A layer of `hidden_size` cells.
    pub fn new(hidden_size: usize) -> Self {
        LSTM {
            scope: Scope::of::<Self>(),
            hidden_size,
            projection_size: None,
            projection_init: None,
            w_i_init: None,
            w_h_init: None,
            b_init: None,
            forget_bias: 1.0,
            dtype: DType::F32,
            w_i: Once::new(),
            w_h: Once::new(),
            b: Once::new(),
            projection: Once::new(),
        }
    }

    /// Size of the output after a projection, 1 or more. Default: no projection.
    #[must_use]
    pub fn projection_size(mut self, projection_size: usize) -> Self {
        self.projection_size = Some(projection_size);
        self
    }

    /// Initialiser of the projection. Default: `TruncatedNormal` with standard deviation `1 / sqrt(hidden_size)`. It is an
    /// error without a [`projection_size`](Self::projection_size).
    #[must_use]
    pub fn projection_init(mut self, init: impl Initializer) -> Self {
        self.projection_init = Some(Arc::new(init));
        self
    }

    /// Initialiser of the weights of the input. Default: `TruncatedNormal` with standard deviation `1 / sqrt(input_size)`.
    #[must_use]
    pub fn w_i_init(mut self, init: impl Initializer) -> Self {
        self.w_i_init = Some(Arc::new(init));
        self
    }

    /// Initialiser of the weights of the state. Default: `TruncatedNormal` with standard deviation `1 / sqrt(rows)`.
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

    /// Number of outputs.
    pub fn output_size(&self) -> usize {
        self.projection_size.unwrap_or(self.hidden_size)
    }

    fn check_settings(&self) -> Result<()> {
        match self.projection_size {
            None if self.projection_init.is_some() => Err(Error::usage(
                OP,
                "projection_init is given although there is no projection",
                "give a projection_size too, or leave it out",
            )),
            Some(0) => {
                Err(Error::argument(OP, "projection_size", 0, "1 or more; leave it out for no projection"))
            }
            _ => Ok(()),
        }
    }

    /// The state, whose parts fit a batch of this size.
    fn checked_state(&self, state: &Nest, batch: usize) -> Result<LSTMState> {
        let state = LSTMState::try_from(state)?;
        check_part(OP, "the hidden state", &state.hidden, &[batch, self.output_size()], self.dtype)?;
        check_part(OP, "the cell state", &state.cell, &[batch, self.hidden_size], self.dtype)?;
        Ok(state)
    }

    fn weights(&self, inputs: usize) -> Result<Weights> {
        let (outputs, gates, dtype) = (self.output_size(), 4 * self.hidden_size, self.dtype);
        let init = |given: &Option<Arc<dyn Initializer>>, rows| fan_in_init(given.as_ref(), rows);
        let w_i = value(&self.w_i, "w_i", &[inputs, gates], dtype, init(&self.w_i_init, inputs))?;
        let w_h = value(&self.w_h, "w_h", &[outputs, gates], dtype, init(&self.w_h_init, outputs))?;
        let b = value(&self.b, "b", &[gates], dtype, bias_init(self.b_init.as_ref(), self.forget_bias))?;
        let projection = self.projection_size.map(|size| {
            let shape = [self.hidden_size, size];
            value(&self.projection, "projection", &shape, dtype, init(&self.projection_init, shape[0]))
        });
        Ok(Weights { w_i, w_h, b, projection: projection.transpose()? })
    }
}

#[scoped]
impl RNNCore for LSTM {
    /// # Errors
    /// `x` has not rank 2, the core's dtype or the last dim of the first call; the state is no [`LSTMState`] of the core's
    /// sizes; or a setting is out of its range. Nothing is created then.
    fn step(&self, x: &Tensor, state: &Nest) -> Result<(Tensor, Nest)> {
        self.check_settings()?;
        check_dtype(OP, x, self.dtype)?;
        let &[batch, inputs] = x.shape().dims() else {
            return Err(Error::shape(OP, "x", x.shape(), "rank 2: [batch, input_size]"));
        };
        let LSTMState { hidden, cell } = self.checked_state(state, batch)?;
        check_inputs(OP, x, &self.w_i)?;
        let Weights { w_i, w_h, b, projection } = self.weights(inputs)?;
        let (y, cell) = lstm_cell(recurrent_sums(x, &hidden, &w_i, &w_h, &b)?, &cell)?;
        let y = match projection {
            Some(projection) => y.matmul(&projection)?,
            None => y,
        };
        Ok((y.clone(), LSTMState { hidden: y, cell }.into()))
    }

    fn initial_state(&self, batch_size: usize) -> Result<Nest> {
        self.check_settings()?;
        let zeros = |size| Tensor::zeros([batch_size, size], self.dtype);
        Ok(LSTMState { hidden: zeros(self.output_size())?, cell: zeros(self.hidden_size)? }.into())
    }

    fn sequence(&self, xs: &Tensor, state: &Nest) -> Result<Option<(Tensor, Nest)>> {
        let &[_, batch, inputs] = xs.shape().dims() else { return Ok(None) };
        if self.projection_size.is_some() || self.projection_init.is_some() {
            return Ok(None);
        }
        check_dtype(OP, xs, self.dtype)?;
        let LSTMState { hidden, cell } = self.checked_state(state, batch)?;
        check_inputs(OP, xs, &self.w_i)?;
        let Weights { w_i, w_h, b, .. } = self.weights(inputs)?;
        let (hidden, cell) = lstm_sequence(xs, (&hidden, &cell), (&w_i, &w_h, &b))?;
        Ok(Some((hidden.clone(), LSTMState { hidden, cell }.into())))
    }
}

#[cfg(test)]
mod tests;
