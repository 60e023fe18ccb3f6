//! Modules of the reference: construction, variables, calls and scripts.

mod cores;
pub mod donor;
pub mod initial;
pub mod layers;
mod networks;
mod subjects;

use std::collections::{BTreeMap, VecDeque};

use couplet::random::{self, Generator};
use couplet::{Module, Tensor, Variable};
use serde_json::{Map, Value};

use crate::args::Args;
use crate::case::{Case, dtype};
use crate::check::Check;
use crate::{Outcome, Outputs, checkpoints, gradients, mended, problem};

/// Something that a case calls, and what it is called with.
pub trait Subject {
    /// The module whose variables the case lists.
    fn module(&self) -> &dyn Module;

    /// One call.
    fn call(&self, x: &mut Inputs, args: &mut Args) -> Outcome<Outputs>;

    /// One action of a script that is no call.
    fn act(&self, action: &str, x: &mut Inputs) -> Outcome<Outputs> {
        let _ = x;
        Err(problem(format!("action {action:?} is not understood")))
    }

    /// What comes before the first call of a script.
    fn prepare(&self, x: &Inputs) -> Outcome {
        let _ = x;
        Ok(())
    }

    /// Whether a call draws random numbers although all variables are there.
    fn draws(&self) -> bool {
        false
    }
}

/// Makes the subject of a case from the constructor's arguments.
type Build = fn(&mut Args) -> Outcome<Box<dyn Subject>>;

/// The tensors of a call that have not been used yet.
#[derive(Default)]
pub struct Inputs {
    positional: VecDeque<Tensor>,
    keyword: BTreeMap<String, Tensor>,
}

impl Inputs {
    /// Tensors by position and by keyword.
    pub fn new(positional: VecDeque<Tensor>, keyword: BTreeMap<String, Tensor>) -> Self {
        Inputs { positional, keyword }
    }

    /// One tensor.
    pub fn one(x: Tensor) -> Self {
        Inputs { positional: [x].into(), ..Inputs::default() }
    }

    /// Those of a case, by position or by keyword.
    pub fn of(case: &Case, x: &[Tensor]) -> Self {
        let mut inputs = Inputs::default();
        for (name, x) in case.inputs.iter().zip(x) {
            match case.kw_inputs.contains(name) {
                true => drop(inputs.keyword.insert(name.clone(), x.clone())),
                false => inputs.positional.push_back(x.clone()),
            }
        }
        inputs
    }

    /// The next tensor by position.
    pub fn next(&mut self) -> Outcome<Tensor> {
        self.positional.pop_front().ok_or_else(|| problem("an input is missing"))
    }

    /// The next tensor, which stays.
    pub fn peek(&self) -> Option<&Tensor> {
        self.positional.front()
    }

    /// A tensor passed by keyword.
    pub fn keyword(&mut self, name: &str) -> Option<Tensor> {
        self.keyword.remove(name)
    }

    /// Refuses tensors that were not used.
    pub fn finish(self) -> Outcome {
        match self.keyword.keys().next() {
            None if self.positional.is_empty() => Ok(()),
            None => Err(problem("an input is not used")),
            Some(name) => Err(problem(format!("input {name} is not used"))),
        }
    }
}

/// A single output.
pub fn one(y: couplet::Result<Tensor>) -> Outcome<Outputs> {
    Ok(vec![("y".to_owned(), y?)])
}

/// The subject of a module with its constructor's arguments, or `None` if there is no such module.
pub fn build(module: &str, ctor: &Map<String, Value>) -> Outcome<Option<Box<dyn Subject>>> {
    let Some((_, build)) = subjects::SUBJECTS.iter().find(|(name, _)| *name == module) else {
        let layer = layers::build(module, ctor)?;
        if layer.is_none() {
            return cores::build(module, ctor);
        }
        return Ok(layer.map(|layer| -> Box<dyn Subject> { Box::new(subjects::Plain(layer)) }));
    };
    let mut args = Args::new(ctor);
    let subject = build(&mut args)?;
    args.finish()?;
    Ok(Some(subject))
}

/// The subject of a case, or `None` if there is no such module. Where the case is a quirk that we mend, it is what the
/// reference computes.
fn of_case(case: &Case) -> Outcome<Option<Box<dyn Subject>>> {
    if let Some(quirk) = networks::quirk(case)? {
        return Ok(Some(quirk));
    }
    match case.mode.as_str() {
        "call" | "script" => build(&case.module, &case.ctor),
        _ => cores::of_case(case),
    }
}

/// Runs a case, or returns false if there is no such module.
pub fn run(check: &Check<'_>) -> Outcome<bool> {
    let case = check.case;
    let Some(subject) = of_case(case)? else { return Ok(false) };
    if mended::computation(check)? {
        return Ok(true);
    }
    if networks::quirk(case)?.is_some() {
        networks::mended(check)?;
    }
    // A module may create what needs no input at once; then it draws before it can be filled.
    donor::fill(subject.module(), case, "var/")?;
    let generator = Generator::seed(1);
    let before = generator.state();
    let inputs = case.inputs()?;
    random::with(&generator, || {
        gradients::compare(
            check,
            &inputs,
            || variables(subject.module()),
            false,
            |x| perform(case, &*subject, Inputs::of(case, x)),
        )
    })?;
    if !subject.draws() {
        check.that(generator.state() == before, || "the restored module drew random numbers".to_owned());
    }
    let found = variables(subject.module())?;
    compare_variables(check, &found)?;
    for (path, variable) in &found {
        let key = format!("after/var/{path}");
        if case.arrays.contains_key(&key) {
            check.tensor(&key, &variable.value());
        }
    }
    checkpoints::module(check, &*of_case(case)?.ok_or_else(|| problem("it vanished"))?)?;
    initial::check(check, &|| of_case(case)?.ok_or_else(|| problem("it vanished")))?;
    Ok(true)
}

/// The call of the case, or its script.
pub fn perform(case: &Case, subject: &dyn Subject, mut inputs: Inputs) -> Outcome<Outputs> {
    let outputs = if case.mode == "script" {
        subject.prepare(&inputs)?;
        let mut outputs = Outputs::new();
        for (i, action) in case.script.iter().enumerate() {
            let y = match action {
                Value::Object(call) => {
                    let mut args = Args::new(call);
                    let y = subject.call(&mut inputs, &mut args)?;
                    args.finish()?;
                    y
                }
                Value::String(action) if action == "call" => {
                    subject.call(&mut inputs, &mut Args::new(&case.call))?
                }
                Value::String(action) => subject.act(action, &mut inputs)?,
                other => return Err(problem(format!("action {other} is not understood"))),
            };
            // A single result is called after its action, the parts of a structure below it.
            outputs.extend(y.into_iter().map(|(name, y)| match name.as_str() {
                "y" => (i.to_string(), y),
                name => (format!("{i}/{name}"), y),
            }));
        }
        outputs
    } else {
        let mut args = Args::new(&case.call);
        let outputs = subject.call(&mut inputs, &mut args)?;
        args.finish()?;
        outputs
    };
    inputs.finish()?;
    Ok(outputs)
}

/// The variables in the module's order, with their paths.
pub fn variables(module: &dyn Module) -> Outcome<Vec<(String, Variable)>> {
    let mut named = module.named_variables()?;
    if named.is_empty() {
        return Ok(named);
    }
    let find = |variable: Variable| {
        let found = named.iter().position(|(_, candidate)| candidate.id() == variable.id());
        found.map(|at| named.swap_remove(at)).ok_or_else(|| problem(format!("{variable:?} has no path")))
    };
    let found = module.variables()?.into_iter().map(find).collect::<Outcome<_>>()?;
    match named.first() {
        None => Ok(found),
        Some((path, _)) => Err(problem(format!("variables() lacks {path}"))),
    }
}

/// Compares the variables with the list of the case.
pub fn compare_variables(check: &Check<'_>, found: &[(String, Variable)]) -> Outcome {
    let expected = &check.case.variables;
    let paths = found.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>();
    check.equal("the list of variables", paths, expected.iter().map(|v| v.path.as_str()).collect());
    for ((path, got), want) in found.iter().zip(expected) {
        let name = want.name.strip_suffix(":0").unwrap_or(&want.name);
        check.equal(&format!("{path}: the name"), got.name(), name);
        check.equal(&format!("{path}: trainable"), got.trainable(), want.trainable);
        check.equal(&format!("{path}: the shape"), got.shape().to_vec(), want.shape.clone());
        check.equal(&format!("{path}: the dtype"), got.dtype(), dtype(&want.dtype)?);
    }
    Ok(())
}
