//! Steps of optimisers.

use couplet::optim::{Adam, HyperParameter, Momentum, Optimizer, RMSProp, SGD};
use couplet::{Gradient, IndexedSlices, Module, Tensor, Variable, init};
use serde_json::{Map, Value};

use crate::args::Args;
use crate::case::{Case, dtype};
use crate::check::Check;
use crate::{Outcome, modules, problem};

/// Hyper-parameters that are variables.
type Scheduled = [(String, Variable)];

/// A hyper-parameter: one of the variables, a number, or the default.
fn hyper(args: &mut Args, scheduled: &Scheduled, name: &str) -> Outcome<Option<HyperParameter>> {
    let number = args.get::<f64>(name)?.map(HyperParameter::from);
    let variable = scheduled.iter().find(|(candidate, _)| candidate == name);
    Ok(variable.map(|(_, variable)| HyperParameter::from(variable)).or(number))
}

/// The optimiser of that name, or `None` if there is none.
pub fn build(name: &str, ctor: &Map<String, Value>, scheduled: &Scheduled) -> Outcome<Option<Box<dyn Optimizer>>> {
    let mut args = Args::new(ctor);
    let mut given = |name| hyper(&mut args, scheduled, name);
    let needed = |hyper: Option<HyperParameter>| hyper.ok_or_else(|| problem("a hyper-parameter is missing"));
    /// Calls the setters whose hyper-parameters are given.
    macro_rules! with {
        ($optimizer:expr, $($hyper:ident),*) => {{
            let mut optimizer = $optimizer;
            $(if let Some(value) = given(stringify!($hyper))? {
                optimizer = optimizer.$hyper(value);
            })*
            optimizer
        }};
    }
    let learning_rate = given("learning_rate")?;
    /// The optimiser under the name that is given, if there is one.
    fn named<O: Optimizer + 'static>(optimizer: O, args: &mut Args) -> Outcome<Box<dyn Optimizer>> {
        Ok(Box::new(match args.get::<String>("name")? {
            Some(name) => optimizer.name(&name),
            None => optimizer,
        }))
    }
    let optimizer = match name {
        "SGD" => named(SGD::new(needed(learning_rate)?), &mut args)?,
        "Momentum" => {
            let optimizer = Momentum::new(needed(learning_rate)?, needed(given("momentum")?)?);
            let use_nesterov = args.or("use_nesterov", false)?;
            named(optimizer.use_nesterov(use_nesterov), &mut args)?
        }
        "RMSProp" => {
            let optimizer = with!(RMSProp::new(needed(learning_rate)?), decay, momentum, epsilon);
            let centered = args.or("centered", false)?;
            named(optimizer.centered(centered), &mut args)?
        }
        "Adam" => {
            let optimizer = learning_rate.map_or_else(Adam::default, Adam::new);
            named(with!(optimizer, beta1, beta2, epsilon), &mut args)?
        }
        _ => return Ok(None),
    };
    args.finish()?;
    Ok(Some(optimizer))
}

/// Runs a case, or returns false if there is no such optimiser.
pub fn run(check: &Check<'_>) -> Outcome<bool> {
    let case = check.case;
    let scheduled = scheduled(case)?;
    let Some(optimizer) = build(&case.module, &case.ctor, &scheduled)? else { return Ok(false) };
    steps(check, &scheduled, |_| Ok(None), &*optimizer)?;
    modules::compare_variables(check, &modules::variables(optimizer.as_module())?)?;
    // A new optimiser that takes the state in the middle goes on as if nothing had happened.
    let first = build(&case.module, &case.ctor, &scheduled)?.ok_or_else(|| problem("it vanished"))?;
    let resume = |step: usize| match step {
        0 => Ok(None),
        _ => build(&case.module, &case.ctor, &scheduled),
    };
    steps(check, &scheduled, resume, &*first)?;
    Ok(true)
}

/// The hyper-parameters that are variables, as the case lists them.
fn scheduled(case: &Case) -> Outcome<Vec<(String, Variable)>> {
    let variable = |(name, values): &(String, Vec<f64>)| {
        let spec = case.variables.iter().find(|spec| spec.path == *name);
        let spec = spec.ok_or_else(|| problem(format!("the case lists no variable {name}")))?;
        let start = init::Constant::new(values.first().copied().unwrap_or_default());
        Ok((name.clone(), Variable::non_trainable(name, &spec.shape, dtype(&spec.dtype)?, start)?))
    };
    case.schedule.0.iter().map(variable).collect()
}

/// All steps of the plan; `replace` may give another optimiser that takes over the state before a step.
fn steps(
    check: &Check<'_>,
    scheduled: &Scheduled,
    replace: impl Fn(usize) -> Outcome<Option<Box<dyn Optimizer>>>,
    optimizer: &dyn Optimizer,
) -> Outcome {
    let case = check.case;
    let parameter = |(name, shape): &(String, Vec<usize>)| {
        let value = case.array(&format!("var/{name}"))?;
        check.equal(&format!("the shape of {name}"), value.shape().to_vec(), shape.clone());
        Ok(Variable::from_tensor(name, value.clone()))
    };
    let parameters: Vec<Variable> = case.params.0.iter().map(parameter).collect::<Outcome<_>>()?;
    let mut later: Vec<Box<dyn Optimizer>> = Vec::new();
    for step in 0..case.steps {
        for (name, variable) in scheduled {
            let values = case.schedule.get(name).and_then(|values| values.get(step));
            let value = values.ok_or_else(|| problem(format!("{name} has no value at step {step}")))?;
            variable.assign(&Tensor::from(*value).cast(variable.dtype())?)?;
        }
        if let Some(next) = replace(step)? {
            let last = later.last().map_or(optimizer, |last| &**last);
            next.copy_weights_from(last.as_module())?;
            later.push(next);
        }
        let optimizer = later.last().map_or(optimizer, |last| &**last);
        let updates = case.params.0.iter().map(|(name, shape)| update(case, step, name, shape));
        optimizer.apply(&updates.collect::<Outcome<Vec<_>>>()?, &parameters)?;
        for variable in &parameters {
            check.tensor(&format!("after/{step}/var/{}", variable.name()), &variable.value());
        }
        for (path, variable) in modules::variables(optimizer.as_module())? {
            check.tensor(&format!("after/{step}/opt/{path}"), &variable.value());
        }
    }
    Ok(())
}

/// What the plan says: `d` dense, `z` zeros, `n` none, `s` and `r` slices.
fn update(case: &Case, step: usize, name: &str, shape: &[usize]) -> Outcome<Option<Gradient>> {
    let plan = case.plan.get(name).and_then(|plan| plan.chars().nth(step));
    let key = format!("update/{step}/{name}");
    Ok(match plan {
        Some('n') => None,
        Some('d' | 'z') => Some(case.array(&key)?.clone().into()),
        Some('s' | 'r') => {
            let values = case.array(&format!("{key}/values"))?.clone();
            let indices = case.array(&format!("{key}/indices"))?.clone();
            Some(IndexedSlices { values, indices, dims: shape.to_vec().into() }.into())
        }
        other => return Err(problem(format!("the plan of {name} says {other:?} at step {step}"))),
    })
}
