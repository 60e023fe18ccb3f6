//! Calls that the reference refuses: we refuse them too, name the module, and change nothing.

use std::collections::BTreeMap;

use couplet::{DType, Gradient, Module, Tensor, Variable};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::args::Args;
use crate::case::dtype;
use crate::check::{Check, floats};
use crate::mended::{self, Way};
use crate::modules::{self, Inputs, Subject};
use crate::optimizers::{self, Numbers};
use crate::{Outcome, ops, problem};

/// One refusal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub module: Option<String>,
    pub function: Option<String>,
    pub optimizer: Option<String>,
    #[serde(default)]
    pub ctor: Map<String, Value>,
    #[serde(default)]
    pub call: Map<String, Value>,
    #[serde(default)]
    inputs: Value,
    #[serde(default)]
    read_variables: bool,
    /// The call takes a state too, for which the one of zeros is taken.
    #[serde(default, rename = "rnn")]
    _rnn: bool,
    pub dtype: Option<String>,
    #[serde(default)]
    pub dtypes: Vec<String>,
    #[serde(default)]
    pub params: Vec<Vec<usize>>,
    #[serde(default)]
    pub updates: Vec<Option<Vec<usize>>>,
    raises: Option<String>,
    stage: Option<String>,
}

/// Shapes of the tensors of a call, and its other arguments.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct RowCall {
    #[serde(default)]
    pub args: Vec<Vec<usize>>,
    #[serde(default)]
    pub tensors: BTreeMap<String, Vec<usize>>,
    #[serde(default)]
    pub call: Map<String, Value>,
}

/// What became of a row.
enum Fate {
    /// There is no such module yet.
    Missing,
    /// Our interface cannot express it.
    Inexpressible,
    /// It was refused, at the stage that the row names or later.
    Refused,
    Accepted,
}

/// Checks a table of refusals.
pub fn run(check: &Check<'_>) -> Outcome {
    for entry in &check.case.table {
        let told = Value::Object(entry.clone()).to_string();
        let row: Row = serde_json::from_value(Value::Object(entry.clone()))?;
        let name = [&row.module, &row.function, &row.optimizer].into_iter().flatten().next();
        let name = name.ok_or_else(|| problem(format!("{told} is not understood")))?;
        let fate = match attempt(&row) {
            Ok(fate) => fate,
            Err(error) => {
                check.fail(format!("{told}: {error}"));
                continue;
            }
        };
        let mended = mended::refusal(&row);
        match (fate, mended.map(|mended| &mended.way)) {
            (Fate::Missing, _) => check.missing(format!("errors/{name}")),
            (fate, _) if row.raises.is_none() => {
                check.that(matches!(fate, Fate::Accepted), || format!("{told}: the reference accepts it"));
            }
            (Fate::Refused, _) if row.stage.as_deref() == Some("ctor") => {
                check.mended(format!(
                    "{name}{}: refused at the first call: constructors do not fail",
                    shown(&row)
                ));
            }
            (Fate::Refused, _) => {}
            (Fate::Inexpressible, Some(Way::Inexpressible)) | (Fate::Accepted, Some(Way::Accepted(_))) => {
                let mended = mended.expect("it was matched");
                if let Way::Accepted(holds) = &mended.way {
                    check.that(holds(&row)?, || format!("{told}: it is not true that {}", mended.why));
                }
                check.mended(format!("{name}{}: {}", shown(&row), mended.why));
            }
            (Fate::Inexpressible, _) => check.fail(format!("{told}: it cannot be built")),
            (Fate::Accepted, _) => check.fail(format!("{told}: it was not refused")),
        }
    }
    Ok(())
}

fn shown(row: &Row) -> String {
    Value::Object(row.ctor.clone()).to_string()
}

impl Row {
    pub fn calls(&self) -> Outcome<Vec<RowCall>> {
        Ok(serde_json::from_value(self.inputs.clone())?)
    }

    /// The module of the row.
    pub fn build(&self) -> Outcome<Option<Box<dyn Subject>>> {
        modules::build(self.module.as_deref().unwrap_or_default(), &self.ctor)
    }

    /// A call with ones of the given shapes.
    pub fn perform(&self, subject: &dyn Subject, call: &RowCall) -> Outcome<Tensor> {
        let dtype = dtype(self.dtype.as_deref().unwrap_or("float32"))?;
        let ones = |shape: &Vec<usize>| Tensor::ones(shape.clone(), dtype);
        let mut inputs = Inputs::new(
            call.args.iter().map(ones).collect::<Result<_, _>>()?,
            call.tensors
                .iter()
                .map(|(name, shape)| Ok((name.clone(), ones(shape)?)))
                .collect::<Outcome<_>>()?,
        );
        let mut args = Args::new(&call.call);
        let y = subject.call(&mut inputs, &mut args)?;
        args.finish()?;
        inputs.finish()?;
        Ok(y.into_iter().next().ok_or_else(|| problem("a call without an output"))?.1)
    }
}

fn attempt(row: &Row) -> Outcome<Fate> {
    if let Some(name) = &row.optimizer {
        return attempt_step(row, name);
    }
    if let Some(name) = &row.function {
        return attempt_function(row, name);
    }
    if row.module.is_none() {
        return Ok(Fate::Missing);
    }
    if !row.call.is_empty() {
        return Err(problem("arguments of a call beside those of its tensors"));
    }
    let subject = match row.build() {
        Ok(Some(subject)) => subject,
        Ok(None) => return Ok(Fate::Missing),
        Err(_) => return Ok(Fate::Inexpressible),
    };
    let calls = row.calls()?;
    for (i, call) in calls.iter().enumerate() {
        // A module that makes its variables when they are listed may refuse that too.
        let before = contents(subject.module()).ok();
        let Err(error) = row.perform(&*subject, call) else { continue };
        refusal(error, subject.module())?;
        if i + 1 < calls.len() || row.read_variables {
            return Err(problem(format!("call {i} was refused already")));
        }
        if contents(subject.module()).ok() != before {
            return Err(problem("the refused call changed variables"));
        }
        return Ok(Fate::Refused);
    }
    if row.read_variables
        && let Err(error) = subject.module().variables()
    {
        refusal(error.into(), subject.module())?;
        return Ok(Fate::Refused);
    }
    Ok(Fate::Accepted)
}

/// One call of a function.
fn attempt_function(row: &Row, name: &str) -> Outcome<Fate> {
    let Some(function) = ops::function(name) else { return Ok(Fate::Missing) };
    let shapes: BTreeMap<String, Vec<usize>> = serde_json::from_value(row.inputs.clone())?;
    let ones = shapes.values().map(|shape| Tensor::ones(shape.clone(), DType::F32));
    let inputs = ones.collect::<couplet::Result<Vec<_>>>()?;
    let Err(error) = function(&inputs, &mut Args::new(&row.call)) else { return Ok(Fate::Accepted) };
    let own = name.rsplit('.').next().unwrap_or(name);
    match error.downcast_ref::<couplet::Error>() {
        Some(refusal) if refusal.to_string().contains(own) => Ok(Fate::Refused),
        Some(refusal) => Err(problem(format!("the message does not name {own}: {refusal}"))),
        None => Err(error),
    }
}

/// One step of an optimiser.
fn attempt_step(row: &Row, name: &str) -> Outcome<Fate> {
    let Some(optimizer) = optimizers::build(name, &row.ctor, &[], Numbers::Plain)? else {
        return Ok(Fate::Missing);
    };
    let dtype_at = |i: usize| dtype(row.dtypes.get(i).map_or("float32", String::as_str));
    let (of_parameters, of_updates) = (dtype_at(0)?, dtype_at(1)?);
    let ones = |shape: &Vec<usize>, dtype| Tensor::ones(shape.clone(), dtype);
    let parameters =
        row.params.iter().map(|shape| Ok(Variable::from_tensor("p", ones(shape, of_parameters)?)));
    let parameters = parameters.collect::<Outcome<Vec<_>>>()?;
    let update = |shape: &Option<Vec<usize>>| -> Outcome<Option<Gradient>> {
        shape.as_ref().map(|shape| Ok(ones(shape, of_updates)?.into())).transpose()
    };
    let updates = row.updates.iter().map(update).collect::<Outcome<Vec<_>>>()?;
    let before = contents(optimizer.as_module())?;
    let Err(error) = optimizer.apply(&updates, &parameters) else { return Ok(Fate::Accepted) };
    refusal(error.into(), optimizer.as_module())?;
    let unchanged =
        parameters.iter().all(|variable| floats(&variable.value()).iter().all(|&value| value == 1.0));
    if !unchanged || contents(optimizer.as_module())? != before {
        return Err(problem("the refused step changed variables"));
    }
    Ok(Fate::Refused)
}

/// Whether an error is the library's own, and names the module.
fn refusal(error: Box<dyn std::error::Error>, module: &dyn Module) -> Outcome {
    let Some(refusal) = error.downcast_ref::<couplet::Error>() else { return Err(error) };
    let text = refusal.to_string();
    let names = [module.scope().path(), module.kind().to_owned()];
    match names.iter().any(|name| text.contains(name.as_str())) {
        true => Ok(()),
        false => Err(problem(format!("the message does not name the module: {text}"))),
    }
}

/// Paths and values of all variables.
fn contents(module: &dyn Module) -> Outcome<Vec<(String, Vec<f64>)>> {
    let named = module.named_variables()?.into_iter();
    Ok(named.map(|(path, variable)| (path, floats(&variable.value()))).collect())
}
