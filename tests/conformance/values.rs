//! Arguments that are not plain values: initialisers and activations.

use std::sync::Arc;

use couplet::init::{self, Distribution, Initializer, Mode};
use couplet::{Forward, Result, Tensor};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

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
        "RandomUniform" => seeded!(init::RandomUniform::new(args.or("minval", 0.0)?, args.or("maxval", 1.0)?)),
        "RandomNormal" => seeded!(init::RandomNormal::new(args.or("stddev", 1.0)?).mean(args.or("mean", 0.0)?)),
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
