//! The state of LSTMs.

use crate::error::{Error, Result};
use crate::tensor::Tensor;

use super::nest::Nest;

/// The state of an LSTM: its last output, and the memory cell behind it.
///
/// ```
/// use couplet::prelude::*;
/// let zeros = || Tensor::zeros([2, 3], DType::F32);
/// let state = Nest::from(LSTMState { hidden: zeros()?, cell: zeros()? });
/// assert_eq!(state.to_string(), "LSTMState(hidden=f32[2, 3], cell=f32[2, 3])");
/// let LSTMState { hidden, .. } = state.try_into()?;
/// assert_eq!(hidden.shape(), &[2, 3]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LSTMState {
    /// The output of the last step.
    pub hidden: Tensor,
    /// The memory.
    pub cell: Tensor,
}

impl LSTMState {
    pub(super) const NAME: &'static str = "LSTMState";
}

impl From<LSTMState> for Nest {
    fn from(state: LSTMState) -> Self {
        Nest::fields(LSTMState::NAME, [("hidden", state.hidden), ("cell", state.cell)])
    }
}

impl TryFrom<&Nest> for LSTMState {
    type Error = Error;

    /// # Errors
    /// The structure is another one. A plain pair is refused: its order would have to be guessed.
    fn try_from(state: &Nest) -> Result<Self> {
        match state {
            Nest::Struct(LSTMState::NAME, fields) => match &fields[..] {
                [("hidden", Nest::Leaf(hidden)), ("cell", Nest::Leaf(cell))] => {
                    Ok(LSTMState { hidden: hidden.clone(), cell: cell.clone() })
                }
                _ => Err(refused(state)),
            },
            _ => Err(refused(state)),
        }
    }
}

impl TryFrom<Nest> for LSTMState {
    type Error = Error;

    fn try_from(state: Nest) -> Result<Self> {
        LSTMState::try_from(&state)
    }
}

fn refused(state: &Nest) -> Error {
    Error::argument(
        "lstm",
        "the state",
        state.form(),
        "LSTMState(hidden=*, cell=*), as initial_state gives it",
    )
}
