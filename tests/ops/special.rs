//! NaN, infinities, zeros of both signs and the ends of the range, against functions of one number written out plainly.

use couplet::ops::{OpEntry, Sample, SampleInput, apply_many, op_list};
use couplet::{DType, Tensor};

use crate::harness::{copy, shape_of};

/// What an elementwise op computes, and how far it may be off: so many units in the last place of the result, and so many of 1
/// where a term of the formula cancels.
struct Reference<F> {
    name: &'static str,
    f: F,
    units: f64,
    of_one: f64,
}

const fn exact<F>(name: &'static str, f: F) -> Reference<F> {
    Reference { name, f, units: 0.0, of_one: 0.0 }
}

const fn near<F>(name: &'static str, f: F) -> Reference<F> {
    Reference { name, f, units: 8.0, of_one: 0.0 }
}

const fn cancels<F>(name: &'static str, f: F) -> Reference<F> {
    Reference { name, f, units: 8.0, of_one: 8.0 }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    (if x > 0.0 { x } else { 0.0 }) + (-x.abs()).exp().ln_1p()
}

/// Of a NaN neither comparison holds, and it stays.
fn clip(x: f64, low: f64, high: f64) -> f64 {
    if x < low {
        low
    } else if x > high {
        high
    } else {
        x
    }
}

/// `2 / sqrt(pi) exp(-x^2)` times the sum of `2^n x^(2n + 1) / (1 3 5 .. (2n + 1))`, whose terms have one sign; the limit far
/// out.
fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut sum, mut term) = (x, x);
    for n in 1..200 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp()
}

type One = Reference<fn(f64) -> f64>;

const UNARY: &[One] = &[
    exact("negative", |x| -x),
    exact("abs", f64::abs),
    exact("sign", |x| if x == 0.0 { 0.0 } else { x.signum() }),
    exact("square", |x| x * x),
    exact("floor", f64::floor),
    exact("ceil", f64::ceil),
    exact("round", f64::round_ties_even),
    exact("relu", |x| if x <= 0.0 { 0.0 } else { x }),
    exact("relu6", |x| if x <= 0.0 { 0.0 } else { clip(x, 0.0, 6.0) }),
    exact("clip_by_value", |x| clip(x, -0.5, 1.0)),
    near("sqrt", f64::sqrt),
    near("rsqrt", |x| 1.0 / x.sqrt()),
    near("reciprocal", |x| 1.0 / x),
    near("exp", f64::exp),
    near("expm1", f64::exp_m1),
    near("log", f64::ln),
    near("log1p", f64::ln_1p),
    near("sigmoid", sigmoid),
    near("softplus", softplus),
    near("log_sigmoid", |x| -softplus(-x)),
    near("sin", f64::sin),
    near("cos", f64::cos),
    near("tan", f64::tan),
    near("asin", f64::asin),
    near("acos", f64::acos),
    near("atan", f64::atan),
    near("sinh", f64::sinh),
    near("cosh", f64::cosh),
    near("tanh", f64::tanh),
    near("asinh", |x| {
        if x.abs() > 1e20 { (x.abs().ln() + std::f64::consts::LN_2).copysign(x) } else { x.asinh() }
    }),
    near("acosh", |x| if x > 1e20 { x.ln() + std::f64::consts::LN_2 } else { x.acosh() }),
    near("atanh", |x| 0.5 * (x.ln_1p() - (-x).ln_1p())),
    near("elu", |x| if x < 0.0 { x.exp_m1() } else { x }),
    near("selu", |x| {
        1.050_700_987_355_480_5 * if x < 0.0 { 1.673_263_242_354_377_2 * x.exp_m1() } else { x }
    }),
    near("leaky_relu", |x| if x > 0.0 { x } else { 0.2 * x }),
    near("swish", |x| x * sigmoid(x)),
    near("mish", |x| x * softplus(x).tanh()),
    near("softsign", |x| x / (1.0 + x.abs())),
    near("hard_sigmoid", |x| clip((x + 3.0) / 6.0, 0.0, 1.0)),
    near("erf", erf),
    cancels("erfc", |x| 1.0 - erf(x)),
    cancels("gelu", |x| 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2))),
    cancels("gelu_tanh", |x| {
        0.5 * x * (1.0 + (0.797_884_560_802_865_4 * x * (1.0 + 0.044_715 * x * x)).tanh())
    }),
];

/// Ops of one tensor that keep its shape and look at more than one element, or change none.
const WHOLE: &[&str] = &["softmax", "log_softmax", "cumsum", "cumprod", "cast", "argsort"];

type Two = Reference<fn(f64, f64) -> f64>;

fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// The remainder with the sign of the divisor, as Python has it.
fn modulo(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
}

const BINARY: &[Two] = &[
    exact("add", |a, b| a + b),
    exact("subtract", |a, b| a - b),
    exact("multiply", |a, b| a * b),
    exact("maximum", larger),
    exact("minimum", |a, b| -larger(-a, -b)),
    near("divide", |a, b| a / b),
    near("pow", f64::powf),
    near("atan2", f64::atan2),
    near("squared_difference", |a, b| (a - b) * (a - b)),
    near("floormod", modulo),
];

/// Ops of two tensors that are not a function of two numbers.
const TOGETHER: &[&str] = &[
    "matmul",
    "triangular_solve",
    "softmax_gradient",
    "log_softmax_gradient",
    "softmax_cross_entropy",
    "sigmoid_cross_entropy",
    "linear_scan",
];

const NUMBERS: [f64; 22] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.5,
    -2.5,
    1e-3,
    -1e-3,
    3.75,
    -3.75,
    20.0,
    -20.0,
    1e4,
    -1e4,
    3.4e38,
    -3.4e38,
    1e-42,
];

/// The numbers in a dtype, and what that dtype makes of them.
fn numbers(dtype: DType) -> (Tensor, Vec<f64>) {
    let x = Tensor::from(NUMBERS).cast(dtype).unwrap();
    let held = x.cast(DType::F64).unwrap().to_vec().unwrap();
    (x, held)
}

fn epsilon(dtype: DType) -> f64 {
    if dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

/// Whether `got` is `want` in `dtype`: the same infinity, NaN or zero, or near enough.
fn agrees<F>(reference: &Reference<F>, dtype: DType, got: f64, want: f64) -> bool {
    let rounded = if dtype == DType::F32 { f64::from(want as f32) } else { want };
    if got.is_nan() || rounded.is_nan() || got.is_infinite() || rounded.is_infinite() {
        return got == rounded || (got.is_nan() && rounded.is_nan());
    }
    if reference.units == 0.0 {
        return got == rounded && got.is_sign_negative() == rounded.is_sign_negative();
    }
    let tiny = if dtype == DType::F32 { 1e-44 } else { f64::MIN_POSITIVE };
    (got - want).abs() <= epsilon(dtype) * (reference.units * want.abs() + reference.of_one) + tiny
}

fn find<F>(list: &'static [Reference<F>], name: &str) -> Option<&'static Reference<F>> {
    list.iter().find(|r| r.name == name)
}

/// The first sample of an op whose inputs are all floats, if all of its samples have `count` of them.
fn of_floats(entry: &OpEntry, count: usize) -> Option<Sample> {
    let floats = |s: &Sample| {
        s.inputs.len() == count && s.inputs.iter().all(|i| matches!(i, SampleInput::Float { .. }))
    };
    let samples = (entry.samples)();
    samples.iter().all(floats).then(|| samples.into_iter().next()).flatten()
}

/// The shapes of the outputs for a sample's own shapes.
fn output_shapes(entry: &OpEntry, sample: &Sample) -> Vec<Vec<usize>> {
    let inputs = sample.inputs.iter().map(|s| Tensor::ones(shape_of(s), DType::F64).unwrap());
    let outputs = apply_many(copy(entry, sample).unwrap(), inputs).unwrap();
    outputs.iter().map(|y| y.shape().to_vec()).collect()
}

#[test]
fn functions_of_one_number_pass_nan_and_infinities_on_as_their_formula_does() {
    let mut off = Vec::new();
    for entry in op_list() {
        let Some(sample) = of_floats(&entry, 1) else { continue };
        if output_shapes(&entry, &sample) != [shape_of(&sample.inputs[0])] || WHOLE.contains(&entry.name) {
            continue;
        }
        let reference = find(UNARY, entry.name)
            .unwrap_or_else(|| panic!("{} has no formula here, nor is it in WHOLE", entry.name));
        for dtype in [DType::F32, DType::F64] {
            let (x, held) = numbers(dtype);
            let y = apply_many(copy(&entry, &sample).unwrap(), [&x]).unwrap().remove(0);
            let y = y.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
            for (x, got) in held.into_iter().zip(y) {
                let want = (reference.f)(x);
                if !agrees(reference, dtype, got, want) {
                    off.push(format!("{}({x:e}) in {dtype} is {got:e}, expected {want:e}", entry.name));
                }
            }
        }
    }
    assert!(off.is_empty(), "{off:#?}");
}

#[test]
fn functions_of_two_numbers_pass_nan_and_infinities_on_as_their_formula_does() {
    let mut off = Vec::new();
    for entry in op_list() {
        let Some(sample) = of_floats(&entry, 2) else { continue };
        if TOGETHER.contains(&entry.name) || entry.name.ends_with("_slope") {
            continue;
        }
        let Some(reference) = find(BINARY, entry.name) else {
            let [a, b] = [0, 1].map(|i| shape_of(&sample.inputs[i]));
            let alike = output_shapes(&entry, &sample).iter().all(|y| y == a && a == b);
            assert!(!alike, "{} has no formula here, nor is it in TOGETHER", entry.name);
            continue;
        };
        for dtype in [DType::F32, DType::F64] {
            let (x, held) = numbers(dtype);
            let (a, b) = (x.reshape([x.size(), 1]).unwrap(), &x);
            let y = apply_many(copy(&entry, &sample).unwrap(), [&a, b]).unwrap().remove(0);
            let mut y = y.cast(DType::F64).unwrap().to_vec::<f64>().unwrap().into_iter();
            for (&a, &b) in held.iter().flat_map(|a| held.iter().map(move |b| (a, b))) {
                let (got, want) = (y.next().unwrap(), (reference.f)(a, b));
                if !agrees(reference, dtype, got, want) {
                    off.push(format!(
                        "{}({a:e}, {b:e}) in {dtype} is {got:e}, expected {want:e}",
                        entry.name
                    ));
                }
            }
        }
    }
    assert!(off.is_empty(), "{off:#?}");
}

#[test]
fn comparisons_with_nan_fail_but_for_inequality() {
    let compare: [(&str, fn(f64, f64) -> bool); 6] = [
        ("equal", |a, b| a == b),
        ("not_equal", |a, b| a != b),
        ("less", |a, b| a < b),
        ("less_equal", |a, b| a <= b),
        ("greater", |a, b| a > b),
        ("greater_equal", |a, b| a >= b),
    ];
    for (name, f) in compare {
        let entry = op_list().into_iter().find(|e| e.name == name).unwrap();
        let sample = &(entry.samples)()[0];
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            let (x, held) = numbers(dtype);
            let a = x.reshape([x.size(), 1]).unwrap();
            let y = apply_many(copy(&entry, sample).unwrap(), [&a, &x]).unwrap().remove(0);
            let want: Vec<bool> = held.iter().flat_map(|a| held.iter().map(move |b| f(*a, *b))).collect();
            assert_eq!(y.to_vec::<bool>().unwrap(), want, "{name} in {dtype}");
        }
    }
}

#[test]
fn a_nan_gradient_goes_through_every_slope() {
    for entry in op_list().into_iter().filter(|e| e.name.ends_with("_slope")) {
        for sample in (entry.samples)() {
            let v = Tensor::from([0.25f64, 0.75]);
            let dy = Tensor::from([f64::NAN, f64::NAN]);
            let dx = apply_many(copy(&entry, &sample).unwrap(), [&v, &dy]).unwrap().remove(0);
            assert!(dx.is_nan().unwrap().all().unwrap().item::<bool>().unwrap(), "{}", entry.name);
        }
    }
}

/// What NumPy gives for a row of numbers.
type OfRow = fn(&Tensor) -> couplet::Result<Tensor>;

#[test]
fn reductions_pass_nan_and_infinities_on_as_numpy_does() {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    let rows: [&[f64]; 9] = [
        &[1.0, NAN, 2.0],
        &[INF, 1.0],
        &[-INF, 1.0],
        &[INF, -INF],
        &[-INF, -INF],
        &[INF, 0.0],
        &[NAN, INF],
        &[],
        &[-0.0, 5.0],
    ];
    let ops: [(&str, OfRow, [f64; 9]); 8] = [
        ("sum", Tensor::sum, [NAN, INF, -INF, NAN, -INF, INF, NAN, 0.0, 5.0]),
        ("mean", Tensor::mean, [NAN, INF, -INF, NAN, -INF, INF, NAN, NAN, 2.5]),
        ("var", Tensor::var, [NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, 6.25]),
        ("max", Tensor::max, [NAN, INF, 1.0, INF, -INF, INF, NAN, -INF, 5.0]),
        ("min", Tensor::min, [NAN, 1.0, -INF, -INF, -INF, 0.0, NAN, INF, 0.0]),
        ("prod", Tensor::prod, [NAN, INF, -INF, -INF, INF, NAN, NAN, 1.0, 0.0]),
        ("norm", Tensor::norm, [NAN, INF, INF, INF, INF, INF, NAN, 0.0, 5.0]),
        ("logsumexp", Tensor::logsumexp, [NAN, INF, 1.0, INF, -INF, INF, NAN, -INF, (1.0 + 5f64.exp()).ln()]),
    ];
    for (name, op, want) in ops {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            for (row, want) in rows.iter().zip(want) {
                let x = Tensor::from_vec(row.to_vec(), [row.len()]).unwrap().cast(dtype).unwrap();
                let got = op(&x).unwrap().cast(DType::F64).unwrap().item::<f64>().unwrap();
                let close = (got - want).abs() <= 4e-3 * want.abs();
                let same = got == want || (got.is_nan() && want.is_nan());
                assert!(same || close, "{name} of {row:?} in {dtype} is {got}, expected {want}");
            }
        }
    }
}
