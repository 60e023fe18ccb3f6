//! Recurrent cores, unrolled networks and trained states.

use std::collections::{BTreeMap, VecDeque};

use couplet::recurrent::{
    Conv1DLSTM, Conv2DLSTM, Conv3DLSTM, ConvNDLSTM, DeepRNN, GRU, LSTM, Nest, RNNCore, TrainableState,
    UnrolledLSTM, UnrolledRNN, VanillaRNN, deep_rnn_with_residual_connections,
    deep_rnn_with_skip_connections, dynamic_unroll, lstm_with_recurrent_dropout, static_unroll,
};
use couplet::{DType, Module, Tensor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::layers::{LayerArgument, named, set};
use super::{Inputs, Subject};
use crate::args::{Args, OneOrMany};
use crate::case::{Case, dtype};
use crate::values::{Function, Init};
use crate::{Outcome, Outputs, problem};

/// A core from its constructor's arguments.
type Build = fn(&mut Args) -> Outcome<Box<dyn RNNCore>>;

const CORES: &[(&str, Build)] = &[
    ("Conv1DLSTM", |args| boxed(conv_lstm(Conv1DLSTM::new, args)?)),
    ("Conv2DLSTM", |args| boxed(conv_lstm(Conv2DLSTM::new, args)?)),
    ("Conv3DLSTM", |args| boxed(conv_lstm(Conv3DLSTM::new, args)?)),
    ("DeepRNN", |args| boxed(deep_rnn(DeepRNN::new(), args)?)),
    ("GRU", |args| {
        let core = typed(GRU::new(args.need("hidden_size")?), GRU::dtype, args)?;
        boxed(set!(core, args, w_i_init: Init, w_h_init: Init, b_init: Init))
    }),
    ("LSTM", |args| boxed(lstm(args)?)),
    ("VanillaRNN", |args| boxed(vanilla_rnn(args)?)),
    ("deep_rnn_with_residual_connections", |args| {
        boxed(deep_rnn(deep_rnn_with_residual_connections(), args)?)
    }),
    ("deep_rnn_with_skip_connections", |args| {
        let core = deep_rnn(deep_rnn_with_skip_connections(), args)?;
        boxed(set!(core, args, concat_final_output: bool))
    }),
    ("lstm_with_recurrent_dropout", |args| {
        let dropout = args.or("dropout", 0.5)?;
        let (train, _) = lstm_with_recurrent_dropout(lstm(args)?, dropout);
        boxed(set!(train, args, seed: u64))
    }),
];

fn boxed(core: impl RNNCore + 'static) -> Outcome<Box<dyn RNNCore>> {
    Ok(Box::new(core))
}

/// `"float64"`.
#[derive(Clone, Copy)]
struct Type(DType);

impl<'de> Deserialize<'de> for Type {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        dtype(&String::deserialize(deserializer)?).map(Type).map_err(serde::de::Error::custom)
    }
}

/// The core with the dtype that is given, if one is.
fn typed<M>(core: M, set: fn(M, DType) -> M, args: &mut Args) -> Outcome<M> {
    Ok(match args.get::<Type>("dtype")? {
        Some(dtype) => set(core, dtype.0),
        None => core,
    })
}

fn lstm(args: &mut Args) -> Outcome<LSTM> {
    let core = typed(LSTM::new(args.need("hidden_size")?), LSTM::dtype, args)?;
    Ok(set!(core, args, projection_size: usize, projection_init: Init, w_i_init: Init, w_h_init: Init,
        b_init: Init, forget_bias: f64))
}

fn vanilla_rnn(args: &mut Args) -> Outcome<VanillaRNN> {
    let core = typed(VanillaRNN::new(args.need("hidden_size")?), VanillaRNN::dtype, args)?;
    let core = match args.get::<Function>("activation")? {
        Some(activation) => core.activation(activation.0),
        None => core,
    };
    Ok(set!(core, args, w_i_init: Init, w_h_init: Init, b_init: Init))
}

fn conv_lstm<const N: usize>(
    new: fn(Vec<usize>, usize, Vec<usize>) -> ConvNDLSTM<N>,
    args: &mut Args,
) -> Outcome<ConvNDLSTM<N>> {
    let kernel_shape = args.need::<OneOrMany<usize>>("kernel_shape")?.list();
    let core = new(args.need("input_shape")?, args.need("output_channels")?, kernel_shape);
    let core = typed(core, ConvNDLSTM::dtype, args)?;
    let core = match args.get::<String>("data_format")? {
        Some(format) => core.data_format(&format),
        None => core,
    };
    Ok(set!(core, args, w_i_init: Init, w_h_init: Init, b_init: Init, forget_bias: f64))
}

fn deep_rnn(core: DeepRNN, args: &mut Args) -> Outcome<DeepRNN> {
    let mut core = core;
    for layer in args.or::<Vec<Value>>("layers", Vec::new())? {
        core = match core_argument(&layer)? {
            Some(inner) => core.push(inner),
            None => core.push(serde_json::from_value::<LayerArgument>(layer)?.0),
        };
    }
    named(core, args)
}

/// `{"module": ..., "ctor": ...}`, if that is a core.
fn core_argument(argument: &Value) -> Outcome<Option<Box<dyn RNNCore>>> {
    match argument.get("module").and_then(Value::as_str) {
        Some(module) => build_core(module, argument.get("ctor").and_then(Value::as_object)),
        None => Ok(None),
    }
}

/// The core of that name, or `None` if there is none.
fn build_core(module: &str, ctor: Option<&Map<String, Value>>) -> Outcome<Option<Box<dyn RNNCore>>> {
    let Some((_, build)) = CORES.iter().find(|(name, _)| *name == module) else { return Ok(None) };
    let mut args = Args::new(ctor.unwrap_or(&Map::new()));
    let core = build(&mut args)?;
    args.finish()?;
    Ok(Some(core))
}

/// What makes one step: for the table of refusals.
pub fn build(module: &str, ctor: &Map<String, Value>) -> Outcome<Option<Box<dyn Subject>>> {
    let core = build_core(module, Some(ctor))?;
    Ok(core.map(|core| -> Box<dyn Subject> { Box::new(Steps { core, mode: Mode::Step }) }))
}

/// The subject of a case, or `None` if it is about no such thing.
pub fn of_case(case: &Case) -> Outcome<Option<Box<dyn Subject>>> {
    let mode = match case.mode.as_str() {
        "rnn_step" => Mode::Step,
        "static_unroll" => Mode::Static,
        // Traced or not: we have one way.
        "dynamic_unroll" | "dynamic_unroll_function" => Mode::Dynamic,
        "unrolled" => return unrolled(case),
        "trainable_state" => return trainable_state(case).map(Some),
        _ => return Ok(None),
    };
    let core = build_core(&case.module, Some(&case.ctor))?;
    Ok(core.map(|core| -> Box<dyn Subject> { Box::new(Steps { core, mode }) }))
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Step,
    Static,
    Dynamic,
}

/// A core, and how it is run.
struct Steps {
    core: Box<dyn RNNCore>,
    mode: Mode,
}

/// The state for a batch, with the leaves that the call gives.
fn given(initial: Nest, x: &mut Inputs) -> Outcome<Nest> {
    if x.peek().is_none() {
        return Ok(initial);
    }
    let leaves = initial.leaves().iter().map(|_| x.next()).collect::<Outcome<Vec<_>>>()?;
    let mut leaves = VecDeque::from(leaves);
    Ok(initial.try_map(|_| Ok(leaves.pop_front().expect("one was taken for each")))?)
}

/// An output and the parts of a state, with their paths below `name`.
fn outputs(y: (&str, Tensor), name: &str, state: &Nest) -> Outputs {
    let path = |path: String| if path.is_empty() { name.to_owned() } else { format!("{name}/{path}") };
    let parts = state.paths().into_iter().map(path).zip(state.leaves().into_iter().cloned());
    std::iter::once((y.0.to_owned(), y.1)).chain(parts).collect()
}

impl Subject for Steps {
    fn module(&self) -> &dyn Module {
        self.core.as_module()
    }

    fn call(&self, x: &mut Inputs, _: &mut Args) -> Outcome<Outputs> {
        let input = x.next()?;
        let batch = input.dim(if self.mode == Mode::Step { 0 } else { 1 })?;
        let state = given(self.core.initial_state(batch)?, x)?;
        if self.mode == Mode::Step {
            let (y, state) = self.core.step(&input, &state)?;
            return Ok(outputs(("output", y), "next_state", &state));
        }
        let lengths = x.next().ok();
        let (ys, state) = match self.mode {
            Mode::Static => static_unroll(&self.core, &input, &state, lengths.as_ref())?,
            _ => dynamic_unroll(&self.core, &input, &state, lengths.as_ref())?,
        };
        Ok(outputs(("output_sequence", ys), "final_state", &state))
    }

    /// The masks of an initial state.
    fn draws(&self) -> bool {
        self.core.kind() == "RecurrentDropout"
    }
}

struct Whole(UnrolledLSTM);

fn unrolled(case: &Case) -> Outcome<Option<Box<dyn Subject>>> {
    if case.module != "UnrolledLSTM" {
        return Ok(None);
    }
    let mut args = Args::new(&case.ctor);
    let network = whole(&mut args)?;
    args.finish()?;
    Ok(Some(Box::new(Whole(network))))
}

fn whole(args: &mut Args) -> Outcome<UnrolledLSTM> {
    let network = typed(UnrolledLSTM::new(args.need("hidden_size")?), UnrolledLSTM::dtype, args)?;
    Ok(set!(network, args, w_i_init: Init, w_h_init: Init, b_init: Init, forget_bias: f64))
}

impl Subject for Whole {
    fn module(&self) -> &dyn Module {
        &self.0
    }

    fn call(&self, x: &mut Inputs, _: &mut Args) -> Outcome<Outputs> {
        let input = x.next()?;
        let state = given(self.0.initial_state(input.dim(1)?)?, x)?;
        let (ys, state) = self.0.unroll(&input, &state)?;
        Ok(outputs(("output_sequence", ys), "final_state", &state))
    }
}

struct Start(TrainableState);

/// `{"lstm_state": {...}}`, a structure with `leaf` at its leaves.
fn structure<T>(value: &Value, leaf: &dyn Fn(&Value) -> Outcome<T>) -> Outcome<Nest<T>> {
    let Some(state) = value.get("lstm_state") else { return leaf(value).map(Nest::Leaf) };
    let field = |name: &'static str| {
        let part = state.get(name).ok_or_else(|| problem(format!("a state without {name}")))?;
        Ok((name, structure(part, leaf)?))
    };
    Ok(Nest::Struct("LSTMState", ["hidden", "cell"].into_iter().map(field).collect::<Outcome<_>>()?))
}

fn trainable_state(case: &Case) -> Outcome<Box<dyn Subject>> {
    let mut args = Args::new(&case.ctor);
    let dtype = dtype(&case.dtype)?;
    let tensor = |value: &Value| -> Outcome<Tensor> {
        let lists: BTreeMap<String, Vec<f64>> = serde_json::from_value(value.clone())?;
        match lists.first_key_value() {
            Some((kind, list)) if kind == "values" => Ok(Tensor::from(&list[..]).cast(dtype)?),
            Some((kind, dims)) if kind == "zeros" => {
                Ok(Tensor::zeros(dims.iter().map(|&dim| dim as usize).collect::<Vec<_>>(), dtype)?)
            }
            _ => Err(problem(format!("the tensor {value} is not understood"))),
        }
    };
    let start = match args.get::<Value>("core")? {
        Some(core) => {
            let core = core_argument(&core)?.ok_or_else(|| problem(format!("there is no core {core}")))?;
            TrainableState::for_core(&core)
        }
        None => TrainableState::new(structure(&args.need("initial_values")?, &tensor)?),
    };
    let start = match args.get::<Value>("mask")? {
        Some(mask) => start.mask(structure(&mask, &|value| Ok(serde_json::from_value(value.clone())?))?),
        None => start,
    };
    let start = named(start, &mut args)?;
    args.finish()?;
    Ok(Box::new(Start(start)))
}

impl Subject for Start {
    fn module(&self) -> &dyn Module {
        &self.0
    }

    fn call(&self, _: &mut Inputs, args: &mut Args) -> Outcome<Outputs> {
        let state = self.0.initial_state(args.need("batch_size")?)?;
        let name = |path: String| if path.is_empty() { "y".to_owned() } else { path };
        Ok(state.paths().into_iter().map(name).zip(state.leaves().into_iter().cloned()).collect())
    }
}
