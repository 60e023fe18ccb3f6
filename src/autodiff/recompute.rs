//! Trading time for memory: what a function computes inside is computed again on the way back.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::ser::Error as _;

use crate::error::{Error, Result};
use crate::ops::record::{self, Pause};
use crate::ops::trace::{Place, Step, Steps, trace};
use crate::ops::{Attributes, Computed, Gradient, Inputs, Mask, Op, Saved, Saves, apply_many};
use crate::tensor::{Shape, Tensor};

use super::backward::Seed;
use super::tape::GradientTape;

/// An op of a trace, to be applied again.
#[derive(Debug, Clone)]
struct Again(Arc<dyn Op>);

impl Attributes for Again {
    fn attributes(&self) -> Result<Vec<u8>> {
        self.0.attributes()
    }
}

impl Op for Again {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn saves(&self, tracked: Mask) -> Saves {
        self.0.saves(tracked)
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        self.0.forward(inputs)
    }

    fn multiply_adds(&self, inputs: &[Shape], outputs: &[Shape]) -> u64 {
        self.0.multiply_adds(inputs, outputs)
    }

    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        self.0.gradient(saved, dy, needs)
    }

    fn each_gradient(
        &self,
        saved: &Saved,
        dy: &[Option<Tensor>],
        needs: Mask,
        inputs: usize,
        take: &mut dyn FnMut(usize, Gradient) -> Result<()>,
    ) -> Result<()> {
        self.0.each_gradient(saved, dy, needs, inputs, take)
    }
}

/// The ops of a function as one; its gradient runs them again.
struct Recompute {
    steps: Vec<Step>,
    outputs: Vec<Place>,
    inputs: usize,
    /// What the function returned, for the first forward.
    first: Mutex<Option<Vec<Tensor>>>,
}

impl fmt::Debug for Recompute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.steps.iter().map(|step| &step.op)).finish()
    }
}

impl serde::Serialize for Recompute {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom(
            "a recomputed function cannot be written to a file: export the model without recompute",
        ))
    }
}

impl Recompute {
    /// The outputs for other values from outside.
    fn run(&self, mut values: Vec<Tensor>) -> Result<Vec<Tensor>> {
        let at = |values: &[Tensor], place: &Place| match place {
            Place::Value(number) => values.get(*number).cloned().ok_or_else(|| {
                Error::usage(
                    "recompute",
                    "an op used a value from outside its function",
                    "return what is used later",
                )
            }),
            Place::Constant(x) => Ok(x.clone()),
        };
        for step in &self.steps {
            let inputs = step.inputs.iter().map(|place| at(&values, place)).collect::<Result<Vec<_>>>()?;
            values.extend(apply_many(Again(step.op.clone()), &inputs)?);
        }
        self.outputs.iter().map(|place| at(&values, place)).collect()
    }

    fn gradients(
        &self,
        inputs: &[Tensor],
        dy: &[Option<Tensor>],
        needs: Mask,
    ) -> Result<Vec<Option<Gradient>>> {
        let tape = GradientTape::new().watch_accessed_variables(false);
        let wanted = || inputs.iter().enumerate().filter(|(i, _)| needs.has(*i));
        wanted().for_each(|(_, x)| tape.watch(x));
        let outputs = self.run(inputs.to_vec())?;
        let targets: Vec<Seed<'_>> =
            outputs.iter().zip(dy).filter_map(|(y, dy)| dy.as_ref().map(|dy| (y, Some(dy)))).collect();
        let sources: Vec<&Tensor> = wanted().map(|(_, x)| x).collect();
        let mut found = tape.gradient_of_all(&targets, &sources)?.into_iter();
        Ok((0..inputs.len()).map(|i| if needs.has(i) { found.next().flatten() } else { None }).collect())
    }
}

impl Op for Recompute {
    fn name(&self) -> &'static str {
        "recompute"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        if let Some(outputs) = self.first.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Ok(Computed::many(outputs));
        }
        let values = (0..inputs.len()).map(|i| inputs.get(i).cloned()).collect::<Result<_>>()?;
        let _pause = Pause::new();
        self.run(values).map(Computed::many)
    }

    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let inputs = (0..self.inputs).map(|i| saved.input(i).cloned()).collect::<Result<Vec<_>>>()?;
        record::transient(|| self.gradients(&inputs, dy, needs))
    }
}

/// `f()`, of which the tapes keep only what goes in and what comes out: the intermediate results are dropped, and computed
/// again when a tape walks back over it (Chen et al. 2016, "Training deep nets with sublinear memory cost").
///
/// The cost is a second forward of `f` and the gain all the memory that its ops would have kept, so it pays around the
/// blocks of a deep model. What is run again is the list of ops, not `f` itself: nothing is drawn anew, variables that were
/// assigned since do not matter and moving averages are not updated twice; the gradients have the same bits as without
/// it. What `f` hands out in another way than by returning it has no gradient. Calls nest, and derivatives of any order can
/// be taken. Without a tape it is `f()`.
///
/// ```
/// use couplet::{GradientTape, Tensor, autodiff::recompute};
/// let x = Tensor::from([0.5f64, 1.0]);
/// let tape = GradientTape::new();
/// tape.watch(&x);
/// let y = recompute(|| x.exp()?.sin()?.square())?;
/// let dx = tape.gradient(&y.sum()?, &[&x])?.remove(0).expect("depends on x");
///
/// let plain = GradientTape::new();
/// plain.watch(&x);
/// let y = x.exp()?.sin()?.square()?;
/// let want = plain.gradient(&y.sum()?, &[&x])?.remove(0).expect("depends on x");
/// assert_eq!(dx.dense()?.to_vec::<f64>()?, want.dense()?.to_vec::<f64>()?);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `f` fails, or a tape that began inside it is still there at its end.
pub fn recompute(f: impl FnOnce() -> Result<Tensor>) -> Result<Tensor> {
    recompute_many(|| f().map(|y| vec![y])).map(|mut outputs| outputs.remove(0))
}

/// [`recompute`] for a function with several results.
///
/// # Errors
/// As there.
pub fn recompute_many(f: impl FnOnce() -> Result<Vec<Tensor>>) -> Result<Vec<Tensor>> {
    if !record::is_recording() {
        return f();
    }
    let (outputs, Steps { list, inputs, outputs: places }) = trace(f)?;
    if inputs.is_empty() {
        return Ok(outputs);
    }
    let first = Mutex::new(Some(outputs));
    let op = Recompute { steps: list, outputs: places, inputs: inputs.len(), first };
    apply_many(op, inputs.iter())
}

#[cfg(test)]
mod tests;
