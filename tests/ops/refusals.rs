//! Input that does not fit is an error, never a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use couplet::ops::{SampleInput, apply_many, op_list};
use couplet::{DType, GradientTape, Result, Tensor};

use crate::harness::{Numbers, copy, draw, shape_of};

#[test]
fn inputs_that_do_not_fit_are_refused_without_a_panic() {
    let dtypes = [DType::F32, DType::F16, DType::I32, DType::U8, DType::Bool];
    let shapes: [&[usize]; 6] = [&[], &[0], &[5], &[2, 0, 3], &[7, 2], &[1, 1, 1, 1, 1, 1, 1]];
    for entry in op_list() {
        for (number, sample) in (entry.samples)().iter().enumerate() {
            let draw = |s: &SampleInput| draw(s, shape_of(s), &mut Numbers(3));
            let fitting: Vec<Tensor> = sample.inputs.iter().map(draw).collect();
            let mut trials: Vec<Vec<Tensor>> = (0..fitting.len()).map(|n| fitting[..n].to_vec()).collect();
            for position in 0..fitting.len() {
                let mut with = |x: Tensor| {
                    let mut inputs = fitting.clone();
                    inputs[position] = x;
                    trials.push(inputs);
                };
                for dtype in dtypes {
                    with(fitting[position].cast(dtype).unwrap());
                }
                for shape in shapes {
                    with(Tensor::zeros(shape, fitting[position].dtype()).unwrap());
                }
                if fitting[position].dtype() == DType::I64 {
                    for index in [-1.0, 1e9, i64::MIN as f64] {
                        with(Tensor::full(fitting[position].shape().clone(), index, DType::I64).unwrap());
                    }
                }
            }
            for inputs in trials {
                let tape = GradientTape::new();
                inputs.iter().for_each(|x| tape.watch(x));
                let attempt = || {
                    let y = apply_many(copy(&entry, sample)?, &inputs)?;
                    let y = y.into_iter().find(|y| y.dtype().is_float());
                    y.map(|y| tape.gradient(&y.sum()?, &inputs.iter().collect::<Vec<_>>())).transpose()
                };
                let outcome = catch_unwind(AssertUnwindSafe(attempt));
                let shown: Vec<_> = inputs.iter().map(|x| format!("{}{}", x.dtype(), x.shape())).collect();
                assert!(outcome.is_ok(), "{}, sample {number}, panics at {shown:?}", entry.name);
            }
        }
    }
}

#[test]
fn two_dtypes_do_not_mix() {
    for entry in op_list() {
        for sample in (entry.samples)() {
            let draw = |s: &SampleInput| draw(s, shape_of(s), &mut Numbers(3));
            let fitting: Vec<Tensor> = sample.inputs.iter().map(draw).collect();
            let floats: Vec<usize> = (0..fitting.len()).filter(|&i| fitting[i].dtype().is_float()).collect();
            if floats.len() < 2 {
                continue;
            }
            for &position in &floats {
                for dtype in [DType::F32, DType::F16, DType::I64, DType::Bool] {
                    let mut inputs = fitting.clone();
                    inputs[position] = inputs[position].cast(dtype).unwrap();
                    let outcome = apply_many(copy(&entry, &sample).unwrap(), &inputs);
                    assert!(outcome.is_err(), "{} takes {dtype} as input {position}", entry.name);
                }
            }
        }
    }
}

/// A method with one axis.
type Along = fn(&Tensor, isize) -> Result<Tensor>;

const ALONG: &[(&str, Along)] = &[
    ("sum_axes", |x, axis| x.sum_axes(axis, false)),
    ("mean_axes", |x, axis| x.mean_axes(axis, false)),
    ("var_axes", |x, axis| x.var_axes(axis, true)),
    ("std_axes", |x, axis| x.std_axes(axis, false)),
    ("moments", |x, axis| x.moments(axis, false).map(|(mean, _)| mean)),
    ("max_axes", |x, axis| x.max_axes(axis, false)),
    ("min_axes", |x, axis| x.min_axes(axis, false)),
    ("prod_axes", |x, axis| x.prod_axes(axis, false)),
    ("norm_axes", |x, axis| x.norm_axes(axis, false)),
    ("l2_normalize", |x, axis| x.l2_normalize(axis, 0.0)),
    ("logsumexp_axes", |x, axis| x.logsumexp_axes(axis, false)),
    ("any_axes", |x, axis| x.greater(0.0)?.any_axes(axis, false)),
    ("all_axes", |x, axis| x.greater(0.0)?.all_axes(axis, false)),
    ("count_nonzero_axes", |x, axis| x.count_nonzero_axes(axis, false)),
    ("argmax", Tensor::argmax),
    ("argmin", Tensor::argmin),
    ("cumsum", |x, axis| x.cumsum(axis, false, false)),
    ("cumprod", |x, axis| x.cumprod(axis, false, true)),
    ("sort", |x, axis| x.sort(axis, false)),
    ("argsort", |x, axis| x.argsort(axis, true)),
    ("take_along_axis", |x, axis| x.take_along_axis(&x.argsort(0, false)?, axis)),
    ("softmax", Tensor::softmax),
    ("log_softmax", Tensor::log_softmax),
    ("layer_norm", |x, axis| x.layer_norm(axis, None, None, 1e-3)),
    ("instance_norm", |x, axis| x.instance_norm(axis, None, None, 1e-3)),
    ("group_norm", |x, axis| x.group_norm(1, axis, None, None, 1e-3)),
    ("batch_norm", |x, axis| {
        let ones = Tensor::ones([x.dim(axis)?], DType::F64)?;
        x.batch_norm(axis, &ones, &ones, 1e-3).map(|(y, ..)| y)
    }),
    ("gather", |x, axis| x.gather(&Tensor::from([0i64]), axis)),
    ("roll", |x, axis| x.roll(1, axis)),
    ("repeat", |x, axis| x.repeat(2, axis)),
    ("reverse", |x, axis| x.reverse(axis)),
    ("narrow", |x, axis| x.narrow(axis, 0, 1)),
    ("split", |x, axis| Ok(x.split(&[1, x.dim(axis)? - 1], axis)?.remove(0))),
    ("chunk", |x, axis| Ok(x.chunk(1, axis)?.remove(0))),
    ("unstack", |x, axis| Ok(x.unstack(axis)?.remove(0))),
    ("concat", |x, axis| Tensor::concat(&[x, x], axis)),
    ("transpose", |x, axis| x.transpose(&[axis, 0, 1])),
    ("tensordot", |x, axis| x.tensordot(x, &[axis], &[axis])),
    ("dim", |x, axis| Tensor::zeros([x.dim(axis)?], DType::F64)),
];

#[test]
fn axes_that_do_not_exist_are_refused_and_named() {
    let x = Tensor::linspace(0.5, 2.0, 24, DType::F64).unwrap().reshape([2, 3, 4]).unwrap();
    for (name, method) in ALONG {
        assert!((-3..3).any(|axis| method(&x, axis).is_ok()), "{name} takes no axis");
        for axis in [3, -4, isize::MAX, isize::MIN] {
            let message = method(&x, axis).err().map(|e| e.to_string());
            let message = message.unwrap_or_else(|| panic!("{name} takes axis {axis} of three"));
            assert!(message.contains(&axis.to_string()) && message.contains("-3 to 2"), "{name}: {message}");
        }
        let scalar = Tensor::from(1.5f64);
        assert!(method(&scalar, 0).is_err() && method(&scalar, -1).is_err(), "{name} of a scalar");
    }
    // One axis more than there are may be made.
    for make in [|x: &Tensor, axis| x.expand_dims(axis), |x: &Tensor, axis| Tensor::stack(&[x, x], axis)] {
        assert!(make(&x, 3).is_ok() && make(&x, -4).is_ok());
        for axis in [4, -5, isize::MAX, isize::MIN] {
            assert!(make(&x, axis).unwrap_err().to_string().contains(&axis.to_string()));
        }
    }
}
