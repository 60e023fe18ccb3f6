//! First and second derivatives of a case.

use couplet::{DType, Gradient, GradientTape, Source, Tensor, Variable};

use crate::check::{Check, floats};
use crate::{Outcome, Outputs, problem};

/// Runs the computation of a case, and compares its outputs and all gradients that the case holds.
///
/// `variables`: the variables by path, asked for after the run. `none_may_be_zero`: whether an exact zero is as good as no gradient (the derivative of a step function).
pub fn compare(
    check: &Check<'_>,
    inputs: &[(String, Tensor)],
    variables: impl FnOnce() -> Outcome<Vec<(String, Variable)>>,
    none_may_be_zero: bool,
    run: impl FnOnce(&[Tensor]) -> Outcome<Outputs>,
) -> Outcome {
    let case = check.case;
    let cotangents: Vec<(String, Tensor)> = case
        .arrays
        .iter()
        .filter_map(|(key, cot)| Some((key.strip_prefix("cot/")?.to_owned(), cot.clone())))
        .collect();
    let watched: Vec<&(String, Tensor)> =
        inputs.iter().filter(|(name, x)| x.dtype().is_float() && !case.constants.contains(name)).collect();
    let second_order = case.arrays.keys().any(|key| key.starts_with("cot2/"));

    let outer = second_order.then(GradientTape::new);
    let tape = GradientTape::new();
    for (_, x) in &watched {
        outer.iter().for_each(|outer| outer.watch(x));
        tape.watch(x);
    }
    outer.iter().for_each(|outer| cotangents.iter().for_each(|(_, cot)| outer.watch(cot)));

    let tensors: Vec<Tensor> = inputs.iter().map(|(_, x)| x.clone()).collect();
    let outputs = run(&tensors)?;
    let mut names: Vec<&str> = outputs.iter().map(|(name, _)| name.as_str()).collect();
    let mut expected: Vec<&str> = case.outputs.iter().map(String::as_str).collect();
    names.sort_unstable();
    expected.sort_unstable();
    check.equal("the list of outputs", names, expected);
    for (name, y) in &outputs {
        check.tensor(&format!("out/{name}"), y);
    }
    if cotangents.is_empty() {
        return Ok(());
    }

    let variables = variables()?;
    let mut sources: Vec<(String, &dyn Source)> = Vec::new();
    sources.extend(watched.iter().map(|(name, x)| (format!("in/{name}"), x as &dyn Source)));
    sources.extend(variables.iter().map(|(path, v)| (format!("var/{path}"), v as &dyn Source)));
    let list: Vec<&dyn Source> = sources.iter().map(|(_, source)| *source).collect();
    let mut seeds = Vec::new();
    for (name, cot) in &cotangents {
        let y = outputs.iter().find(|(output, _)| output == name);
        let (_, y) = y.ok_or_else(|| problem(format!("no output is called {name}")))?;
        seeds.push((y, cot.cast(y.dtype())?));
    }
    let targets: Vec<_> = seeds.iter().map(|(y, seed)| (*y, Some(seed))).collect();
    let gradients = tape.gradient_of_all(&targets, &list)?;
    for ((source, _), gradient) in sources.iter().zip(&gradients) {
        compare_first(check, source, gradient.as_ref(), inputs, none_may_be_zero)?;
    }

    let Some(outer) = outer else { return Ok(()) };
    let mut dense = Vec::new();
    for ((source, _), gradient) in sources.iter().zip(&gradients) {
        if let (Some(weight), Some(gradient)) = (case.arrays.get(&format!("cot2/{source}")), gradient) {
            dense.push((gradient.to_dense()?, weight));
        }
    }
    let targets: Vec<_> = dense.iter().map(|(gradient, weight)| (gradient, Some(*weight))).collect();
    sources.extend(cotangents.iter().map(|(name, cot)| (format!("cot/{name}"), cot as &dyn Source)));
    let list: Vec<&dyn Source> = sources.iter().map(|(_, source)| *source).collect();
    for ((source, _), gradient) in sources.iter().zip(outer.gradient_of_all(&targets, &list)?) {
        compare_second(check, source, gradient)?;
    }
    Ok(())
}

fn compare_first(
    check: &Check<'_>,
    source: &str,
    gradient: Option<&Gradient>,
    inputs: &[(String, Tensor)],
    none_may_be_zero: bool,
) -> Outcome {
    let case = check.case;
    let key = format!("grad/{source}");
    let expects_none = case.grads_none.iter().any(|none| none == source);
    let Some(gradient) = gradient else {
        check.that(!case.arrays.contains_key(&key), || format!("{key}: there is no gradient"));
        return Ok(());
    };
    if expects_none {
        let zero = none_may_be_zero && is_zero(gradient)?;
        check.that(zero, || format!("{key}: there is a gradient, and the reference has none"));
        return Ok(());
    }
    let sparse = case.sparse_grads.iter().any(|sparse| sparse == source);
    check.equal(&format!("{key}: sparseness"), matches!(gradient, Gradient::Sparse(_)), sparse);
    if !case.arrays.contains_key(&key) {
        check.fail(format!("{key}: there is a gradient, and the case has none"));
        return Ok(());
    }
    // Where an input is not finite, its gradient follows from how a formula is written, and may differ.
    let x = inputs.iter().find(|(name, _)| case.special && source == format!("in/{name}"));
    let x = x.map(|(_, x)| floats(x)).unwrap_or_default();
    check.tensor_but(&key, &gradient.to_dense()?, |i| x.get(i).is_some_and(|x| !x.is_finite()));
    if let (Gradient::Sparse(slices), true) = (gradient, sparse) {
        check.tensor(&format!("grad_slices/{source}/values"), &slices.values);
        let key = format!("grad_slices/{source}/indices");
        let dtype = case.array(&key)?.dtype();
        check.tensor(&key, &slices.indices.cast(dtype)?);
    }
    Ok(())
}

/// Without a second derivative there may be zeros, and the other way round: both say that a gradient is constant.
fn compare_second(check: &Check<'_>, source: &str, gradient: Option<Gradient>) -> Outcome {
    let key = format!("grad2/{source}");
    match (check.case.arrays.get(&key), gradient) {
        (Some(_), Some(gradient)) => check.tensor(&key, &gradient.to_dense()?),
        (Some(want), None) => {
            check.saw(&key);
            check.that(floats(want).iter().all(|&g| g == 0.0), || format!("{key}: there is no gradient"));
        }
        (None, Some(gradient)) => {
            let zero = is_zero(&gradient)?;
            check.that(zero, || format!("{key}: there is a gradient, and the reference has none"));
        }
        (None, None) => {}
    }
    Ok(())
}

fn is_zero(gradient: &Gradient) -> Outcome<bool> {
    Ok(gradient.to_dense()?.cast(DType::F64)?.to_vec::<f64>()?.iter().all(|&g| g == 0.0))
}
