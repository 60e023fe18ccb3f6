//! Initial states that are trained.

use crate::error::{Error, Result};
use crate::module::Once;
use crate::scope::Scope;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::nest::Nest;
use super::rnn_core::{RNNCore, UnrolledRNN};

/// An initial state that is trained: each part is a variable, repeated for each row of the batch.
///
/// A part of shape `s` is kept as a variable of shape `[1, s..]` and given as `[batch, s..]`. It is called by its path in the
/// structure, `hidden` or `1/h`; `state` if the structure is a single tensor.
///
/// ```
/// use couplet::prelude::*;
/// let core = GRU::new(16);
/// let start = TrainableState::for_core(&core);
/// let xs = Tensor::ones([5, 3, 4], DType::F32)?;
/// let (ys, _) = dynamic_unroll(&core, &xs, &start.initial_state(3)?, None)?;
/// assert_eq!((ys.shape(), start.variables()?.len()), (&[5, 3, 16].into(), 1));
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(materialise = Self::template)]
pub struct TrainableState {
    scope: Scope,
    /// The values, or why they could not be had.
    #[module(skip)]
    initial_values: Result<Nest>,
    #[module(skip)]
    mask: Option<Nest<bool>>,
    #[module(name = "_template", hidden)]
    template: Once<Nest<Variable>>,
}

impl TrainableState {
    /// A state that starts with these values, which have no batch axis.
    pub fn new(initial_values: impl Into<Nest>) -> Self {
        Self::from_result(Ok(initial_values.into()))
    }

    /// A state that starts with what the core itself starts with.
    pub fn for_core(core: &(impl RNNCore + ?Sized)) -> Self {
        Self::from_result(core.initial_state(1).and_then(without_batch))
    }

    /// A state that starts with what the network itself starts with.
    pub fn for_unrolled(network: &(impl UnrolledRNN + ?Sized)) -> Self {
        Self::from_result(network.initial_state(1).and_then(without_batch))
    }

    fn from_result(initial_values: Result<Nest>) -> Self {
        TrainableState { scope: Scope::of::<Self>(), initial_values, mask: None, template: Once::new() }
    }

    /// Which parts are trained, in the structure of the values; the others are variables that are not trainable. Default:
    /// all.
    #[must_use]
    pub fn mask(mut self, mask: impl Into<Nest<bool>>) -> Self {
        self.mask = Some(mask.into());
        self
    }
}

/// The structure without the batch axis of each part, which has size 1.
fn without_batch(state: Nest) -> Result<Nest> {
    if state.has_gaps() {
        let problem = format!("the core's state {} has parts without a value", state.form());
        return Err(Error::usage("trainable_state", problem, "give the values with TrainableState::new"));
    }
    state.try_map(|x| x.squeeze(0))
}

#[scoped]
impl TrainableState {
    /// The state for a batch of this size.
    ///
    /// # Errors
    /// The values could not be had from the core, or the mask has another structure than the values.
    pub fn initial_state(&self, batch_size: usize) -> Result<Nest> {
        self.template()?.try_map(|part| {
            let value = part.value();
            let mut shape = value.shape().to_vec();
            shape[0] = batch_size;
            value.broadcast_to(shape)
        })
    }

    fn template(&self) -> Result<&Nest<Variable>> {
        self.template.get_or_init(|| {
            let values = self.initial_values.clone()?;
            let mask = match &self.mask {
                Some(mask) => mask.clone(),
                None => values.try_map(|_| Ok(true))?,
            };
            let paths = values.paths();
            let mut paths = paths.iter().map(|path| if path.is_empty() { "state" } else { path.as_str() });
            values.try_zip(&mask, |value, &trainable| {
                let value = value.expand_dims(0)?.stop_gradient();
                let name = paths.next().unwrap_or("state");
                let shape = value.shape().clone();
                Variable::create(name, &shape, value.dtype(), trainable, || Ok(value))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    fn numbers(shape: &[usize], start: f64) -> Tensor {
        let size = shape.iter().product::<usize>() as f64;
        Tensor::arange(start, start + size, 1.0, DType::F32).unwrap().reshape(shape).unwrap()
    }

    #[test]
    fn parts_are_repeated_along_the_batch_and_named_by_their_paths() -> Result<()> {
        let values = || {
            let inner = Nest::map([("a", numbers(&[3, 1], 1.0)), ("b", Tensor::from(5.0f32))]);
            Nest::tuple([Nest::from(numbers(&[2], 0.0)), inner])
        };
        let inner = Nest::Map([("a".to_owned(), false.into()), ("b".to_owned(), true.into())].into());
        let mask = Nest::Tuple(vec![true.into(), inner]);
        let start = TrainableState::new(values()).mask(mask);
        let state = start.initial_state(2)?;
        assert_eq!(state.to_string(), "(f32[2, 2], {a: f32[2, 3, 1], b: f32[2]})");
        assert_eq!(state.get(0)?.leaf()?.to_vec::<f32>()?, [0.0, 1.0, 0.0, 1.0]);
        assert_eq!(state.get(1)?.get("b")?.leaf()?.to_vec::<f32>()?, [5.0, 5.0]);
        let told: Vec<_> = start.variables()?.iter().map(|v| (v.name().to_owned(), v.trainable())).collect();
        let want =
            [("trainable_state/0", true), ("trainable_state/1/a", false), ("trainable_state/1/b", true)];
        assert_eq!(told, want.map(|(name, trainable)| (name.to_owned(), trainable)));
        let paths: Vec<_> = start.named_variables()?.into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["_template/0", "_template/1/a", "_template/1/b"]);
        Ok(())
    }

    #[test]
    fn gradients_are_summed_over_the_batch() -> Result<()> {
        let start = TrainableState::new(numbers(&[2], 0.0));
        let tape = GradientTape::new();
        let y = (start.initial_state(3)?.leaf()? * numbers(&[3, 2], 1.0))?.sum()?;
        let variables = start.variables()?;
        let gradient = tape.gradient(&y, &variables)?.remove(0).expect("it is used");
        // 1 + 3 + 5 and 2 + 4 + 6
        assert_eq!(gradient.dense()?.to_vec::<f32>()?, [9.0, 12.0]);
        Ok(())
    }

    #[test]
    fn a_mask_of_another_structure_is_refused_with_both_shown() {
        let values = || Nest::tuple([numbers(&[2], 0.0), numbers(&[2], 0.0)]);
        let message = |mask: Nest<bool>| {
            TrainableState::new(values()).mask(mask).initial_state(1).unwrap_err().to_string()
        };
        assert!(message(Nest::List(vec![true.into(), false.into()])).contains("(*, *) and [*, *]"));
        assert!(message(Nest::from(true)).contains("(*, *) and *"));
        assert!(TrainableState::new(values()).mask(true).variables().is_err());
    }

    #[test]
    fn a_state_for_a_core_starts_like_the_core() -> Result<()> {
        let core = LSTM::new(16);
        let start = TrainableState::for_core(&core);
        let (got, want) = (start.initial_state(42)?, core.initial_state(42)?);
        got.try_zip(&want, |got, want| {
            assert_eq!((got.shape(), got.to_vec::<f32>()?), (want.shape(), want.to_vec::<f32>()?));
            Ok(())
        })?;
        assert_eq!(start.trainable_variables()?.len(), 2);
        let network = UnrolledLSTM::new(3);
        assert_eq!(
            TrainableState::for_unrolled(&network).initial_state(4)?.get("cell")?.leaf()?.shape(),
            &[4, 3]
        );
        Ok(())
    }

    #[test]
    fn a_core_whose_state_has_absent_parts_is_refused() {
        let (train, _) = lstm_with_recurrent_dropout(LSTM::new(2), 0.5);
        let message = TrainableState::for_core(&train).initial_state(1).unwrap_err().to_string();
        assert!(
            message.contains("(LSTMState(hidden=*, cell=*), LSTMState(hidden=*, cell=none))"),
            "{message}"
        );
    }
}
