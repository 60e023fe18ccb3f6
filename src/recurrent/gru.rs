//! Gated recurrent unit.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init::{Initializer, VarianceScaling};
use crate::module::Once;
use crate::nn::zeros_init;
use crate::ops::recurrent::gru_step;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::nest::Nest;
use super::rnn_core::{RNNCore, check_dtype, check_part};
use super::weights::{check_inputs, value};

const OP: &str = "gru";

/// Gated recurrent unit (Cho et al. 2014): `z = sigmoid(x w_iz + h w_hz + b_z)`, `r = sigmoid(x w_ir + h w_hr + b_r)`,
/// `a = tanh(x w_ia + (r h) w_ha + b_a)`, `y = (1 - z) h + z a`.
///
/// | tensor | shape |
/// |---|---|
/// | `x` | `[batch, input_size]` |
/// | `y`, state `h` | `[batch, hidden_size]`; the state starts at 0 |
/// | `w_i` | `[input_size, 3 hidden_size]`, columns in the order z, r, a |
/// | `w_h` | `[hidden_size, 3 hidden_size]` |
/// | `b` | `[3 hidden_size]` |
///
/// As in the reference, `r` multiplies the state before the product with the weights, and `z` near 1 replaces the state;
/// cuDNN and PyTorch have it the other way round on both counts. Weights start uniform with variance
/// `2 / (rows + columns)` (Glorot & Bengio 2010) of the whole matrix, `b` at 0.
///
/// ```
/// use couplet::prelude::*;
/// let core = GRU::new(3);
/// let x = Tensor::ones([2, 5], DType::F32)?;
/// let (y, state) = core.step(&x, &core.initial_state(2)?)?;
/// assert_eq!(y.to_vec::<f32>()?, state.leaf()?.to_vec::<f32>()?);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct GRU {
    scope: Scope,
    hidden_size: usize,
    w_i_init: Option<Arc<dyn Initializer>>,
    w_h_init: Option<Arc<dyn Initializer>>,
    b_init: Option<Arc<dyn Initializer>>,
    #[module(default = DType::F32)]
    dtype: DType,
    #[module(name = "_w_i")]
    w_i: Once<Variable>,
    #[module(name = "_w_h")]
    w_h: Once<Variable>,
    b: Once<Variable>,
}

impl GRU {
    /// A layer of `hidden_size` units.
    pub fn new(hidden_size: usize) -> Self {
        GRU {
            scope: Scope::of::<Self>(),
            hidden_size,
            w_i_init: None,
            w_h_init: None,
            b_init: None,
            dtype: DType::F32,
            w_i: Once::new(),
            w_h: Once::new(),
            b: Once::new(),
        }
    }

    /// Initialiser of the weights of the input. Default: `VarianceScaling::glorot_uniform`.
    #[must_use]
    pub fn w_i_init(mut self, init: impl Initializer) -> Self {
        self.w_i_init = Some(Arc::new(init));
        self
    }

    /// Initialiser of the weights of the state. Default: `VarianceScaling::glorot_uniform`.
    #[must_use]
    pub fn w_h_init(mut self, init: impl Initializer) -> Self {
        self.w_h_init = Some(Arc::new(init));
        self
    }

    /// Initialiser of `b`. Default: `Zeros`.
    #[must_use]
    pub fn b_init(mut self, init: impl Initializer) -> Self {
        self.b_init = Some(Arc::new(init));
        self
    }

    /// The dtype of inputs, state and variables. Default: `f32`.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Number of units.
    pub fn hidden_size(&self) -> usize {
        self.hidden_size
    }
}

#[scoped]
impl RNNCore for GRU {
    /// # Errors
    /// `x` has not rank 2, the core's dtype or the last dim of the first call; or the state is no tensor
    /// `[batch, hidden_size]`. Nothing is created then.
    fn step(&self, x: &Tensor, state: &Nest) -> Result<(Tensor, Nest)> {
        let h = state.leaf()?;
        check_dtype(OP, x, self.dtype)?;
        let &[batch, inputs] = x.shape().dims() else {
            return Err(Error::shape(OP, "x", x.shape(), "rank 2: [batch, input_size]"));
        };
        check_part(OP, "the state", h, &[batch, self.hidden_size], self.dtype)?;
        check_inputs(OP, x, &self.w_i)?;
        let (gates, dtype) = (3 * self.hidden_size, self.dtype);
        let init = |given: &Option<Arc<dyn Initializer>>| -> Arc<dyn Initializer> {
            given.clone().unwrap_or_else(|| Arc::new(VarianceScaling::glorot_uniform()))
        };
        let w_i = value(&self.w_i, "w_i", &[inputs, gates], dtype, init(&self.w_i_init))?;
        let w_h = value(&self.w_h, "w_h", &[self.hidden_size, gates], dtype, init(&self.w_h_init))?;
        let b = value(&self.b, "b", &[gates], dtype, zeros_init(self.b_init.as_ref()))?;
        let y = gru_step(x, h, (&w_i, &w_h, &b))?;
        Ok((y.clone(), y.into()))
    }

    fn initial_state(&self, batch_size: usize) -> Result<Nest> {
        Ok(Tensor::zeros([batch_size, self.hidden_size], self.dtype)?.into())
    }
}

#[cfg(test)]
mod tests;
