//! Gradients of first and second order.

use couplet::Tensor;
use couplet::autodiff::check_gradients;

use crate::harness::{check_along_directions, for_each_case, gradients, has_float_output, joined, run};

#[test]
fn first_derivatives_match_finite_differences_on_every_layout() {
    for_each_case(|case, entry, sample, layout, inputs| {
        if has_float_output(entry, sample, layout, inputs) {
            let f = |x: &[Tensor]| joined(&run(entry, sample, layout, x)?);
            let checked = if inputs.iter().map(Tensor::size).sum::<usize>() <= 150 {
                check_gradients(f, &inputs.iter().collect::<Vec<_>>(), 1e-6)
            } else {
                check_along_directions(f, inputs)
            };
            checked.unwrap_or_else(|e| panic!("{case}: {e}"));
        }
    });
}

#[test]
fn second_derivatives_match_finite_differences_on_every_layout() {
    for_each_case(|case, entry, sample, layout, inputs| {
        if has_float_output(entry, sample, layout, inputs) {
            let f = |x: &[Tensor]| gradients(entry, sample, layout, x);
            check_along_directions(f, inputs).unwrap_or_else(|e| panic!("{case}: {e}"));
        }
    });
}
