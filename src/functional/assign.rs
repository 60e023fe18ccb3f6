//! Parameters back into a module.

use crate::error::{Error, Result};
use crate::module::{Module, Node, Plan, Waiting, tree};

use super::Params;

const OP: &str = "assign";

/// Gives a module the values of its variables, by path; those that do not exist yet take them when they are made.
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
pub fn assign(module: &dyn Module, values: &Params) -> Result<()> {
    let values = values.iter().map(|(path, value)| (path.clone(), Waiting::Value(value.clone())));
    let plan = Plan::new(Node::Module(module), tree(OP, values)?);
    let unused = plan.unused.iter().map(|path| format!("nothing takes the value for {path}"));
    let problems: Vec<String> = plan.mismatched.iter().cloned().chain(unused).collect();
    if !problems.is_empty() {
        let cure = "give the parameters of a module of the same structure";
        return Err(Error::usage(OP, problems.join("; "), cure));
    }
    plan.apply(OP)
}
