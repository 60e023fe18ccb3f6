//! Values that go from one module to another.

use std::collections::BTreeMap;

use super::Module;
use super::fill::{Plan, tree};
use super::visit::Node;
use super::waiting::Waiting;
use crate::autodiff::no_grad;
use crate::error::{Error, Result};
use crate::variable::Variable;

/// Gives the values of all variables of `from` to the variables of `to` with the same paths.
pub(crate) fn copy(from: &dyn Module, to: &dyn Module) -> Result<()> {
    const OP: &str = "copy_weights_from";
    let values = from.named_variables()?.into_iter();
    let values = tree(OP, values.map(|(path, variable)| (path, Waiting::Value(variable.peek()))))?;
    let plan = Plan::new(Node::Module(to), values);
    let mut problems = plan.mismatched.clone();
    problems.extend(plan.unused.iter().map(|path| format!("{path}: only the source has it")));
    problems.extend(plan.missing(to).iter().map(|path| format!("{path}: only the target has it")));
    if !problems.is_empty() {
        return Err(Error::usage(OP, problems.join("; "), "give two modules of the same structure"));
    }
    plan.apply(OP)
}

/// Moves the variables of `average` towards those of `online` with the same paths.
pub(crate) fn move_average(average: &dyn Module, online: &dyn Module, decay: f64) -> Result<()> {
    const OP: &str = "moving_average_of";
    if !(0.0..=1.0).contains(&decay) {
        return Err(Error::argument(OP, "decay", decay, "a number from 0 to 1"));
    }
    let (to, from) = (average.named_variables()?, online.named_variables()?);
    let mut sources: BTreeMap<String, Variable> = from.into_iter().collect();
    let (mut pairs, mut problems) = (Vec::new(), Vec::new());
    for (path, target) in to {
        match sources.remove(&path) {
            None => problems.push(format!("{path}: only the average has it")),
            Some(source) if source.shape() != target.shape() || source.dtype() != target.dtype() => {
                problems.push(format!(
                    "{path}: {}{} in the average, {}{} in the other",
                    target.dtype(),
                    target.shape(),
                    source.dtype(),
                    source.shape()
                ));
            }
            Some(source) => pairs.push((target, source)),
        }
    }
    problems.extend(sources.keys().map(|path| format!("{path}: only the other has it")));
    if !problems.is_empty() {
        let cure = "give two modules of the same structure, both called before; duplicate() or copy_weights_from() makes one";
        return Err(Error::usage(OP, problems.join("; "), cure));
    }
    no_grad(|| {
        let moved = pairs.iter().map(|(target, source)| {
            let (old, new) = (target.peek(), source.peek());
            // Counters cannot be averaged: they are copied.
            if !old.dtype().is_float() {
                return Ok(new);
            }
            &old + ((&new - &old)? * (1.0 - decay))?
        });
        let moved: Vec<_> = moved.collect::<Result<_>>()?;
        pairs.iter().zip(&moved).try_for_each(|((target, _), value)| target.assign(value))
    })
}
