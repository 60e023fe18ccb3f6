//! A core with its input added to its output.

use crate::error::Result;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::{Module, scoped};

use super::nest::Nest;
use super::rnn_core::RNNCore;

/// A core with its input added to its output, `y = core(x) + x`, leaf by leaf if they are nested (He et al. 2016). The state
/// is that of the core.
///
/// It is called `<name of the core>_residual`; in files the core is `_base_core`.
#[derive(Module)]
pub struct Residual {
    scope: Scope,
    #[module(name = "_base_core")]
    base_core: Box<dyn RNNCore>,
}

impl Residual {
    /// The core with its input added to its output.
    pub fn new(base_core: impl RNNCore + 'static) -> Self {
        let scope = Scope::new(format!("{}_residual", base_core.scope().name()));
        Residual { scope, base_core: Box::new(base_core) }
    }
}

#[scoped]
impl RNNCore for Residual {
    /// # Errors
    /// Those of the core, or the shapes of its input and output differ.
    fn step(&self, x: &Tensor, state: &Nest) -> Result<(Tensor, Nest)> {
        let (y, state) = self.base_core.step(x, state)?;
        Ok(((y + x)?, state))
    }

    fn initial_state(&self, batch_size: usize) -> Result<Nest> {
        self.base_core.initial_state(batch_size)
    }

    fn step_nested(&self, x: &Nest, state: &Nest) -> Result<(Nest, Nest)> {
        let (y, state) = self.base_core.step_nested(x, state)?;
        Ok((y.try_zip(x, |y, x| y + x)?, state))
    }

    fn sequence(&self, xs: &Tensor, state: &Nest) -> Result<Option<(Tensor, Nest)>> {
        let Some((ys, states)) = self.base_core.sequence(xs, state)? else { return Ok(None) };
        Ok(Some(((ys + xs)?, states)))
    }
}
