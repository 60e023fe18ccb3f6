//! Axes without elements and of size 1, and shapes that broadcast.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use couplet::autodiff::check_gradients;
use couplet::ops::{OpEntry, Sample, SampleInput, apply_many, op_list};
use couplet::{DType, GradientTape, Result, Tensor};

use crate::harness::{
    Layout, Numbers, check_along_directions, copy, draw, gradients, has_float_output, joined, run, shape_of,
};

/// A sample's inputs in other shapes; where all dims are 1, so are the places that indices name.
fn inputs_of(sample: &Sample, shapes: &[Vec<usize>]) -> Vec<Tensor> {
    let mut numbers = Numbers(5);
    let ones = shapes.iter().flatten().all(|&d| d == 1);
    let draw = |(input, shape): (&SampleInput, &Vec<usize>)| match input {
        SampleInput::Index { .. } if ones => Tensor::zeros(&shape[..], DType::I64).unwrap(),
        _ => draw(input, shape, &mut numbers),
    };
    sample.inputs.iter().zip(shapes).map(draw).collect()
}

/// The shapes of a sample with each dim replaced.
fn with_dims(sample: &Sample, to: impl Fn(usize) -> usize) -> Vec<Vec<usize>> {
    sample.inputs.iter().map(|s| shape_of(s).iter().map(|&d| to(d)).collect()).collect()
}

/// A sample with its float inputs' shapes replaced, for the helpers that take one.
fn resized(entry: &OpEntry, sample: &Sample, shapes: &[Vec<usize>]) -> Sample {
    let resize = |(input, shape): (&SampleInput, &Vec<usize>)| match input.clone() {
        SampleInput::Float { low, high, .. } => SampleInput::Float { shape: shape.clone(), low, high },
        SampleInput::Index { below, .. } => SampleInput::Index { shape: shape.clone(), below },
        SampleInput::Bool { .. } => SampleInput::Bool { shape: shape.clone() },
    };
    let op = (entry.decode)(&sample.op.attributes().unwrap()).unwrap();
    Sample { op, inputs: sample.inputs.iter().zip(shapes).map(resize).collect() }
}

/// Whether the op takes the inputs; then all gradients have the shapes of their inputs, and are 0 if there is no output to
/// be the gradient of.
fn takes(entry: &OpEntry, sample: &Sample, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let (outer, inner) = (GradientTape::new(), GradientTape::new());
    inputs.iter().for_each(|x| outer.watch(x));
    inputs.iter().for_each(|x| inner.watch(x));
    let outputs = apply_many(copy(entry, sample)?, inputs)?;
    let sources: Vec<&Tensor> = inputs.iter().filter(|x| x.dtype().is_float()).collect();
    if !sources.is_empty() && outputs.iter().any(|y| y.dtype().is_float()) {
        let y = joined(&outputs)?;
        let seed = Tensor::linspace(0.7, 1.9, y.size(), y.dtype())?;
        let mut found = Vec::new();
        for (gradient, x) in inner.gradient_with_seed(&y, &seed, &sources)?.into_iter().zip(&sources) {
            let Some(gradient) = gradient else { continue };
            let gradient = gradient.to_dense()?;
            assert_eq!(gradient.shape(), x.shape(), "{}: gradient of {}", entry.name, x.shape());
            if y.size() == 0 {
                let largest = gradient.abs()?.sum()?.item::<f64>()?;
                assert_eq!(largest, 0.0, "{}: nothing depends on {}", entry.name, x.shape());
            }
            found.push(gradient);
        }
        if !found.is_empty() {
            for (second, x) in outer.gradient(&joined(&found)?.sum()?, &sources)?.iter().zip(&sources) {
                let shape = second.as_ref().map(|g| g.to_dense().map(|g| g.shape().clone())).transpose()?;
                assert!(shape.is_none_or(|s| s == *x.shape()), "{}: second gradient", entry.name);
            }
        }
    }
    Ok(outputs)
}

/// As [`takes`]; a panic is the failure of the test, with the case in its message.
fn tried(entry: &OpEntry, sample: &Sample, shapes: &[Vec<usize>]) -> Option<Vec<Tensor>> {
    let inputs = inputs_of(sample, shapes);
    let outcome = catch_unwind(AssertUnwindSafe(|| takes(entry, sample, &inputs)));
    outcome.unwrap_or_else(|_| panic!("{} panics at {shapes:?}, {:?}", entry.name, sample.op)).ok()
}

/// Each dim of the output that is one of an input stays or follows it; where all shapes are one, so they are again.
fn check_shapes(entry: &OpEntry, sample: &Sample, empty: &[Tensor], to: impl Fn(usize) -> usize) {
    let mut numbers = Numbers(5);
    let inputs: Vec<Tensor> = sample.inputs.iter().map(|s| draw(s, shape_of(s), &mut numbers)).collect();
    for (full, empty) in run(entry, sample, Layout::Contiguous, &inputs).unwrap().iter().zip(empty) {
        let alike = inputs.iter().all(|x| x.shape() == full.shape());
        let of_input = |dim: usize| inputs.iter().any(|x| x.shape().contains(&dim));
        let follows = |(&full, &empty): (&usize, &usize)| {
            empty == to(full) || !of_input(full) || (!alike && empty == full)
        };
        let fits = full.rank() == empty.rank() && full.shape().iter().zip(empty.shape().iter()).all(follows);
        assert!(fits, "{} turns {} to {}, {:?}", entry.name, full.shape(), empty.shape(), sample.op);
    }
}

/// Ops whose operands have no axis that may be empty: they say so when they are called.
const NEVER_EMPTY: &[&str] = &[];

#[test]
fn empty_tensors_give_results_and_gradients_of_the_right_shape_or_an_error() {
    let mut missing = Vec::new();
    for entry in op_list() {
        let mut taken = 0;
        for sample in (entry.samples)() {
            let dims: BTreeSet<usize> = sample.inputs.iter().flat_map(|s| shape_of(s).to_vec()).collect();
            for &zero in &dims {
                let to = |d: usize| if d == zero { 0 } else { d };
                if let Some(empty) = tried(&entry, &sample, &with_dims(&sample, to)) {
                    check_shapes(&entry, &sample, &empty, to);
                    taken += 1;
                }
            }
            taken += usize::from(tried(&entry, &sample, &with_dims(&sample, |_| 0)).is_some());
        }
        if taken == 0 && !NEVER_EMPTY.contains(&entry.name) {
            missing.push(entry.name);
        }
    }
    assert!(missing.is_empty(), "no sample with an empty axis: {missing:?}");
}

/// Ops whose samples cannot have size 1 everywhere: three or four gates stand beside each other. They list samples with
/// one step, one example and one unit.
const NEVER_ONE: &[&str] = &["lstm_cell", "lstm_sequence", "gru_step"];

#[test]
fn axes_of_size_one_have_their_gradients() {
    let mut missing = Vec::new();
    for entry in op_list() {
        let mut taken = 0;
        for sample in (entry.samples)() {
            let shapes = with_dims(&sample, |_| 1);
            if tried(&entry, &sample, &shapes).is_none() {
                continue;
            }
            taken += 1;
            let (sample, inputs) = (resized(&entry, &sample, &shapes), inputs_of(&sample, &shapes));
            if !has_float_output(&entry, &sample, Layout::Contiguous, &inputs) {
                continue;
            }
            let f = |x: &[Tensor]| joined(&run(&entry, &sample, Layout::Contiguous, x)?);
            let first = check_gradients(f, &inputs.iter().collect::<Vec<_>>(), 1e-6);
            first.unwrap_or_else(|e| panic!("{}, {:?}: {e}", entry.name, sample.op));
            let f = |x: &[Tensor]| gradients(&entry, &sample, Layout::Contiguous, x);
            let second = check_along_directions(f, &inputs);
            second.unwrap_or_else(|e| panic!("{}, {:?}, second: {e}", entry.name, sample.op));
        }
        if taken == 0 && !NEVER_ONE.contains(&entry.name) {
            missing.push(entry.name);
        }
    }
    assert!(missing.is_empty(), "no sample of size 1: {missing:?}");
}

/// Ops of two tensors that belong together element by element, or row by row.
const NO_BROADCAST: &[&str] = &[
    "softmax_gradient",
    "log_softmax_gradient",
    "softmax_cross_entropy",
    "sigmoid_cross_entropy",
    "linear_scan",
    "add_along_axis",
];

#[test]
fn every_op_of_two_tensors_has_a_sample_that_broadcasts() {
    let mut missing = Vec::new();
    for entry in op_list() {
        let samples = (entry.samples)();
        let pair = |s: &Sample| s.inputs.len() == 2;
        let apart = |s: &Sample| pair(s) && shape_of(&s.inputs[0]) != shape_of(&s.inputs[1]);
        if samples.iter().all(pair) && !samples.iter().any(apart) && !NO_BROADCAST.contains(&entry.name) {
            missing.push(entry.name);
        }
    }
    assert!(missing.is_empty(), "no sample that broadcasts: {missing:?}");
}
