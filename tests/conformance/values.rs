//! Arguments that are not plain values: initialisers, functions, paddings.

use std::sync::Arc;

use couplet::init::{self, Distribution, Initializer, Mode};
use couplet::nn::pad::{self, PadFn};
use couplet::{DType, Result, Shape, Tensor};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Map;

use crate::args::Args;
use crate::{Outcome, problem};

/// `{"kind": "TruncatedNormal", ...}`.
#[derive(Clone)]
pub struct Init(pub Arc<dyn Initializer>);

impl<'de> Deserialize<'de> for Init {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut args = Args::new(&Map::deserialize(deserializer)?);
        let init = initializer(&mut args).and_then(|init| args.finish().map(|()| init));
        Ok(Init(init.map_err(D::Error::custom)?))
    }
}

impl Initializer for Init {
    fn init(&self, shape: &Shape, dtype: DType) -> Result<Tensor> {
        self.0.init(shape, dtype)
    }
}

fn initializer(args: &mut Args) -> Outcome<Arc<dyn Initializer>> {
    let kind = args.need::<String>("kind")?;
    let seed = args.get::<u64>("seed")?;
    /// The initialiser with the seed, if there is one.
    macro_rules! seeded {
        ($init:expr) => {
            match seed {
                Some(seed) => Arc::new($init.seed(seed)),
                None => Arc::new($init),
            }
        };
    }
    Ok(match kind.as_str() {
        "Zeros" => Arc::new(init::Zeros),
        "Ones" => Arc::new(init::Ones),
        "Constant" => Arc::new(init::Constant::new(args.need::<f64>("value")?)),
        "Identity" => Arc::new(init::Identity::new().gain(args.or("gain", 1.0)?)),
        "Orthogonal" => seeded!(init::Orthogonal::new().gain(args.or("gain", 1.0)?)),
        "RandomUniform" => {
            seeded!(init::RandomUniform::new(args.or("minval", 0.0)?, args.or("maxval", 1.0)?))
        }
        "RandomNormal" => {
            seeded!(init::RandomNormal::new(args.or("stddev", 1.0)?).mean(args.or("mean", 0.0)?))
        }
        "TruncatedNormal" => {
            seeded!(init::TruncatedNormal::new(args.or("stddev", 1.0)?).mean(args.or("mean", 0.0)?))
        }
        "VarianceScaling" => {
            let mode = match args.or("mode", "fan_in".to_owned())?.as_str() {
                "fan_in" => Mode::FanIn,
                "fan_out" => Mode::FanOut,
                "fan_avg" => Mode::FanAvg,
                other => return Err(problem(format!("mode {other:?} is not understood"))),
            };
            let distribution = match args.or("distribution", "truncated_normal".to_owned())?.as_str() {
                "truncated_normal" => Distribution::TruncatedNormal,
                "normal" => Distribution::Normal,
                "uniform" => Distribution::Uniform,
                other => return Err(problem(format!("distribution {other:?} is not understood"))),
            };
            let scale = args.or("scale", 1.0)?;
            seeded!(init::VarianceScaling::new(scale).mode(mode).distribution(distribution))
        }
        other => return Err(problem(format!("initialiser {other:?} is not understood"))),
    })
}

/// `{"fn": "tanh"}`.
#[derive(Deserialize, Clone, Copy)]
#[serde(try_from = "FunctionName")]
pub struct Function(pub fn(&Tensor) -> Result<Tensor>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FunctionName {
    r#fn: String,
}

impl TryFrom<FunctionName> for Function {
    type Error = String;

    fn try_from(name: FunctionName) -> Result<Self, String> {
        Ok(Function(match name.r#fn.as_str() {
            "abs" => Tensor::abs,
            "elu" => Tensor::elu,
            "exp" => Tensor::exp,
            "identity" => |x| Ok(x.clone()),
            "leaky_relu" => |x| x.leaky_relu(0.2),
            "log_softmax" => |x| x.log_softmax(-1),
            "relu" => Tensor::relu,
            "relu6" => Tensor::relu6,
            "selu" => Tensor::selu,
            "sigmoid" => Tensor::sigmoid,
            "silu" | "swish" => Tensor::silu,
            "sin" => Tensor::sin,
            "softmax" => |x| x.softmax(-1),
            "softplus" => Tensor::softplus,
            "softsign" => Tensor::softsign,
            "square" => Tensor::square,
            "tanh" => Tensor::tanh,
            other => return Err(format!("no function is called {other}")),
        }))
    }
}

/// `{"pad": "causal"}`.
#[derive(Deserialize, Clone, Copy)]
#[serde(try_from = "PadName")]
pub struct PadFunction(pub PadFn);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PadName {
    pad: String,
}

impl TryFrom<PadName> for PadFunction {
    type Error = String;

    fn try_from(name: PadName) -> Result<Self, String> {
        PadFunction::named(&name.pad).ok_or_else(|| format!("no padding is called {}", name.pad))
    }
}

impl PadFunction {
    pub fn named(name: &str) -> Option<Self> {
        Some(PadFunction(match name {
            "valid" => pad::valid,
            "same" => pad::same,
            "full" => pad::full,
            "causal" => pad::causal,
            "reverse_causal" => pad::reverse_causal,
            _ => return None,
        }))
    }
}
