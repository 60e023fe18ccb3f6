//! The variables of layers with gates.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::module::Once;
use crate::nn::zeros_init;
use crate::tensor::{Shape, Tensor};
use crate::variable::Variable;

/// The value of a variable, which is made if it is not there.
pub(super) fn value(
    cell: &Once<Variable>,
    name: &str,
    shape: &[usize],
    dtype: DType,
    init: impl Initializer,
) -> Result<Tensor> {
    Ok(cell.get_or_init(|| Variable::new(name, shape, dtype, init))?.value())
}

/// Refuses another number of inputs than that of the first call; `x` ends in it.
pub(super) fn check_inputs(op: &'static str, x: &Tensor, w_i: &Once<Variable>) -> Result<()> {
    match w_i.get().map(|w| w.shape()[0]) {
        Some(size) if x.shape().last() != Some(&size) => {
            let expected = format!("{size} as its last dim, as in the first call");
            Err(Error::shape(op, "x", x.shape(), expected))
        }
        _ => Ok(()),
    }
}

/// The biases of the gates i, f, g, o: those of the initialiser, and `forget_bias` more for f.
pub(super) fn bias_init(given: Option<&Arc<dyn Initializer>>, forget_bias: f64) -> impl Initializer {
    let init = zeros_init(given);
    move |shape: &Shape, dtype: DType| {
        let b = init.init(shape, dtype)?;
        let [i, f, rest] = {
            let hidden = b.dim(0)? / 4;
            let parts = b.split(&[hidden, hidden, b.dim(0)? - 2 * hidden], 0)?;
            <[Tensor; 3]>::try_from(parts).expect("split gives as many parts as it is asked for")
        };
        Tensor::concat(&[&i, &(f + forget_bias)?, &rest], 0)
    }
}
