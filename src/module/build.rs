//! Making the variables of a module before its first input.

use super::forward::Forward;
use super::spec::Spec;
use super::summary::evaluate_copies;
use crate::autodiff::no_grad;
use crate::dry;
use crate::error::Result;
use crate::tensor::Tensor;

/// Size taken for open dims: one that does not broadcast.
const OPEN: usize = 2;

/// Makes the variables of a module for inputs like `input`, and returns what it will return; a dim given as `None` may
/// take any size. Nothing else happens: counters and moving averages stay
/// as they start, and only initialisers draw.
///
/// ```
/// # use couplet::{Forward, Module, Result, Scope, Tensor, build, scoped};
/// # #[derive(Module)]
/// # struct Double { scope: Scope }
/// # #[scoped]
/// # impl Forward for Double {
/// #     fn forward(&self, x: &Tensor) -> Result<Tensor> {
/// #         x + x
/// #     }
/// # }
/// # let module = Double { scope: Scope::of::<Double>() };
/// let output = build(&module, [None, Some(7)])?;
/// assert_eq!(output.to_string(), "f32[None,7]");
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// The module refuses the input, or its variables depend on an open dim. Nothing was made.
pub fn build(module: &(impl Forward + ?Sized), input: impl Into<Spec>) -> Result<Spec> {
    let input = input.into();
    let output = evaluate_copies("build", module, &input)?.output;
    build_with(&[input], |x| module.forward_t(&x[0], false))?;
    Ok(output)
}

/// Makes the variables that `call` asks for, and returns what it returns. `call` gets zeros like `inputs`, with 2 for each
/// open dim. For modules that take several inputs or other arguments than [`Forward`].
///
/// # Errors
/// Those of `call`; what it made until then stays.
pub fn build_with<R>(inputs: &[Spec], call: impl FnOnce(&[Tensor]) -> Result<R>) -> Result<R> {
    let zeros: Vec<Tensor> = inputs.iter().map(|input| input.zeros(OPEN)).collect::<Result<_>>()?;
    no_grad(|| dry::dry(|| call(&zeros)))
}
