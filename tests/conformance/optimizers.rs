//! Optimisers: six steps each, with dense, sparse and missing updates.

use couplet::optim::{Adam, HyperParameter, Momentum, Optimizer, RMSProp, SGD};
use couplet::{DType, Gradient, IndexedSlices, Module, Tensor, Variable};

use crate::args::Args;
use crate::case::Case;
use crate::check::Check;
use crate::{Outcome, problem};

/// Runs the steps of a case, or returns false if there is no such optimiser.
pub fn run(check: &Check<'_>) -> Outcome<bool> {
    let case = check.case;
    let schedules: Vec<(String, Variable)> = case
        .schedule
        .0
        .iter()
        .map(|(name, values)| {
            let first = Tensor::full([], values[0], variable_dtype(case))?;
            Ok((name.clone(), Variable::from_tensor(name, first)))
        })
        .collect::<couplet::Result<_>>()?;
    let Some(optimizer) = build(case, &schedules)? else { return Ok(false) };
    let mut parameters = Vec::new();
    for (name, _) in &case.params.0 {
        parameters.push(Variable::from_tensor(name, case.array(&format!("var/{name}"))?.clone()));
    }
    for step in 0..case.steps {
        for ((name, variable), (_, values)) in schedules.iter().zip(&case.schedule.0) {
            let value = values.get(step).ok_or_else(|| problem(format!("{name} has no step {step}")))?;
            variable.assign(&Tensor::full([], *value, variable.dtype())?)?;
        }
        let updates: Vec<_> =
            parameters.iter().map(|parameter| update(case, step, parameter)).collect::<Outcome<_>>()?;
        optimizer.apply(&updates, &parameters)?;
        for parameter in &parameters {
            check.tensor(&format!("after/{step}/var/{}", parameter.name()), &parameter.value());
        }
        for (path, slot) in optimizer.named_variables()? {
            check.tensor(&format!("after/{step}/opt/{path}"), &slot.value());
        }
    }
    let named = optimizer.named_variables()?;
    check.equal("the number of variables", named.len(), case.variables.len());
    for spec in &case.variables {
        match named.iter().find(|(path, _)| *path == spec.path) {
            None => check.fail(format!("there is no variable at {}", spec.path)),
            Some((_, variable)) => {
                check.equal("the name", format!("{}:0", variable.name()), spec.name.clone());
                check.equal("the shape", variable.shape().to_vec(), spec.shape.clone());
            }
        }
    }
    Ok(true)
}

fn variable_dtype(case: &Case) -> DType {
    if case.is_f64() { DType::F64 } else { DType::F32 }
}

/// The optimiser with the arguments of a case. Numbers are given as `f32`, as the reference takes them.
fn build(case: &Case, schedules: &[(String, Variable)]) -> Outcome<Option<Box<dyn Optimizer>>> {
    let mut args = Args::new(&case.ctor);
    let mut hyper = |name: &str, default: f64| -> Outcome<HyperParameter> {
        let number = args.or(name, default)? as f32;
        let scheduled = schedules.iter().find(|(scheduled, _)| scheduled == name);
        Ok(scheduled.map_or_else(|| number.into(), |(_, variable)| variable.into()))
    };
    let optimizer: Box<dyn Optimizer> = match case.module.as_str() {
        "SGD" => Box::new(SGD::new(hyper("learning_rate", f64::NAN)?)),
        "Momentum" => {
            let momentum = Momentum::new(hyper("learning_rate", f64::NAN)?, hyper("momentum", f64::NAN)?);
            Box::new(momentum.use_nesterov(args.or("use_nesterov", false)?))
        }
        "RMSProp" => {
            let rms_prop = RMSProp::new(hyper("learning_rate", f64::NAN)?)
                .decay(hyper("decay", 0.9)?)
                .momentum(hyper("momentum", 0.0)?)
                .epsilon(hyper("epsilon", 1e-10)?);
            Box::new(rms_prop.centered(args.or("centered", false)?))
        }
        "Adam" => Box::new(
            Adam::new(hyper("learning_rate", 0.001)?)
                .beta1(hyper("beta1", 0.9)?)
                .beta2(hyper("beta2", 0.999)?)
                .epsilon(hyper("epsilon", 1e-8)?),
        ),
        _ => return Ok(None),
    };
    args.finish()?;
    Ok(Some(optimizer))
}

/// The update of a parameter at a step: a letter of the plan says which kind.
fn update(case: &Case, step: usize, parameter: &Variable) -> Outcome<Option<Gradient>> {
    let name = parameter.name();
    let key = format!("update/{step}/{name}");
    let plan = case.plan.get(name).ok_or_else(|| problem(format!("there is no plan for {name}")))?;
    Ok(match plan.chars().nth(step) {
        Some('n') => None,
        Some('d' | 'z') => Some(case.array(&key)?.clone().into()),
        Some('s' | 'r') => {
            let values = case.array(&format!("{key}/values"))?.clone();
            let indices = case.array(&format!("{key}/indices"))?.clone();
            Some(IndexedSlices { values, indices, dims: parameter.shape().clone() }.into())
        }
        other => return Err(problem(format!("step {other:?} of the plan is not understood"))),
    })
}
