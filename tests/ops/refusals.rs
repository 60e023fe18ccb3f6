//! Input that does not fit is an error, never a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use couplet::ops::{SampleInput, apply_many, op_list};
use couplet::{DType, GradientTape, Tensor};

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
