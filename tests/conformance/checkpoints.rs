//! What the reference saved is restored: into modules, which then compute its results, and into optimisers, which go on as if they
//! had made the steps themselves.

use std::path::PathBuf;

use couplet::checkpoint::Checkpoint;
use couplet::optim::Optimizer;
use couplet::random::{self, Generator};
use couplet::{Gradient, Tensor, Variable, Visit};

use crate::check::Check;
use crate::modules::{Inputs, Subject, perform};
use crate::{Outcome, problem};

/// The name of the object in all checkpoints.
const NAME: &str = "module";

fn prefix(check: &Check<'_>) -> Option<PathBuf> {
    Some(check.case.folder.join(check.case.ckpt.as_ref()?))
}

/// Restores the case's checkpoint into a module that has seen no input, and calls it.
pub fn module(check: &Check<'_>, subject: &dyn Subject) -> Outcome {
    let Some(prefix) = prefix(check) else { return Ok(()) };
    let object: &dyn Visit = subject.module();
    let checkpoint = Checkpoint::new().track(NAME, object);
    let inputs: Vec<Tensor> = check.case.inputs()?.into_iter().map(|(_, x)| x).collect();
    let generator = Generator::seed(1);
    let (status, outputs) = random::with(&generator, || -> Outcome<_> {
        let status = checkpoint.restore(&prefix)?;
        Ok((status, perform(check.case, subject, Inputs::of(check.case, &inputs))?))
    })?;
    if !subject.draws() {
        check.that(generator.state() == Generator::seed(1).state(), || {
            "restored, it drew random numbers".into()
        });
    }
    for (name, y) in outputs {
        let key = format!("out/{name}");
        if check.case.arrays.contains_key(&key) {
            check.tensor(&key, &y);
        }
    }
    status.assert_consumed()?;
    Ok(())
}

/// Restores the case's checkpoint into an optimiser that has made no step, and compares its next step with that of the
/// optimiser that made all of them.
pub fn optimizer(
    check: &Check<'_>,
    experienced: &dyn Optimizer,
    fresh: &dyn Optimizer,
    parameters: &[Variable],
) -> Outcome {
    let Some(prefix) = prefix(check) else { return Ok(()) };
    let object: &dyn Visit = fresh.as_module();
    let checkpoint = Checkpoint::new().track(NAME, object);
    let status = checkpoint.restore(prefix)?;
    let copies: Vec<Variable> = parameters.iter().map(Variable::duplicate).collect();
    let updates = parameters.iter().map(|parameter| {
        Ok(Some(Gradient::from(Tensor::full(parameter.shape().clone(), 0.25, parameter.dtype())?)))
    });
    let updates = updates.collect::<couplet::Result<Vec<_>>>()?;
    experienced.apply(&updates, parameters)?;
    fresh.apply(&updates, &copies)?;
    for (want, got) in parameters.iter().zip(&copies) {
        let (want, got) = (want.value(), got.value());
        let error = (&got - &want)?.abs()?.max()?.item::<f64>();
        let error = error.or_else(|_| (&got - &want)?.abs()?.max()?.item::<f32>().map(f64::from))?;
        // The checkpoint holds the reference's slots, which differ from ours by roundings.
        check.that(error < 1e-5, || format!("restored, the next step differs by {error}"));
    }
    let report = status.report();
    let left =
        [&report.waiting, &report.unused, &report.missing].iter().map(|list| list.len()).sum::<usize>();
    status.expect_partial();
    match left {
        0 => Ok(()),
        _ => Err(problem(report.to_string())),
    }
}
