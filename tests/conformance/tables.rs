//! Cases that are tables of rows rather than one call.

use couplet::mixed_precision::{self, Modes};
use couplet::nn::pad::{LayerPadding, PadFn};
use couplet::nn::{Dropout, pad};
use couplet::{DType, Forward, GradientTape, Source, Tensor, build_with, format_variables};
use serde_json::Map;

use crate::args::{Args, OneOrMany};
use crate::case::dtype;
use crate::check::{Check, Tolerance, compare, floats};
use crate::modules::{self, Inputs, donor, layers};
use crate::values::PadFunction;
use crate::{Outcome, problem};

/// What checks a row.
type Row = fn(&Check<'_>, &mut Args) -> Outcome;

const TABLES: &[(&str, Row)] = &[
    ("Dropout", dropout),
    ("format_variables", printed),
    ("mixed_precision", mixed_precision),
    ("nets", full_size),
    ("pad", padding),
];

/// Checks a table, or returns false if there is no such one.
pub fn run(check: &Check<'_>) -> Outcome<bool> {
    let Some((_, row)) = TABLES.iter().find(|(name, _)| *name == check.case.module) else { return Ok(false) };
    for entry in &check.case.table {
        let mut args = Args::new(entry);
        row(check, &mut args)?;
        args.finish()?;
    }
    Ok(true)
}

/// `y = x mask / (1 - rate)`, and the gradient has the same mask, which is constant where the noise shape is 1.
fn dropout(check: &Check<'_>, args: &mut Args) -> Outcome {
    let (rate, scale) = (args.need::<f64>("rate")?, args.need::<f64>("keep_scale")?);
    let noise_shape = args.get::<Vec<Option<usize>>>("noise_shape")?;
    let prefix = args.need::<String>("arrays")?;
    let layer = Dropout::new(rate);
    let layer = match &noise_shape {
        Some(shape) => layer.noise_shape(shape.clone()),
        None => layer,
    };
    let what = format!("rate {rate}, noise shape {noise_shape:?}");
    let within = Tolerance { rtol: 1e-6, atol: 0.0 };

    let (x, cot) =
        (check.case.array(&format!("{prefix}in/x"))?, check.case.array(&format!("{prefix}cot/y"))?);
    let tape = GradientTape::new();
    tape.watch(x);
    let y = layer.forward_t(x, true)?;
    let dx = tape.gradient_with_seed(&y, cot, &[x])?.remove(0);
    let dx = dx.ok_or_else(|| problem("dropout has no gradient"))?.to_dense()?;
    let mask = y.not_equal(0.0)?.cast(x.dtype())?;
    let kept = (&mask * scale)?;
    for (name, got, want) in [("y", &y, (x * &kept)?), ("the gradient", &dx, (cot * &kept)?)] {
        if let Err(problem) = compare(got, &want, within, 0.0, |_| false) {
            check.fail(format!("{what}: {name}: {problem}"));
        }
    }
    for (axis, _) in noise_shape.iter().flatten().enumerate().filter(|(_, dim)| **dim == Some(1)) {
        let first = mask.narrow(axis as isize, 0, 1)?.broadcast_to(mask.shape().clone())?;
        check.that(floats(&first) == floats(&mask), || format!("{what}: the mask changes along axis {axis}"));
    }
    // The reference's own draw follows the same rules.
    let mask = check.case.array(&format!("{prefix}mask"))?.cast(x.dtype())?;
    let reference = ((x * &mask)? * scale)?;
    check.tensor_within(&format!("{prefix}out/y"), &reference, within, |_| false);

    let dropped = args.get::<f64>("sample_dropped")?;
    if let (Some(_), Some(size)) = (dropped, args.get::<usize>("sample_size")?) {
        let y = floats(&layer.forward_t(&Tensor::ones([size], DType::F32)?, true)?);
        let share = y.iter().filter(|&&y| y == 0.0).count() as f64 / size as f64;
        let error = (rate * (1.0 - rate) / size as f64).sqrt();
        check.that((share - rate).abs() < 5.0 * error, || format!("{what}: {share} of {size} were dropped"));
    }
    Ok(())
}

/// The second call of a layer in a half type, and its gradients.
fn mixed_precision(check: &Check<'_>, args: &mut Args) -> Outcome {
    let (module, prefix) = (args.need::<String>("module")?, args.need::<String>("arrays")?);
    let mode = dtype(&args.need::<String>("mode")?)?;
    let layer = layers::build(&module, &args.need::<Map<_, _>>("ctor")?)?;
    let layer = layer.ok_or_else(|| problem(format!("there is no {module}")))?;
    donor::fill(&*layer, check.case, &format!("{prefix}var/"))?;
    let (x, cot) =
        (check.case.array(&format!("{prefix}in/x"))?, check.case.array(&format!("{prefix}cot/y"))?);
    let modes = Modes::new([mode]);
    let forward = || mixed_precision::scope(mode, || modes.run(x.clone(), |x| layer.forward(&x)));
    let first = forward()?;
    check.equal(
        "the dtype of the first call",
        first.dtype(),
        dtype(&args.need::<String>("first_call_dtype")?)?,
    );
    let tape = GradientTape::new();
    tape.watch(x);
    let y = forward()?;
    check.equal("the dtype of the output", y.dtype(), dtype(&args.need::<String>("output_dtype")?)?);
    check.that(floats(&y) != floats(&first), || "the second call is as exact as the first".to_owned());
    let named = layer.named_variables()?;
    let mut sources: Vec<&dyn Source> = vec![x];
    sources.extend(named.iter().map(|(_, variable)| variable as &dyn Source));
    let gradients = tape.gradient_with_seed(&y, cot, &sources)?;
    let within = Tolerance { rtol: 1e-2, atol: 0.0 };
    check.tensor_within(&format!("{prefix}out/y"), &y, within, |_| false);
    let keys = std::iter::once("in/x".to_owned()).chain(named.iter().map(|(path, _)| format!("var/{path}")));
    for (key, gradient) in keys.zip(gradients) {
        let gradient = gradient.ok_or_else(|| problem(format!("{key} has no gradient")))?.to_dense()?;
        check.tensor_within(&format!("{prefix}grad/{key}"), &gradient, within, |_| false);
    }
    Ok(())
}

/// The table that is printed for the variables of a module.
fn printed(check: &Check<'_>, args: &mut Args) -> Outcome {
    let module = args.need::<String>("module")?;
    let subject = modules::build(&module, &args.need::<Map<_, _>>("ctor")?)?;
    let subject = subject.ok_or_else(|| problem(format!("there is no {module}")))?;
    let mut call = Args::new(&args.or("call", Map::new())?);
    let x = Tensor::ones(args.need::<Vec<usize>>("input")?, DType::F32)?;
    subject.call(&mut Inputs::one(x), &mut call)?;
    call.finish()?;
    let text = format_variables(&subject.module().variables()?);
    check.equal(&format!("the table of {module}"), text, args.need::<String>("text")?);
    Ok(())
}

/// Path, name, shape, whether it is trained, and its value where that is one number.
type FullSizeVariable = (String, String, Vec<usize>, bool, Option<f64>);

/// The variables of a network that is too large for its values to be stored.
fn full_size(check: &Check<'_>, args: &mut Args) -> Outcome {
    let module = args.need::<String>("module")?;
    let subject = modules::build(&module, &args.need::<Map<_, _>>("ctor")?)?;
    let Some(subject) = subject else {
        check.missing(format!("nets/{module}"));
        args.need::<Vec<FullSizeVariable>>("variables")?;
        return Ok(());
    };
    let x = Tensor::ones(args.need::<Vec<usize>>("input")?, DType::F32)?;
    build_with(&[(&x).into()], |x| {
        let mut call = Args::new(&Map::from_iter([("is_training".to_owned(), true.into())]));
        Ok(subject.call(&mut Inputs::one(x[0].clone()), &mut call))
    })??;
    let found = modules::variables(subject.module())?;
    let trained = found.iter().filter(|(_, v)| v.trainable());
    let parameters: usize = trained.map(|(_, v)| v.shape().iter().product::<usize>()).sum();
    check.equal(&format!("{module}: the number of parameters"), parameters, args.need("parameters")?);
    let want = args.need::<Vec<FullSizeVariable>>("variables")?;
    check.equal(&format!("{module}: the number of variables"), found.len(), want.len());
    for ((path, got), want) in found.iter().zip(want) {
        let got_name = format!("{}:0", got.name());
        let told = (path.clone(), got_name, got.shape().to_vec(), got.trainable());
        check.equal(&format!("{module}: a variable"), told, (want.0, want.1, want.2, want.3));
        if let Some(value) = want.4 {
            let same = floats(&got.value()).iter().all(|&got| got == value);
            check.that(same, || format!("{module}: {path} does not start at {value}"));
        }
    }
    Ok(())
}

/// Zeros before and after, for one axis or for all.
fn padding(check: &Check<'_>, args: &mut Args) -> Outcome {
    if let Some(name) = args.get::<String>("fn")? {
        let function =
            PadFunction::named(&name).ok_or_else(|| problem(format!("no padding is called {name}")))?;
        let kernel = args.need::<usize>("kernel")?;
        check.equal(&format!("pad.{name}({kernel})"), function.0(kernel), args.need("pad")?);
        return Ok(());
    }
    let functions = args.need::<OneOrMany<String>>("create")?.list();
    let named = |name: &String| PadFunction::named(name).map(|function| function.0);
    let list: Option<Vec<PadFn>> = functions.iter().map(named).collect();
    let list = list.ok_or_else(|| problem(format!("no paddings are called {functions:?}")))?;
    let mut sizes = |name| Ok::<_, Box<dyn std::error::Error>>(args.need::<OneOrMany<usize>>(name)?.list());
    let (kernel, rate) = (sizes("kernel")?, sizes("rate")?);
    let (n, channels) = (args.need("n")?, args.need("channel_index")?);
    let pads = pad::create(LayerPadding::from(&list[..]), &kernel, &rate, n, channels)?;
    check.equal(&format!("pad.create({functions:?})"), pads, args.need("pad")?);
    Ok(())
}
