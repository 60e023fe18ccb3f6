//! The `ops` family: the reference's tensor operations by name.

mod convolution;
mod elementwise;
mod functions;
mod linear;
mod neural;
mod reductions;
mod shape;

pub use convolution::PaddingSpec;

use couplet::Tensor;

use crate::args::Args;
use crate::check::Check;
use crate::{Outcome, Outputs, gradients, mended};

/// An operation of the reference: its tensors in order, and its other arguments.
pub type Op = fn(&[Tensor], &mut Args) -> Outcome<Outputs>;

/// All operations that are built.
const OPS: &[&[(&str, Op)]] =
    &[convolution::OPS, elementwise::OPS, linear::OPS, neural::OPS, reductions::OPS, shape::OPS];

/// Step functions: the reference gives no gradient, we give zeros.
const STEPS: &[&str] = &["floor", "ceil", "round"];

/// The function of that name, if it is built.
pub fn function(name: &str) -> Option<Op> {
    functions::OPS.iter().find(|(known, _)| *known == name).map(|(_, op)| *op)
}

/// Runs a case, or returns false if there is no such operation.
pub fn run(check: &Check<'_>) -> Outcome<bool> {
    let case = check.case;
    let lists = if case.mode == "function" { &[functions::OPS] } else { OPS };
    let Some((name, op)) = lists.iter().copied().flatten().find(|(name, _)| *name == case.module) else {
        return Ok(false);
    };
    if mended::computation(check)? {
        return Ok(true);
    }
    let mut args = Args::new(&case.call);
    let inputs = case.inputs()?;
    gradients::compare(check, &inputs, || Ok(Vec::new()), STEPS.contains(name), |x| op(x, &mut args))?;
    args.finish()?;
    Ok(true)
}

/// A single output.
fn one(y: couplet::Result<Tensor>) -> Outcome<Outputs> {
    Ok(vec![("y".to_owned(), y?)])
}

/// Outputs that are called by their position.
fn numbered(list: couplet::Result<Vec<Tensor>>) -> Outcome<Outputs> {
    Ok(list?.into_iter().enumerate().map(|(i, y)| (i.to_string(), y)).collect())
}
