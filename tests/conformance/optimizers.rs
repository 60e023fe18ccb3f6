//! Steps of optimisers.

use couplet::optim::{Adam, HyperParameter, Momentum, Optimizer, RMSProp, SGD};
use couplet::{Gradient, IndexedSlices, Tensor, Variable, init};
use serde_json::{Map, Value};

use crate::args::Args;
use crate::case::{Case, dtype};
use crate::check::{Check, Tolerance, tolerance};
use crate::modules::layers::named;
use crate::{Outcome, checkpoints, modules, problem};

/// Hyper-parameters that are variables.
type Scheduled = [(String, Variable)];

/// How numbers and defaults are given.
#[derive(Clone, Copy, PartialEq)]
pub enum Numbers {
    /// As a user writes them: defaults are left out.
    Plain,
    /// Rounded to f32, defaults included, as the reference takes them.
    Rounded,
}

/// The reference's defaults.
const DEFAULTS: [(&str, &str, f64); 7] = [
    ("RMSProp", "decay", 0.9),
    ("RMSProp", "momentum", 0.0),
    ("RMSProp", "epsilon", 1e-10),
    ("Adam", "learning_rate", 0.001),
    ("Adam", "beta1", 0.9),
    ("Adam", "beta2", 0.999),
    ("Adam", "epsilon", 1e-8),
];

/// The optimiser of that name, or `None` if there is none.
pub fn build(
    name: &str,
    ctor: &Map<String, Value>,
    scheduled: &Scheduled,
    numbers: Numbers,
) -> Outcome<Option<Box<dyn Optimizer>>> {
    let mut args = Args::new(ctor);
    // One of the variables, a number, or nothing: then the library's default holds.
    let mut hyper = |hyper: &str| -> Outcome<Option<HyperParameter>> {
        let number = args.get::<f64>(hyper)?;
        if let Some((_, variable)) = scheduled.iter().find(|(candidate, _)| candidate == hyper) {
            return Ok(Some(variable.into()));
        }
        Ok(match numbers {
            Numbers::Plain => number.map(HyperParameter::from),
            Numbers::Rounded => {
                let default = DEFAULTS.iter().find(|(owner, of, _)| *owner == name && *of == hyper);
                number.or(default.map(|default| default.2)).map(|number| HyperParameter::from(number as f32))
            }
        })
    };
    let needed = |hyper: Option<HyperParameter>| hyper.ok_or_else(|| problem("a hyper-parameter is missing"));
    /// Calls the setters whose hyper-parameters are given.
    macro_rules! with {
        ($optimizer:expr, $($hyper:ident),*) => {{
            let mut optimizer = $optimizer;
            $(if let Some(value) = hyper(stringify!($hyper))? {
                optimizer = optimizer.$hyper(value);
            })*
            optimizer
        }};
    }
    fn boxed(optimizer: impl Optimizer + 'static) -> Box<dyn Optimizer> {
        Box::new(optimizer)
    }
    let learning_rate = hyper("learning_rate")?;
    let optimizer = match name {
        "SGD" => boxed(named(SGD::new(needed(learning_rate)?), &mut args)?),
        "Momentum" => {
            let optimizer = Momentum::new(needed(learning_rate)?, needed(hyper("momentum")?)?);
            let use_nesterov = args.or("use_nesterov", false)?;
            boxed(named(optimizer.use_nesterov(use_nesterov), &mut args)?)
        }
        "RMSProp" => {
            let optimizer = with!(RMSProp::new(needed(learning_rate)?), decay, momentum, epsilon);
            let centered = args.or("centered", false)?;
            boxed(named(optimizer.centered(centered), &mut args)?)
        }
        "Adam" => {
            let optimizer = learning_rate.map_or_else(Adam::default, Adam::new);
            boxed(named(with!(optimizer, beta1, beta2, epsilon), &mut args)?)
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
    let build = |numbers| build(&case.module, &case.ctor, &scheduled, numbers);
    let Some(optimizer) = build(Numbers::Plain)? else { return Ok(false) };
    // Beside a coefficient near 1 its rounding weighs a thousandfold in a slot, but not in the parameter.
    let roundings = case.is_f64() && case.quirk;
    let within = |key: &str| (!roundings || key.contains("/var/")).then(|| tolerance(case, key));
    steps(check, &scheduled, &*optimizer, |_| Ok(None), within)?;
    modules::compare_variables(check, &modules::variables(optimizer.as_module())?)?;
    // With the reference's own numbers f64 agrees to the last digits. At each step a new optimiser takes over the
    // state, and goes on as if nothing had happened.
    let exact = Tolerance { rtol: 1e-12, atol: 1e-13 };
    let within = |key: &str| Some(if case.is_f64() { exact } else { tolerance(case, key) });
    let first = build(Numbers::Rounded)?.ok_or_else(|| problem("it vanished"))?;
    let next = |step: usize| if step == 0 { Ok(None) } else { build(Numbers::Rounded) };
    steps(check, &scheduled, &*first, next, within)?;
    if roundings {
        check.mended(
            "f64 numbers are not rounded to f32; numbers given as f32 make the reference's steps".into(),
        );
    }
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

/// All steps of the plan; `next` may give another optimiser that takes over the state before a step.
fn steps(
    check: &Check<'_>,
    scheduled: &Scheduled,
    optimizer: &dyn Optimizer,
    next: impl Fn(usize) -> Outcome<Option<Box<dyn Optimizer>>>,
    within: impl Fn(&str) -> Option<Tolerance>,
) -> Outcome {
    let case = check.case;
    let parameter = |(name, shape): &(String, Vec<usize>)| {
        let value = case.array(&format!("var/{name}"))?;
        check.equal(&format!("the shape of {name}"), value.shape().to_vec(), shape.clone());
        Ok(Variable::from_tensor(name, value.clone()))
    };
    let parameters: Vec<Variable> = case.params.0.iter().map(parameter).collect::<Outcome<_>>()?;
    let compare = |key: String, variable: &Variable| {
        if let Some(within) = within(&key) {
            check.tensor_within(&key, &variable.value(), within, |_| false);
        }
    };
    let mut later: Vec<Box<dyn Optimizer>> = Vec::new();
    for step in 0..case.steps {
        for (name, variable) in scheduled {
            let values = case.schedule.get(name).and_then(|values| values.get(step));
            let value = values.ok_or_else(|| problem(format!("{name} has no value at step {step}")))?;
            variable.assign(&Tensor::from(*value).cast(variable.dtype())?)?;
        }
        if let Some(next) = next(step)? {
            let last = later.last().map_or(optimizer, |last| &**last);
            next.copy_weights_from(last.as_module())?;
            later.push(next);
        }
        let optimizer = later.last().map_or(optimizer, |last| &**last);
        let updates = case.params.0.iter().map(|(name, shape)| update(case, step, name, shape));
        optimizer.apply(&updates.collect::<Outcome<Vec<_>>>()?, &parameters)?;
        for variable in &parameters {
            compare(format!("after/{step}/var/{}", variable.name()), variable);
        }
        for (path, variable) in modules::variables(optimizer.as_module())? {
            compare(format!("after/{step}/opt/{path}"), &variable);
        }
    }
    let last = later.last().map_or(optimizer, |last| &**last);
    match next(case.steps)? {
        Some(fresh) => checkpoints::optimizer(check, last, &*fresh, &parameters),
        None => Ok(()),
    }
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
