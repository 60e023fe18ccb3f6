//! Functions of parameters against the same modules used directly.

mod contexts;
mod derivatives;
mod isolation;
mod misfits;
mod nesting;
mod state;
mod training;

use std::collections::BTreeMap;

use super::{Params, State};
use crate::prelude::*;

/// The bits of a tensor of any dtype.
fn bits(x: &Tensor) -> Vec<u64> {
    x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
}

fn bits_of(values: &BTreeMap<String, Tensor>) -> Vec<(String, Vec<u64>)> {
    values.iter().map(|(path, value)| (path.clone(), bits(value))).collect()
}

/// The bits of parameters and state together, by path.
fn all_bits(params: &Params, state: &State) -> Vec<(String, Vec<u64>)> {
    let mut all = params.clone();
    all.extend(state.clone());
    bits_of(&all)
}

/// The bits of a module's variables, by path.
fn bits_of_module(module: &dyn Module) -> Vec<(String, Vec<u64>)> {
    let mut all: Vec<_> =
        module.named_variables().unwrap().iter().map(|(path, v)| (path.clone(), bits(&v.peek()))).collect();
    all.sort();
    all
}

fn normal(seed: u64, shape: &[usize], dtype: DType) -> Tensor {
    Generator::seed(seed).normal(shape, 0.0, 1.0, dtype).unwrap()
}

fn ones(shape: &[usize]) -> Tensor {
    Tensor::ones(shape, DType::F32).unwrap()
}

fn item(x: &Tensor) -> f64 {
    x.cast(DType::F64).unwrap().item().unwrap()
}

/// A copy with one value replaced, or taken away.
fn with(values: &Params, path: &str, value: Option<Tensor>) -> Params {
    let mut values = values.clone();
    match value {
        Some(value) => drop(values.insert(path.to_owned(), value)),
        None => drop(values.remove(path)),
    }
    values
}
