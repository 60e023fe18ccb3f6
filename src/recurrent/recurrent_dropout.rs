//! Dropout of the state of an LSTM.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::random::{self, Generator};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::{Module, scoped};

use super::lstm::LSTM;
use super::lstm_state::LSTMState;
use super::nest::Nest;
use super::rnn_core::RNNCore;

const OP: &str = "lstm_with_recurrent_dropout";

/// An LSTM whose hidden state loses the same units at each step before it meets the weights (Gal & Ghahramani 2016). The cell,
/// and the output itself, are not touched.
///
/// The state is `(state of the LSTM, masks)`. The masks are drawn by
/// [`initial_state`](RNNCore::initial_state), once for each row and unit of a sequence, 0 or `1 / (1 - dropout)`; ask for a new
/// one for each sequence.
#[derive(Module)]
pub struct RecurrentDropout {
    scope: Scope,
    #[module(name = "_base_core")]
    base_core: Arc<LSTM>,
    dropout: f64,
    seed: Option<u64>,
    #[module(name = "_generator", hidden)]
    generator: Option<Generator>,
}

/// An LSTM for training, with recurrent dropout, and the same one, sharing its variables, for evaluation.
///
/// `dropout`, the probability with which a unit is dropped, lies in `[0, 1)`; it is checked at the first call. The first is
/// called `<name of the LSTM>_recurrent_dropout`.
///
/// ```
/// use couplet::prelude::*;
/// let (train, test) = lstm_with_recurrent_dropout(LSTM::new(16), 0.3);
/// let xs = Tensor::ones([5, 2, 4], DType::F32)?;
/// let (ys, _) = static_unroll(&train, &xs, &train.initial_state(2)?, None)?;
/// let (zs, _) = static_unroll(&*test, &xs, &test.initial_state(2)?, None)?;
/// assert_eq!((ys.shape(), zs.shape()), (&[5, 2, 16].into(), &[5, 2, 16].into()));
/// # Ok::<(), couplet::Error>(())
/// ```
pub fn lstm_with_recurrent_dropout(lstm: LSTM, dropout: f64) -> (RecurrentDropout, Arc<LSTM>) {
    let scope = Scope::new(format!("{}_recurrent_dropout", lstm.scope().name()));
    let lstm = Arc::new(lstm);
    (RecurrentDropout { scope, base_core: lstm.clone(), dropout, seed: None, generator: None }, lstm)
}

impl RecurrentDropout {
    /// A generator of its own for the masks, saved with the module; consecutive masks still differ. Default: the thread's
    /// current generator.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self.generator = Some(Generator::seed(seed));
        self
    }

    fn check(&self) -> Result<()> {
        if (0.0..1.0).contains(&self.dropout) {
            return Ok(());
        }
        Err(Error::argument(OP, "dropout", self.dropout, "a number in the half-open range [0, 1)"))
    }
}

#[scoped]
impl RNNCore for RecurrentDropout {
    /// # Errors
    /// Those of the LSTM, `dropout` lies outside `[0, 1)`, or the state is not of the form that `initial_state` gives.
    fn step(&self, x: &Tensor, state: &Nest) -> Result<(Tensor, Nest)> {
        self.check()?;
        let expected = Nest::tuple([state.get(0)?.clone(), masks(Tensor::from(1.0f32))]);
        if !state.has_form_of(&expected) {
            let expected = format!("{}, as initial_state gives it", expected.form());
            return Err(Error::argument(OP, "the state", state.form(), expected));
        }
        let masks = state.get(1)?;
        let LSTMState { hidden, cell } = LSTMState::try_from(state.get(0)?)?;
        let hidden = (hidden * masks.get("hidden")?.leaf()?)?;
        let (y, next) = self.base_core.step(x, &LSTMState { hidden, cell }.into())?;
        Ok((y, Nest::tuple([next, masks.clone()])))
    }

    fn initial_state(&self, batch_size: usize) -> Result<Nest> {
        self.check()?;
        let state = self.base_core.initial_state(batch_size)?;
        let hidden = state.get("hidden")?.leaf()?;
        let ones = Tensor::ones(hidden.shape().clone(), hidden.dtype())?;
        let draw = || ones.dropout(self.dropout, None, true);
        let mask = match &self.generator {
            None => draw(),
            Some(generator) => random::with(generator, draw),
        }?;
        Ok(Nest::tuple([state, masks(mask)]))
    }
}

/// The masks of a state: the cell has none.
fn masks(hidden: Tensor) -> Nest {
    Nest::fields(LSTMState::NAME, [("hidden", Nest::Leaf(hidden)), ("cell", Nest::Empty)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    #[test]
    fn the_mask_meets_the_hidden_state_before_the_weights_and_nothing_else() -> Result<()> {
        let (train, test) = lstm_with_recurrent_dropout(LSTM::new(2), 0.5);
        let x = Tensor::from([[-1.0f32, -0.5, 0.0], [0.5, 1.0, -1.0]]);
        let (h, c) =
            (Tensor::from([[0.5f32, -0.5], [1.0, 0.0]]), Tensor::from([[1.0f32, -1.0], [0.25, 0.5]]));
        let mask = Tensor::from([[2.0f32, 0.0], [0.0, 2.0]]);
        let state = Nest::from(LSTMState { hidden: h.clone(), cell: c.clone() });
        let (y, next) = train.step(&x, &Nest::tuple([state, masks(mask.clone())]))?;
        let masked = LSTMState { hidden: (&h * &mask)?, cell: c };
        let (want, want_state) = test.step(&x, &masked.into())?;
        assert_eq!(y.to_vec::<f32>()?, want.to_vec::<f32>()?);
        let cell = |state: &Nest| state.get("cell")?.leaf()?.to_vec::<f32>();
        assert_eq!(cell(next.get(0)?)?, cell(&want_state)?);
        assert_eq!(next.get(1)?.get("hidden")?.leaf()?.to_vec::<f32>()?, mask.to_vec::<f32>()?);
        Ok(())
    }

    #[test]
    fn a_mask_holds_zeros_and_what_makes_up_for_them() -> Result<()> {
        random::set_seed(3);
        let (train, _) = lstm_with_recurrent_dropout(LSTM::new(50), 0.25);
        let mask = |core: &RecurrentDropout| -> Result<Vec<f32>> {
            core.initial_state(40)?.get(1)?.get("hidden")?.leaf()?.to_vec::<f32>()
        };
        let drawn = mask(&train)?;
        assert!(drawn.iter().all(|&m| m == 0.0 || (m - 4.0 / 3.0).abs() < 1e-6));
        let dropped = drawn.iter().filter(|&&m| m == 0.0).count() as f64 / 2000.0;
        assert!((dropped - 0.25).abs() < 5.0 * (0.25 * 0.75 / 2000.0f64).sqrt(), "{dropped}");
        assert_ne!(mask(&train)?, drawn);
        let seeded = || lstm_with_recurrent_dropout(LSTM::new(50), 0.25).0.seed(7);
        assert_eq!(mask(&seeded())?, mask(&seeded())?);
        Ok(())
    }

    #[test]
    fn the_variables_are_shared_and_a_rate_out_of_range_is_refused() -> Result<()> {
        let (train, test) = lstm_with_recurrent_dropout(LSTM::new(2), 0.5);
        let x = Tensor::ones([1, 3], DType::F32)?;
        train.step(&x, &train.initial_state(1)?)?;
        let paths = |module: &dyn Module| -> Result<Vec<String>> {
            Ok(module.named_variables()?.into_iter().map(|(path, _)| path).collect())
        };
        assert_eq!(paths(&train)?, ["_base_core/_w_i", "_base_core/_w_h", "_base_core/b"]);
        assert_eq!(train.variables()?[0].id(), test.variables()?[0].id());
        assert_eq!(train.scope().path(), "lstm_recurrent_dropout");
        for rate in [-1.0, 1.0, 1.5, f64::NAN] {
            let message = lstm_with_recurrent_dropout(LSTM::new(2), rate).0.initial_state(1).unwrap_err();
            assert!(message.to_string().contains("[0, 1)"), "{message}");
        }
        Ok(())
    }
}
