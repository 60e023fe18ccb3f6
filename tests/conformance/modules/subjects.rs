//! Modules whose calls take more than one input, and pairs of modules.

use couplet::metrics::{ExponentialMovingAverage, Mean, Metric, Sum};
use couplet::nets::MLP;
use couplet::nn::{BatchNorm, BatchNormCall, Bias, GroupNorm, InstanceNorm, LayerNorm, Reshape};
use couplet::{Forward, Module, Once, Result, Scope, Tensor};
use serde_json::{Map, Value};

use super::layers::{self, Layer};
use super::{Build, Inputs, Subject, one};
use crate::args::Args;
use crate::{Outcome, Outputs, problem};

/// What is not a plain layer.
pub const SUBJECTS: &[(&str, Build)] = &[
    ("BatchNorm", |args| Ok(Box::new(Norm(layers::batch_norm(args)?)))),
    ("Bias", |args| Ok(Box::new(Shift(layers::bias(args)?)))),
    ("ExponentialMovingAverage", |args| {
        let average = ExponentialMovingAverage::new(args.need("decay")?);
        Ok(Box::new(Statistic(layers::named(average, args)?)))
    }),
    ("GroupNorm", |args| Ok(Box::new(Conditional(layers::group_norm(args)?, GroupNorm::forward_with)))),
    ("InstanceNorm", |args| {
        Ok(Box::new(Conditional(layers::instance_norm(args)?, InstanceNorm::forward_with)))
    }),
    ("LayerNorm", |args| Ok(Box::new(Conditional(layers::layer_norm(args)?, LayerNorm::forward_with)))),
    ("Mean", |args| Ok(Box::new(Statistic(layers::named(Mean::new(), args)?)))),
    ("MLP.reverse", |args| Ok(Box::new(there_and_back(args)?))),
    ("Sum", |args| Ok(Box::new(Statistic(layers::named(Sum::new(), args)?)))),
    ("Reshape.reversed", |args| {
        Ok(Box::new(Undone(layers::reshape(&mut inner(args, "reshape", "Reshape")?)?)))
    }),
];

/// The constructor's arguments of a module that is itself an argument.
fn inner(args: &mut Args, name: &str, module: &str) -> Outcome<Args> {
    let mut inner = Args::new(&args.need::<Map<String, Value>>(name)?);
    inner.expect("module", module.to_owned())?;
    let ctor = Args::new(&inner.or("ctor", Map::new())?);
    inner.finish()?;
    Ok(ctor)
}

/// A layer with one input and one output.
pub struct Plain(pub Box<dyn Layer>);

impl Subject for Plain {
    fn module(&self) -> &dyn Module {
        &*self.0
    }

    fn call(&self, x: &mut Inputs, args: &mut Args) -> Outcome<Outputs> {
        let x = x.next()?;
        one(match args.get("is_training")? {
            Some(is_training) => self.0.forward_t(&x, is_training),
            None => self.0.forward(&x),
        })
    }
}

struct Norm(BatchNorm);

impl Subject for Norm {
    fn module(&self) -> &dyn Module {
        &self.0
    }

    fn call(&self, x: &mut Inputs, args: &mut Args) -> Outcome<Outputs> {
        let (x, scale, offset) = (x.next()?, x.keyword("scale"), x.keyword("offset"));
        let Some(is_training) = args.get("is_training")? else { return one(self.0.forward(&x)) };
        let call = BatchNormCall {
            is_training,
            test_local_stats: args.or("test_local_stats", false)?,
            scale: scale.as_ref(),
            offset: offset.as_ref(),
        };
        one(self.0.forward_with(&x, call))
    }
}

/// A call with a scale and an offset, which may be missing.
type ConditionalCall<M> = fn(&M, &Tensor, Option<&Tensor>, Option<&Tensor>) -> Result<Tensor>;

/// A normalisation that takes scale and offset in its call.
struct Conditional<M>(M, ConditionalCall<M>);

impl<M: Module> Subject for Conditional<M> {
    fn module(&self) -> &dyn Module {
        &self.0
    }

    fn call(&self, x: &mut Inputs, _: &mut Args) -> Outcome<Outputs> {
        let (x, scale, offset) = (x.next()?, x.keyword("scale"), x.keyword("offset"));
        one((self.1)(&self.0, &x, scale.as_ref(), offset.as_ref()))
    }
}

struct Shift(Bias);

impl Subject for Shift {
    fn module(&self) -> &dyn Module {
        &self.0
    }

    fn call(&self, x: &mut Inputs, args: &mut Args) -> Outcome<Outputs> {
        let (input, multiplier) = (x.next()?, x.keyword("multiplier").or_else(|| x.next().ok()));
        one(match (multiplier, args.get::<f64>("multiplier")?) {
            (Some(multiplier), _) => self.0.forward_scaled(&input, &multiplier),
            (None, Some(multiplier)) => self.0.forward_scaled(&input, multiplier),
            (None, None) => self.0.forward(&input),
        })
    }
}

struct Statistic<M>(M);

impl<M: Metric> Subject for Statistic<M> {
    fn module(&self) -> &dyn Module {
        self.0.as_module()
    }

    /// A script may begin with reading: the state must be there.
    fn prepare(&self, x: &Inputs) -> Outcome {
        let x = x.peek().ok_or_else(|| problem("a metric needs an input"))?;
        Ok(self.0.initialize(x)?)
    }

    fn call(&self, x: &mut Inputs, _: &mut Args) -> Outcome<Outputs> {
        self.0.update(&x.next()?)?;
        one(self.0.value())
    }

    fn act(&self, action: &str, x: &mut Inputs) -> Outcome<Outputs> {
        match action {
            "update" => self.0.update(&x.next()?)?,
            "reset" => self.0.reset()?,
            "value" => return one(self.0.value()),
            other => return Err(problem(format!("action {other:?} is not understood"))),
        }
        Ok(Outputs::new())
    }
}

/// A reshape, and the one that undoes it.
struct Undone(Reshape);

impl Subject for Undone {
    fn module(&self) -> &dyn Module {
        &self.0
    }

    fn call(&self, x: &mut Inputs, _: &mut Args) -> Outcome<Outputs> {
        let there = self.0.forward(&x.next()?)?;
        let back = self.0.reversed()?.forward(&there)?;
        Ok(vec![("forward".into(), there), ("reversed".into(), back)])
    }
}

/// A network, and its reverse, which can be made after the first call.
#[derive(Module)]
struct ThereAndBack {
    scope: Scope,
    fwd: MLP,
    rev: Once<MLP>,
    activate_final: Option<bool>,
    reverse_name: Option<String>,
}

fn there_and_back(args: &mut Args) -> Outcome<ThereAndBack> {
    let mut reverse = Args::new(&args.or("reverse", Map::new())?);
    let (activate_final, reverse_name) = (reverse.get("activate_final")?, reverse.get("name")?);
    reverse.finish()?;
    let fwd = layers::mlp(&mut inner(args, "mlp", "MLP")?)?;
    Ok(ThereAndBack {
        scope: Scope::new("there_and_back"),
        fwd,
        rev: Once::new(),
        activate_final,
        reverse_name,
    })
}

impl Subject for ThereAndBack {
    fn module(&self) -> &dyn Module {
        self
    }

    fn call(&self, x: &mut Inputs, args: &mut Args) -> Outcome<Outputs> {
        let (x, is_training) = (x.next()?, args.get("is_training")?);
        let run = |mlp: &MLP, x| match is_training {
            Some(is_training) => mlp.forward_t(x, is_training),
            None => mlp.forward(x),
        };
        let there = run(&self.fwd, &x)?;
        let rev = self.rev.get_or_init(|| {
            let mut rev = self.fwd.reverse()?;
            if let Some(activate_final) = self.activate_final {
                rev = rev.activate_final(activate_final);
            }
            Ok(match &self.reverse_name {
                Some(name) => rev.name(name),
                None => rev,
            })
        })?;
        let back = run(rev, &there)?;
        Ok(vec![("forward".into(), there), ("reversed".into(), back)])
    }
}
