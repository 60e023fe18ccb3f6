//! Behaviour of modules as a whole, on small modules made for the purpose.

mod building;
mod collection;
mod copying;
mod creation;
mod freezing;
mod names;
mod printing;
mod restoring;
mod summaries;

use crate::{DType, Error, Forward, Module, Once, Result, Scope, Shape, Tensor, Variable, scoped};

/// A trainable variable of ones.
fn variable(name: &str, shape: &[usize]) -> Result<Variable> {
    let shape = Shape::from(shape);
    Variable::create(name, &shape, DType::F32, true, || Tensor::ones(shape.clone(), DType::F32))
}

/// A counter: not trainable.
fn counter(name: &str) -> Result<Variable> {
    Variable::create(name, &Shape::from([]), DType::F32, false, || Tensor::zeros([], DType::F32))
}

fn full(shape: &[usize], value: f64) -> Tensor {
    Tensor::full(shape, value, DType::F32).unwrap()
}

fn value(variable: &Variable) -> Vec<f32> {
    variable.peek().to_vec::<f32>().unwrap()
}

fn names(variables: &[Variable]) -> Vec<&str> {
    variables.iter().map(Variable::name).collect()
}

fn x(features: usize) -> Tensor {
    full(&[2, features], 1.0)
}

/// A layer that makes the variables of a linear layer and returns zeros of the right shape.
#[derive(Module)]
struct Linear {
    scope: Scope,
    output_size: usize,
    #[module(default = true)]
    with_bias: bool,
    w: Once<Variable>,
    b: Once<Variable>,
}

impl Linear {
    fn new(output_size: usize) -> Self {
        Linear { scope: Scope::of::<Self>(), output_size, with_bias: true, w: Once::new(), b: Once::new() }
    }

    fn with_bias(mut self, with_bias: bool) -> Self {
        self.with_bias = with_bias;
        self
    }
}

#[scoped]
impl Forward for Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [batch, m] = *x.shape().dims() else {
            return Err(Error::shape("linear", "x", x.shape(), "rank 2"));
        };
        let w = self.w.get_or_init(|| variable("w", &[m, self.output_size]))?;
        if w.shape()[0] != m {
            return Err(Error::shape("linear", "x", x.shape(), format!("[.., {}]", w.shape()[0])));
        }
        if self.with_bias {
            self.b.get_or_init(|| variable("b", &[self.output_size]))?;
        }
        Tensor::zeros([batch, self.output_size], x.dtype())
    }
}

/// An affine layer that computes, and counts its calls.
#[derive(Module)]
struct Affine {
    scope: Scope,
    output_size: usize,
    w: Once<Variable>,
    b: Once<Variable>,
    calls: Once<Variable>,
}

impl Affine {
    fn new(output_size: usize) -> Self {
        Affine { scope: Scope::of::<Self>(), output_size, w: Once::new(), b: Once::new(), calls: Once::new() }
    }
}

#[scoped]
impl Forward for Affine {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let w = self.w.get_or_init(|| variable("w", &[x.dim(-1)?, self.output_size]))?;
        let b = self.b.get_or_init(|| variable("b", &[self.output_size]))?;
        self.calls.get_or_init(|| counter("calls"))?.assign_add(&Tensor::from(1.0f32))?;
        x.affine(w, b)
    }
}
