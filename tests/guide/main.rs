//! What the guide says is true, and it leaves no public name of the reference out.

mod attributes;
mod mended;
mod mirrored;
mod names;

use couplet::prelude::*;

/// Ones of f32.
pub fn ones(shape: impl Into<Shape>) -> Tensor {
    Tensor::ones(shape, DType::F32).unwrap()
}

/// Names of all variables of a module.
pub fn names(module: &dyn Module) -> Vec<String> {
    module.variables().unwrap().iter().map(|v| v.name().to_owned()).collect()
}

/// The variable at a path.
pub fn variable(module: &dyn Module, path: &str) -> Variable {
    module.variable(path).unwrap()
}

/// The numbers of a tensor.
pub fn floats(x: &Tensor) -> Vec<f32> {
    x.to_vec().unwrap()
}
