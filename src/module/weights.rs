//! Values that go from one module to another.

use super::fill::{Plan, tree};
use super::visit::Node;
use super::waiting::Waiting;
use super::Module;
use crate::error::{Error, Result};

/// Gives the values of all variables of `from` to the variables of `to` with the same paths.
pub(crate) fn copy(from: &dyn Module, to: &dyn Module) -> Result<()> {
    const OP: &str = "copy_weights_from";
    let values = from.named_variables()?.into_iter();
    let values = tree(OP, values.map(|(path, variable)| (path, Waiting::Value(variable.value()))))?;
    let plan = Plan::new(Node::Module(to), values);
    let mut problems = plan.mismatched.clone();
    problems.extend(plan.unused.iter().map(|path| format!("{path}: only the source has it")));
    problems.extend(plan.missing(to)?.iter().map(|path| format!("{path}: only the target has it")));
    if !problems.is_empty() {
        return Err(Error::usage(OP, problems.join("; "), "give two modules of the same structure"));
    }
    plan.apply(OP)
}
