//! Half floats: computed wide and rounded once.

use couplet::ops::{Input, OpEntry, Sample, SampleInput, apply_many, op_list};
use couplet::{DType, Result, Tensor};

use crate::harness::{Numbers, copy, draw, shape_of};

/// The float inputs of a sample as numbers that `dtype` has.
fn inputs(sample: &Sample, dtype: DType) -> Result<Vec<Tensor>> {
    let mut numbers = Numbers(11);
    let draw = |input: &SampleInput| {
        let x = draw(input, shape_of(input), &mut numbers);
        if x.dtype().is_float() { x.cast(dtype) } else { Ok(x) }
    };
    sample.inputs.iter().map(draw).collect()
}

/// The outputs for the inputs in another float dtype.
fn run(entry: &OpEntry, sample: &Sample, inputs: &[Tensor], dtype: DType) -> Result<Vec<Tensor>> {
    let cast = |x: &Tensor| if x.dtype().is_float() { x.cast(dtype) } else { Ok(x.clone()) };
    let inputs: Vec<Tensor> = inputs.iter().map(cast).collect::<Result<_>>()?;
    apply_many(copy(entry, sample)?, inputs.into_iter().map(Input::from))
}

#[test]
fn every_float_op_takes_half_floats_and_rounds_its_result_once() {
    let mut off = Vec::new();
    for entry in op_list() {
        for sample in (entry.samples)() {
            for dtype in [DType::F16, DType::BF16] {
                let x = inputs(&sample, dtype).unwrap();
                let case = format!("{}, {dtype}, {:?}", entry.name, sample.op);
                let half = run(&entry, &sample, &x, dtype).unwrap_or_else(|e| panic!("{case}: {e}"));
                let wide = run(&entry, &sample, &x, DType::F32).unwrap_or_else(|e| panic!("{case}: {e}"));
                for (half, wide) in half.iter().zip(&wide) {
                    if wide.dtype() != DType::F32 {
                        continue;
                    }
                    assert_eq!(half.dtype(), dtype, "{case}");
                    let bits = |x: &Tensor| {
                        x.cast(DType::F32)
                            .unwrap()
                            .to_vec::<f32>()
                            .unwrap()
                            .into_iter()
                            .map(f32::to_bits)
                            .collect::<Vec<_>>()
                    };
                    let (got, want) = (bits(half), bits(&wide.cast(dtype).unwrap()));
                    if got != want {
                        off.push(case.clone());
                    }
                }
            }
        }
    }
    assert!(off.is_empty(), "{off:#?}");
}
