//! Tables of initialisers.

use couplet::init::{Initializer, Orthogonal, RandomNormal, RandomUniform, TruncatedNormal};
use couplet::random::{self, Generator};
use couplet::{DType, Shape, Tensor};
use serde_json::{Map, Value};

use crate::Outcome;
use crate::args::Args;
use crate::case::{Distribution, dtype};
use crate::check::{Check, Tolerance, compare, floats};
use crate::modules::initial;
use crate::values::Init;

/// Checks a table, or returns false if there is no such one.
pub fn run(check: &Check<'_>) -> Outcome<bool> {
    let row: fn(&Check<'_>, &mut Args) -> Outcome = match check.case.module.as_str() {
        "initializers" => plain,
        "Orthogonal" => orthogonal,
        "VarianceScaling" => variance_scaling,
        _ => return Ok(false),
    };
    for entry in &check.case.table {
        let mut args = Args::new(entry);
        row(check, &mut args)?;
        args.finish()?;
    }
    Ok(true)
}

fn shape(args: &mut Args) -> Outcome<Shape> {
    Ok(args.need::<Vec<usize>>("shape")?.into())
}

/// Exact values, or moments of a large sample.
fn plain(check: &Check<'_>, args: &mut Args) -> Outcome {
    let spec = args.need::<Map<String, Value>>("init")?;
    let Init(init) = serde_json::from_value(Value::Object(spec.clone()))?;
    let shape = shape(args)?;
    if args.has("out") {
        let y = init.init(&shape, dtype(&args.need::<String>("dtype")?)?)?;
        check.tensor_within(&args.need::<String>("out")?, &y, Tolerance::EXACT, |_| false);
        return Ok(());
    }
    let dtype = dtype(&args.or("dtype", "float32".to_owned())?)?;
    let drawn = random::with(&Generator::seed(3), || init.init(&shape, dtype)).map(|y| floats(&y))?;
    let (mean, stddev) = (args.need::<f64>("mean")?, args.need::<f64>("stddev")?);
    // Both samples are off by a standard error each.
    let errors = initial::SIGMAS * (2.0 / drawn.len() as f64).sqrt();
    let (got_mean, got_stddev) = initial::moments(&drawn);
    check.that((got_mean - mean).abs() < errors * stddev, || {
        format!("{spec:?}: the mean is {got_mean}, expected about {mean}")
    });
    check.that((got_stddev / stddev - 1.0).abs() < errors, || {
        format!("{spec:?}: the deviation is {got_stddev}, expected about {stddev}")
    });
    let (min, max) = (args.need::<f64>("min")?, args.need::<f64>("max")?);
    let bounded = spec["kind"] != "RandomNormal" && spec.get("distribution").is_none_or(|d| d != "normal");
    let near = |got: f64, want: f64| !bounded || (got - want).abs() < 1e-3 * (max - min);
    let (least, most) = drawn.iter().fold((f64::MAX, f64::MIN), |(low, high), &x| (low.min(x), high.max(x)));
    check.that(near(least, min) && near(most, max), || {
        format!("{spec:?}: from {least} to {most}, expected about {min} to {max}")
    });
    Ok(())
}

/// The result for a given normal matrix, and its Gram matrix for a random one.
fn orthogonal(check: &Check<'_>, args: &mut Args) -> Outcome {
    let (shape, gain) = (shape(args)?, args.need::<f64>("gain")?);
    let dtype = dtype(&args.need::<String>("dtype")?)?;
    let init = Orthogonal::new().gain(gain);
    let normal = check.case.array(&args.need::<String>("normal")?)?;
    check.tensor(&args.need::<String>("out")?, &init.from_normal(normal, &shape, dtype)?);
    let columns = shape[shape.rank() - 1];
    let matrix = init.init(&shape, dtype)?.reshape([shape.size() / columns, columns])?;
    let gram = match args.need::<String>("gram")?.as_str() {
        "rows" => matrix.matmul(matrix.t()?)?,
        _ => matrix.t()?.matmul(&matrix)?,
    };
    let expected = (Tensor::eye(gram.dim(0)?, gram.dim(0)?, dtype)? * (gain * gain))?;
    let within = Tolerance { rtol: if dtype == DType::F64 { 1e-12 } else { 1e-5 }, atol: 0.0 };
    check.that(compare(&gram, &expected, within, 0.0, |_| false).is_ok(), || {
        format!("shape {shape}: the Gram matrix is {gram}")
    });
    Ok(())
}

/// The parameters handed to the random generator: the same draw from the plain distribution gives the same numbers.
fn variance_scaling(check: &Check<'_>, args: &mut Args) -> Outcome {
    let spec = serde_json::json!({
        "kind": "VarianceScaling",
        "scale": args.need::<f64>("scale")?,
        "mode": args.need::<String>("mode")?,
        "distribution": args.need::<String>("distribution")?,
    });
    let Init(init) = serde_json::from_value(spec.clone())?;
    let plain: Box<dyn Initializer> = match args.need::<Distribution>("draw")? {
        Distribution::Normal { mean, stddev } => Box::new(RandomNormal::new(stddev).mean(mean)),
        Distribution::TruncatedNormal { mean, stddev } => Box::new(TruncatedNormal::new(stddev).mean(mean)),
        Distribution::Uniform { minval, maxval } => Box::new(RandomUniform::new(minval, maxval)),
    };
    let (shape, dtype) = (shape(args)?, dtype(&args.need::<String>("dtype")?)?);
    let got = random::with(&Generator::seed(5), || init.init(&shape, dtype))?;
    let want = random::with(&Generator::seed(5), || plain.init(&shape, dtype))?;
    if let Err(problem) = compare(&got, &want, Tolerance { rtol: 1e-6, atol: 0.0 }, 0.0, |_| false) {
        check.fail(format!("{spec} for shape {shape}: {problem}"));
    }
    Ok(())
}
