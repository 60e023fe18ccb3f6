//! Parameters back into a module.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::module::{Node, Plan, Visit, Waiting, tree, walk};
use crate::tensor::Tensor;

use super::Params;

const OP: &str = "assign";

/// Gives a module the values of its variables and of its other state, by path; variables that do not exist yet take them when
/// they are made.
///
/// `module` is anything that [`transform`](super::transform) takes, and `values` are parameters, or what is not trained.
///
/// ```
/// use couplet::{functional, prelude::*};
/// let linear = Linear::new(2);
/// let f = functional::transform(&linear, |linear, x: &Tensor| linear.forward(x));
/// let x = Tensor::ones([1, 3], DType::F32)?;
/// let params = f.init(&Generator::seed(1), &x)?;
/// functional::assign(&linear, &params)?;
/// assert_eq!(linear.forward(&x)?.to_vec::<f32>()?, f.apply(&params, &x)?.to_vec::<f32>()?);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// A path leads to nothing, or a shape or dtype does not fit; all such are listed, and nothing was changed.
pub fn assign<M: Visit + ?Sized>(module: &M, values: &Params) -> Result<()> {
    let mut plain = BTreeSet::new();
    walk(module.node(), |path, node| {
        if let Node::State(_) = node {
            plain.insert(path.to_owned());
        }
    });
    let waiting = |(path, value): (&String, &Tensor)| {
        let waiting = match plain.contains(path) {
            true => Waiting::State(value.to_vec::<u8>().map_err(|e| e.within(path))?),
            false => Waiting::Value(value.clone()),
        };
        Ok((path.clone(), waiting))
    };
    let values: Vec<_> = values.iter().map(waiting).collect::<Result<_>>()?;
    let plan = Plan::new(module.node(), tree(OP, values)?);
    let unused = plan.unused.iter().map(|path| format!("nothing takes the value for {path}"));
    let problems: Vec<String> = plan.mismatched.iter().cloned().chain(unused).collect();
    if !problems.is_empty() {
        let cure = "give the parameters of a module of the same structure";
        return Err(Error::usage(OP, problems.join("; "), cure));
    }
    plan.apply(OP)
}
