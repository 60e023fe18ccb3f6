//! A controller without memory of its own.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::Result;
use crate::module::Forward;
use crate::nn::Linear;
use crate::recurrent::{Nest, RNNCore};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::{Module, scoped};

/// A fully connected layer that can stand where a recurrent core is expected: `y = activation(x w + b)`. Its state, zeros of
/// shape `[batch, 1]`, passes through unchanged.
///
/// ```
/// use couplet::nets::dnc::FeedForward;
/// use couplet::prelude::*;
/// let core = FeedForward::new(3);
/// let (y, state) = core.step(&Tensor::ones([2, 4], DType::F32)?, &core.initial_state(2)?)?;
/// assert_eq!((y.shape(), state.leaf()?.shape()), (&[2, 3].into(), &[2, 1].into()));
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct FeedForward {
    scope: Scope,
    hidden_size: usize,
    #[module(name = "_activation")]
    activation: Option<Arc<dyn Forward>>,
    #[module(default = DType::F32)]
    dtype: DType,
    #[module(hidden)]
    linear: Linear,
}

impl FeedForward {
    /// A layer of `hidden_size` units.
    pub fn new(hidden_size: usize) -> Self {
        let scope = Scope::of::<Self>();
        let linear = {
            let _in = scope.enter();
            Linear::new(hidden_size)
        };
        FeedForward { scope, hidden_size, activation: None, dtype: DType::F32, linear }
    }

    /// The function around the sum. Default: `Tensor::tanh`.
    #[must_use]
    pub fn activation(mut self, activation: impl Forward + 'static) -> Self {
        self.activation = Some(Arc::new(activation));
        self
    }

    /// The dtype of the state. Default: `f32`.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }
}

#[scoped]
impl RNNCore for FeedForward {
    /// # Errors
    /// `x` has a rank below 2, or another last dim or dtype than in the first call.
    fn step(&self, x: &Tensor, state: &Nest) -> Result<(Tensor, Nest)> {
        let y = self.linear.forward(x)?;
        let y = match &self.activation {
            Some(activation) => activation.forward_owned(y)?,
            None => y.tanh()?,
        };
        Ok((y, state.clone()))
    }

    fn initial_state(&self, batch_size: usize) -> Result<Nest> {
        Ok(Tensor::zeros([batch_size, 1], self.dtype)?.into())
    }
}
