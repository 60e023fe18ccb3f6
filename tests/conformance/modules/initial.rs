//! How variables start out.

use couplet::random::{self, Generator};
use couplet::{Spec, Tensor, build_with};

use super::{Inputs, Subject, perform, variables};
use crate::Outcome;
use crate::case::{Case, Distribution, Init};
use crate::check::{Check, Tolerance, compare, floats};

/// Numbers to judge a distribution by: the deviation of a normal one is known to 1.6 % then.
const ENOUGH: usize = 2000;

/// How far a moment may lie from its expectation, in standard errors.
pub const SIGMAS: f64 = 4.5;

/// Builds the module anew until there are numbers enough, and compares how its variables start with the case.
pub fn check(check: &Check<'_>, build: &dyn Fn() -> Outcome<Box<dyn Subject>>) -> Outcome {
    let case = check.case;
    let mut drawn: Vec<Vec<f64>> = vec![Vec::new(); case.variables.len()];
    random::with(&Generator::seed(20241), || -> Outcome {
        for round in 0..ENOUGH {
            let start = start(case, &*build()?)?;
            for ((want, got), drawn) in case.variables.iter().zip(start).zip(&mut drawn) {
                let values = match &want.init {
                    Some(Init::Drawn(_)) => {
                        drawn.extend(floats(&got));
                        continue;
                    }
                    _ if round > 0 => continue,
                    None => continue,
                    Some(Init::Constant { constant }) => vec![*constant; got.size()],
                    Some(Init::Values { values }) => values.clone(),
                };
                let values = Tensor::from_vec(values, want.shape.clone())?.cast(got.dtype())?;
                if let Err(problem) = compare(&got, &values, Tolerance::EXACT, 0.0, |_| false) {
                    check.fail(format!("{} starts wrong: {problem}", want.path));
                }
            }
            if drawn.iter().all(|list| list.is_empty() || list.len() >= ENOUGH) {
                break;
            }
        }
        Ok(())
    })?;
    for (want, drawn) in case.variables.iter().zip(&drawn) {
        if let Some(Init::Drawn(distribution)) = &want.init
            && let Err(problem) = follows(drawn, *distribution)
        {
            check.fail(format!("{} does not start as {distribution:?}: {problem}", want.path));
        }
    }
    Ok(())
}

/// The values that the variables of a module are made with.
fn start(case: &Case, subject: &dyn Subject) -> Outcome<Vec<Tensor>> {
    let specs: Vec<Spec> = case
        .inputs()?
        .iter()
        .map(|(_, x)| {
            Spec::from(x.shape().iter().map(|&dim| Some(dim)).collect::<Vec<_>>()).with_dtype(x.dtype())
        })
        .collect();
    let call = |x: &[Tensor]| Ok(perform(case, subject, Inputs::of(case, x)));
    build_with(&specs, call)??;
    Ok(variables(subject.module())?.into_iter().map(|(_, variable)| variable.value()).collect())
}

/// Mean and standard deviation.
pub fn moments(drawn: &[f64]) -> (f64, f64) {
    let n = drawn.len() as f64;
    let mean = drawn.iter().sum::<f64>() / n;
    (mean, (drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt())
}

/// Whether numbers may come from a distribution: its bounds, mean and standard deviation.
pub fn follows(drawn: &[f64], distribution: Distribution) -> Result<(), String> {
    // The standard deviation of a normal variable cut at two of them.
    const CUT: f64 = 0.879_625_661_034_239_8;
    let (mean, stddev, low, high) = match distribution {
        Distribution::Normal { mean, stddev } => (mean, stddev, f64::NEG_INFINITY, f64::INFINITY),
        Distribution::TruncatedNormal { mean, stddev } => {
            (mean, CUT * stddev, mean - 2.0 * stddev, mean + 2.0 * stddev)
        }
        Distribution::Uniform { minval, maxval } => {
            ((minval + maxval) / 2.0, (maxval - minval) / 12f64.sqrt(), minval, maxval)
        }
    };
    if drawn.is_empty() {
        return Err("nothing was drawn".into());
    }
    // Bounds are rounded to the dtype of the numbers.
    let slack = 1e-6 * (low.abs().max(high.abs())).min(1e30);
    if let Some(x) = drawn.iter().find(|x| !(low - slack..=high + slack).contains(*x)) {
        return Err(format!("{x} is out of bounds"));
    }
    let n = drawn.len() as f64;
    let (got_mean, got_stddev) = moments(drawn);
    if (got_mean - mean).abs() > SIGMAS * stddev / n.sqrt() + 1e-12 {
        return Err(format!("the mean of {n} numbers is {got_mean}, expected {mean}"));
    }
    if (got_stddev / stddev - 1.0).abs() > SIGMAS / (2.0 * n).sqrt() {
        return Err(format!("the deviation of {n} numbers is {got_stddev}, expected {stddev}"));
    }
    Ok(())
}
