//! Running a core over a sequence.

use crate::error::{Error, Result};
use crate::tensor::Tensor;

use super::lengths::Lengths;
use super::nest::{Nest, join};
use super::rnn_core::RNNCore;

/// Runs a core over a sequence, one step after the other: the outputs, and the state after the last step.
///
/// `input_sequence` and the outputs have time as their first axis and the batch as their second one.
///
/// `sequence_length`, `[batch]` integers or one for all, tells how many steps of each row count. After them the row's last
/// output is repeated (0 if there was none) and its state stays as it is; scalar parts of states and outputs go on to the
/// end. What was computed beyond a row's end receives no gradient.
///
/// ```
/// use couplet::prelude::*;
/// let core = GRU::new(3);
/// let xs = Tensor::ones([5, 2, 4], DType::F32)?;
/// let lengths = Tensor::from([5, 2]);
/// let (ys, _) = static_unroll(&core, &xs, &core.initial_state(2)?, Some(&lengths))?;
/// let at = |step: isize| ys.index(step)?.index(1)?.to_vec::<f32>();
/// assert_eq!(at(1)?, at(4)?);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// There are no steps, the core refuses an input, or the lengths are not integers of the shape `[batch]` or `[]`.
pub fn static_unroll(
    core: &(impl RNNCore + ?Sized),
    input_sequence: &Tensor,
    initial_state: &Nest,
    sequence_length: Option<&Tensor>,
) -> Result<(Tensor, Nest)> {
    const OP: &str = "static_unroll";
    check_steps(OP, input_sequence)?;
    let inputs = input_sequence.unstack(0)?;
    let step = |t: usize, state: &Nest| {
        let (y, state) = core.step(&inputs[t], state)?;
        Ok((y.into(), state))
    };
    let (ys, state) = run(OP, inputs.len(), step, initial_state, sequence_length)?;
    Ok((ys.leaf()?.clone(), state))
}

/// As [`static_unroll`], all steps at once where the core can: an [`LSTM`](super::LSTM) without projection runs as one op,
/// several times faster. The numbers are the same up to rounding.
///
/// ```
/// use couplet::prelude::*;
/// let core = LSTM::new(16);
/// let xs = Tensor::ones([64, 2, 8], DType::F32)?;
/// let (ys, state) = dynamic_unroll(&core, &xs, &core.initial_state(2)?, None)?;
/// assert_eq!(ys.shape(), &[64, 2, 16]);
/// assert_eq!(state.to_string(), "LSTMState(hidden=f32[2, 16], cell=f32[2, 16])");
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// As there.
pub fn dynamic_unroll(
    core: &(impl RNNCore + ?Sized),
    input_sequence: &Tensor,
    initial_state: &Nest,
    sequence_length: Option<&Tensor>,
) -> Result<(Tensor, Nest)> {
    const OP: &str = "dynamic_unroll";
    check_steps(OP, input_sequence)?;
    let lengths = sequence_length.map(|given| Lengths::new(OP, given)).transpose()?;
    let Some((ys, states)) = core.sequence(input_sequence, initial_state)? else {
        return static_unroll(core, input_sequence, initial_state, sequence_length);
    };
    match lengths {
        None => Ok((ys, states.try_map(|of_all| of_all.index(-1))?)),
        Some(lengths) => {
            let state = states.try_zip(initial_state, |of_all, first| lengths.last(OP, of_all, first))?;
            Ok((lengths.repeat_last(OP, &ys)?, state))
        }
    }
}

/// [`static_unroll`] of any function from an input and a state to an output and a state, all of which may be nested:
/// `unroll_with(|x, state| core.step_nested(x, state), ..)`.
///
/// ```
/// use couplet::prelude::*;
/// let xs = Nest::map([("a", Tensor::from([1.0f32, 2.0])), ("b", Tensor::from([10.0f32, 20.0]))]);
/// let step = |x: &Nest, state: &Nest| {
///     let sum = ((x.get("a")?.leaf()? + x.get("b")?.leaf()?)? + state.leaf()?)?;
///     Ok((Nest::tuple([sum.clone(), (&sum * 2.0)?]), sum.into()))
/// };
/// let (ys, last) = unroll_with(step, &xs, &Tensor::from(0.0f32).into(), None)?;
/// assert_eq!(ys.get(1)?.leaf()?.to_vec::<f32>()?, [22.0, 66.0]);
/// assert_eq!(last.leaf()?.item::<f32>()?, 33.0);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// The input is empty or its parts differ in their number of steps; else as for [`static_unroll`].
pub fn unroll_with(
    step: impl Fn(&Nest, &Nest) -> Result<(Nest, Nest)>,
    input_sequence: &Nest,
    initial_state: &Nest,
    sequence_length: Option<&Tensor>,
) -> Result<(Nest, Nest)> {
    const OP: &str = "unroll_with";
    let leaves = input_sequence.leaves();
    let Some(first) = leaves.first() else {
        let expected = "at least one tensor";
        return Err(Error::argument(OP, "the input sequence", input_sequence.form(), expected));
    };
    let steps = check_steps(OP, first)?;
    if let Some(other) = leaves.iter().find(|x| x.shape().first() != Some(&steps)) {
        let expected = format!("{steps} steps as its first dim, like {}", first.shape());
        return Err(Error::shape(OP, "a part of the input sequence", other.shape(), expected));
    }
    let parts = input_sequence.try_map(|x| x.unstack(0))?;
    let step = |t: usize, state: &Nest| step(&parts.try_map(|list| Ok(list[t].clone()))?, state);
    run(OP, steps, step, initial_state, sequence_length)
}

/// The number of steps of a sequence.
fn check_steps(op: &'static str, xs: &Tensor) -> Result<usize> {
    match xs.shape().first() {
        Some(&steps) if steps > 0 => Ok(steps),
        _ => Err(Error::shape(op, "the input sequence", xs.shape(), "at least one step as its first dim")),
    }
}

/// The steps one after the other, and their outputs stacked.
fn run(
    op: &'static str,
    steps: usize,
    step: impl Fn(usize, &Nest) -> Result<(Nest, Nest)>,
    initial_state: &Nest,
    sequence_length: Option<&Tensor>,
) -> Result<(Nest, Nest)> {
    let lengths = sequence_length.map(|given| Lengths::new(op, given)).transpose()?;
    let mut state = initial_state.clone();
    let mut outputs: Vec<Nest> = Vec::with_capacity(steps);
    for t in 0..steps {
        let (mut y, mut next) = step(t, &state)?;
        if let Some(lengths) = &lengths {
            let zeros = match t {
                0 => Some(y.try_map(|y| Tensor::zeros(y.shape().clone(), y.dtype()))?),
                _ => None,
            };
            if let Some(before) = zeros.as_ref().or(outputs.last()) {
                y = lengths.select(op, t, before, &y)?;
            }
            next = lengths.select(op, t, &state, &next)?;
        }
        outputs.push(y);
        state = next;
    }
    Ok((join(&outputs, |parts| Tensor::stack(parts, 0))?, state))
}

/// The outputs and the states of all steps, one after the other.
pub(super) fn all_steps(core: &dyn RNNCore, xs: &Tensor, state: &Nest) -> Result<(Tensor, Nest)> {
    const OP: &str = "dynamic_unroll";
    check_steps(OP, xs)?;
    let inputs = xs.unstack(0)?;
    let step = |t: usize, state: &Nest| {
        let (y, state) = core.step(&inputs[t], state)?;
        Ok((Nest::tuple([y.into(), state.clone()]), state))
    };
    let (both, _) = run(OP, inputs.len(), step, state, None)?;
    Ok((both.get(0)?.leaf()?.clone(), both.get(1)?.clone()))
}

#[cfg(test)]
mod tests;
