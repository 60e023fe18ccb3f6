//! Whole training runs.

use couplet::nn::{BatchApply, BatchNorm, Conv2D, Linear};
use couplet::optim::global_norm;
use couplet::recurrent::{LSTM, RNNCore, dynamic_unroll};
use couplet::{DType, Forward, GradientTape, Module, Padding, Result, Scope, Tensor, losses, scoped};
use serde_json::{Map, Value, json};

use crate::args::Args;
use crate::case::dtype;
use crate::check::{Check, Tolerance, tolerance};
use crate::modules::{self, donor, layers};
use crate::optimizers::{self, Numbers};
use crate::{Outcome, problem};

/// A model, from the arguments that it takes out of the configuration of a case, and the dtype of its inputs.
type Model = fn(&mut Args, DType) -> Outcome<Box<dyn layers::Layer>>;

const MODELS: &[(&str, Model)] =
    &[("MLP", mlp), ("TinyConvNet", tiny_conv_net), ("TinyRegressor", tiny_regressor)];

fn mlp(config: &mut Args, _: DType) -> Outcome<Box<dyn layers::Layer>> {
    config.need::<usize>("inputs")?;
    let mut ctor = Map::new();
    ctor.insert("output_sizes".into(), config.need("sizes")?);
    ctor.insert("activation".into(), json!({ "fn": config.need::<String>("activation")? }));
    layers::build("MLP", &ctor)?.ok_or_else(|| problem("there is no MLP"))
}

/// Two convolutions with batch norms, a mean over height and width, and a linear layer.
#[derive(Module)]
struct TinyConvNet {
    scope: Scope,
    conv_0: Conv2D,
    bn_0: BatchNorm,
    conv_1: Conv2D,
    bn_1: BatchNorm,
    linear: Linear,
}

fn tiny_conv_net(config: &mut Args, _: DType) -> Outcome<Box<dyn layers::Layer>> {
    config.need::<Vec<usize>>("image")?;
    let [first, second] = config.need::<[usize; 2]>("channels")?;
    let (classes, decay) = (config.need("classes")?, config.need("decay")?);
    let scope = Scope::of::<TinyConvNet>();
    let inside = scope.enter();
    let norm = || BatchNorm::new(true, true).decay_rate(decay);
    let conv = |channels| Conv2D::new(channels, 3).with_bias(false);
    let (conv_0, bn_0) = (conv(first).stride(2), norm());
    let (conv_1, bn_1) = (conv(second).padding(Padding::Valid), norm());
    let linear = Linear::new(classes);
    drop(inside);
    Ok(Box::new(TinyConvNet { scope, conv_0, bn_0, conv_1, bn_1, linear }))
}

#[scoped]
impl Forward for TinyConvNet {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_t(x, false)
    }

    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        let y = self.bn_0.forward_t(&self.conv_0.forward(x)?, is_training)?.relu()?;
        let y = self.bn_1.forward_t(&self.conv_1.forward(&y)?, is_training)?.relu()?;
        self.linear.forward(&y.mean_axes([1, 2], false)?)
    }
}

/// An LSTM over time, and a linear layer at every step.
#[derive(Module)]
struct TinyRegressor {
    scope: Scope,
    lstm: LSTM,
    readout: BatchApply,
}

fn tiny_regressor(config: &mut Args, dtype: DType) -> Outcome<Box<dyn layers::Layer>> {
    config.need::<usize>("steps")?;
    config.need::<usize>("inputs")?;
    let (hidden, outputs) = (config.need("hidden")?, config.need("outputs")?);
    let scope = Scope::of::<TinyRegressor>();
    let inside = scope.enter();
    let lstm = LSTM::new(hidden).dtype(dtype);
    let readout = BatchApply::new(Linear::new(outputs));
    drop(inside);
    Ok(Box::new(TinyRegressor { scope, lstm, readout }))
}

#[scoped]
impl Forward for TinyRegressor {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let start = self.lstm.initial_state(x.dim(1)?)?;
        let (ys, _) = dynamic_unroll(&self.lstm, x, &start, None)?;
        self.readout.forward(&ys)
    }
}

/// Runs a case, or returns false if there is no such model.
pub fn run(check: &Check<'_>) -> Outcome<bool> {
    let case = check.case;
    let Some((_, model)) = MODELS.iter().find(|(name, _)| *name == case.module) else { return Ok(false) };
    // Beside a coefficient near 1 its rounding weighs a thousandfold in a slot, but not in the parameter.
    let roundings = case.is_f64() && case.quirk;
    let within = |key: &str| (!roundings || !key.starts_with("final/opt")).then(|| tolerance(case, key));
    train(check, *model, Numbers::Plain, within)?;
    if roundings {
        let exact = Tolerance { rtol: 1e-9, atol: 1e-13 };
        train(check, *model, Numbers::Rounded, |_| Some(exact))?;
        check.mended(
            "f64 numbers are not rounded to f32; numbers given as f32 make the reference's steps".into(),
        );
    }
    Ok(true)
}

/// All steps: step `t` takes batch `t` modulo their number.
fn train(
    check: &Check<'_>,
    model: Model,
    numbers: Numbers,
    within: impl Fn(&str) -> Option<Tolerance>,
) -> Outcome {
    let case = check.case;
    let mut config = Args::new(&case.config);
    config.expect("model", case.module.clone())?;
    config.expect("l2", 0.0)?;
    config.need::<usize>("batch")?;
    let loss = match config.need::<String>("loss")?.as_str() {
        "mean sparse softmax cross entropy" => losses::sparse_softmax_cross_entropy,
        "mean squared error" => losses::mean_squared_error,
        other => return Err(problem(format!("no loss is called {other}"))),
    };
    let (name, options) = (config.need::<String>("optimizer")?, config.need::<Map<String, Value>>("opt")?);
    let optimizer = optimizers::build(&name, &options, &[], numbers)?;
    let optimizer = optimizer.ok_or_else(|| problem(format!("there is no {name}")))?;
    let model = model(&mut config, dtype(&case.dtype)?)?;
    config.finish()?;

    let compare = |key: &str, got: &Tensor| {
        if let Some(within) = within(key) {
            check.tensor_within(key, got, within, |_| false);
        }
    };
    donor::fill(&*model, case, "init/var/")?;
    let (x, y) = (case.array("data/x")?, case.array("data/y")?);
    let batches = x.dim(0)?;
    let (mut costs, mut norms) = (Vec::new(), Vec::new());
    for step in 0..case.steps {
        let at = (step % batches) as isize;
        let tape = GradientTape::new();
        let cost = loss(&model.forward_t(&x.index(at)?, true)?, &y.index(at)?)?.mean()?;
        let parameters = model.trainable_variables()?;
        let gradients = tape.gradient(&cost, &parameters)?;
        if step == 0 {
            modules::compare_variables(check, &modules::variables(&*model)?)?;
            for (parameter, gradient) in parameters.iter().zip(&gradients) {
                let path = model.path_of(parameter).unwrap_or_default();
                let gradient = gradient.as_ref().ok_or_else(|| problem(format!("{path} has no gradient")))?;
                compare(&format!("grad0/var/{path}"), &gradient.to_dense()?);
            }
        }
        norms.push(global_norm(&gradients)?);
        costs.push(cost);
        optimizer.apply(&gradients, &parameters)?;
    }
    compare("loss", &Tensor::stack(&costs.iter().collect::<Vec<_>>(), 0)?);
    compare("grad_norm", &Tensor::stack(&norms.iter().collect::<Vec<_>>(), 0)?);
    for (path, variable) in modules::variables(&*model)? {
        compare(&format!("final/var/{path}"), &variable.value());
    }
    for (path, variable) in modules::variables(optimizer.as_module())? {
        compare(&format!("final/opt/{path}"), &variable.value());
    }
    let output = model.forward_t(&x.index(0)?, false)?;
    compare("eval/loss", &loss(&output, &y.index(0)?)?.mean()?);
    compare("eval/output", &output);
    Ok(())
}
