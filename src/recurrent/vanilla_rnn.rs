//! The plain recurrent layer.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::module::{Forward, Once};
use crate::nn::Linear;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, init, scoped};

use super::nest::Nest;
use super::rnn_core::{RNNCore, check_dtype};

/// The plain recurrent layer `y = activation(x w_i + h w_h + b)`, where `h` is the last `y` (Elman 1990).
///
/// | tensor | shape |
/// |---|---|
/// | `x` | `[batch, input_size]`, or a higher rank that the state broadcasts to |
/// | `y`, state | `[batch, hidden_size]`; the state starts at 0 |
/// | `w_i` | `[input_size, hidden_size]` |
/// | `w_h` | `[hidden_size, hidden_size]` |
/// | `b` | `[hidden_size]` |
///
/// Each weight starts as a normal cut at two standard deviations, with standard deviation `1 / sqrt(rows)`; `b` starts at
/// 0.
///
/// ```
/// use couplet::prelude::*;
/// let core = VanillaRNN::new(3);
/// let xs = Tensor::ones([7, 2, 4], DType::F32)?; // [steps, batch, input_size]
/// let (ys, state) = dynamic_unroll(&core, &xs, &core.initial_state(2)?, None)?;
/// assert_eq!((ys.shape(), state.leaf()?.shape()), (&[7, 2, 3].into(), &[2, 3].into()));
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct VanillaRNN {
    scope: Scope,
    hidden_size: usize,
    #[module(name = "_activation")]
    activation: Option<Arc<dyn Forward>>,
    w_i_init: Option<Arc<dyn Initializer>>,
    w_h_init: Option<Arc<dyn Initializer>>,
    b_init: Option<Arc<dyn Initializer>>,
    #[module(default = DType::F32)]
    dtype: DType,
    #[module(name = "_input_to_hidden", hidden)]
    input_to_hidden: Linear,
    #[module(name = "_hidden_to_hidden", hidden)]
    hidden_to_hidden: Linear,
    #[module(name = "_b")]
    b: Once<Variable>,
}

impl VanillaRNN {
    /// A layer of `hidden_size` units.
    pub fn new(hidden_size: usize) -> Self {
        let scope = Scope::of::<Self>();
        let linear = |name: &str| {
            let _in = scope.enter();
            Linear::new(hidden_size).with_bias(false).name(name)
        };
        let (input_to_hidden, hidden_to_hidden) = (linear("input_to_hidden"), linear("hidden_to_hidden"));
        VanillaRNN {
            scope,
            hidden_size,
            activation: None,
            w_i_init: None,
            w_h_init: None,
            b_init: None,
            dtype: DType::F32,
            input_to_hidden,
            hidden_to_hidden,
            b: Once::new(),
        }
    }

    /// The function around the sum. Default: `Tensor::tanh`.
    #[must_use]
    pub fn activation(mut self, activation: impl Forward + 'static) -> Self {
        self.activation = Some(Arc::new(activation));
        self
    }

    /// Initialiser of the weights of the input. Default: as for [`Linear`].
    #[must_use]
    pub fn w_i_init(mut self, init: impl Initializer) -> Self {
        let init: Arc<dyn Initializer> = Arc::new(init);
        self.w_i_init = Some(init.clone());
        self.input_to_hidden = self.input_to_hidden.w_init(init);
        self
    }

    /// Initialiser of the weights of the state. Default: as for [`Linear`].
    #[must_use]
    pub fn w_h_init(mut self, init: impl Initializer) -> Self {
        let init: Arc<dyn Initializer> = Arc::new(init);
        self.w_h_init = Some(init.clone());
        self.hidden_to_hidden = self.hidden_to_hidden.w_init(init);
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
impl RNNCore for VanillaRNN {
    /// # Errors
    /// `x` has a rank below 2, another dtype than the core, or another last dim than in the first call; or the state is
    /// not a tensor that ends in `hidden_size`.
    fn step(&self, x: &Tensor, state: &Nest) -> Result<(Tensor, Nest)> {
        const OP: &str = "vanilla_rnn";
        let h = state.leaf()?;
        check_dtype(OP, x, self.dtype)?;
        if x.rank() < 2 {
            return Err(Error::shape(OP, "x", x.shape(), "rank 2 or more"));
        }
        if h.rank() < 2 || h.dim(-1)? != self.hidden_size {
            return Err(Error::shape(OP, "the state", h.shape(), format!("[batch, {}]", self.hidden_size)));
        }
        let b_init = self.b_init.clone().unwrap_or_else(|| Arc::new(init::Zeros));
        let b = self.b.get_or_init(|| Variable::new("b", &[self.hidden_size], self.dtype, b_init))?;
        let sum = (self.input_to_hidden.forward(x)? + self.hidden_to_hidden.forward(h)?)? + b;
        let y = match &self.activation {
            None => sum?.tanh()?,
            Some(activation) => activation.forward_owned(sum?)?,
        };
        Ok((y.clone(), y.into()))
    }

    fn initial_state(&self, batch_size: usize) -> Result<Nest> {
        Ok(Tensor::zeros([batch_size, self.hidden_size], self.dtype)?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_of_known_weights_follows_its_formula() -> Result<()> {
        let core = VanillaRNN::new(1)
            .activation(|x: &Tensor| x * 2.0)
            .w_i_init(init::Constant::new(3.0))
            .w_h_init(init::Constant::new(5.0))
            .b_init(init::Constant::new(7.0));
        // 2 (3 * 1 + 5 * 0 + 7) = 20, then 2 (3 * 2 + 5 * 20 + 7) = 226.
        let (y, state) = core.step(&Tensor::from([[1.0f32]]), &core.initial_state(1)?)?;
        assert_eq!(y.to_vec::<f32>()?, [20.0]);
        let (y, state) = core.step(&Tensor::from([[2.0f32]]), &state)?;
        assert_eq!((y.to_vec::<f32>()?, state.leaf()?.to_vec::<f32>()?), (vec![226.0], vec![226.0]));
        Ok(())
    }

    #[test]
    fn higher_ranks_share_the_state() -> Result<()> {
        let core = VanillaRNN::new(2);
        let x = Tensor::ones([3, 2, 3], DType::F32)?;
        assert_eq!(core.step(&x, &core.initial_state(2)?)?.0.shape(), &[3, 2, 2]);
        Ok(())
    }

    #[test]
    fn misfits_are_refused_and_make_nothing() -> Result<()> {
        let core = VanillaRNN::new(2);
        let state = core.initial_state(2)?;
        let message = |x: Result<Tensor>, state: &Nest| core.step(&x?, state).map(drop);
        let x = |shape: &[usize]| Tensor::ones(shape, DType::F32);
        let error = message(Tensor::ones([2, 3], DType::F64), &state).unwrap_err().to_string();
        assert!(error.starts_with("in vanilla_rnn: vanilla_rnn: x has dtype f64, expected f32"), "{error}");
        assert!(message(x(&[3]), &state).unwrap_err().to_string().contains("rank 2 or more"));
        assert!(message(x(&[2, 3]), &Tensor::ones([2, 3], DType::F32)?.into()).is_err());
        assert!(message(x(&[2, 3]), &Nest::tuple([x(&[2, 2])?])).is_err());
        assert!(core.named_variables()?.is_empty());
        Ok(())
    }
}
