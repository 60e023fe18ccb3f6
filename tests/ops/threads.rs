//! Results do not depend on threads, and hardly on the layout.

use couplet::{DType, Tensor, with_threads};

use crate::harness::{Layout, for_each_case, gradients, has_float_output, run, shape_of};

#[test]
fn one_thread_and_two_give_the_same_bits_and_every_layout_the_numbers_of_a_contiguous_one() {
    let bits = |tensors: Vec<Tensor>| -> Vec<Vec<u64>> {
        let bits = |t: &Tensor| t.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
        tensors.iter().map(|t| bits(t).into_iter().map(f64::to_bits).collect()).collect()
    };
    for_each_case(|case, entry, sample, layout, inputs| {
        let one = bits(with_threads(1, || run(entry, sample, layout, inputs)).unwrap());
        let two = bits(with_threads(2, || run(entry, sample, layout, inputs)).unwrap());
        assert_eq!(one, two, "{case}");
        let copies: Vec<Tensor> = inputs
            .iter()
            .zip(&sample.inputs)
            .map(|(x, s)| {
                let laid = layout.lay(x, shape_of(s)).unwrap();
                let dtype = laid.dtype();
                let data = laid.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
                Tensor::from_vec(data, shape_of(s)).unwrap().cast(dtype).unwrap()
            })
            .collect();
        let plain = run(entry, sample, Layout::Contiguous, &copies).unwrap();
        // A sum may follow the layout, so here the last bits are free: 1e-14 of the largest number.
        for (laid, plain) in one.iter().zip(bits(plain)) {
            let numbers = |bits: &[u64]| bits.iter().map(|&b| f64::from_bits(b)).collect::<Vec<_>>();
            let (laid, plain) = (numbers(laid), numbers(&plain));
            let largest = plain.iter().fold(1.0, |m: f64, v| m.max(v.abs()));
            let close = |(a, b): (&f64, &f64)| {
                a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-14 * largest
            };
            assert!(
                laid.len() == plain.len() && laid.iter().zip(&plain).all(close),
                "{case}: {laid:?}, {plain:?}"
            );
        }
        if has_float_output(entry, sample, layout, inputs) {
            let one = with_threads(1, || gradients(entry, sample, layout, inputs)).unwrap();
            let two = with_threads(2, || gradients(entry, sample, layout, inputs)).unwrap();
            assert_eq!(bits(vec![one]), bits(vec![two]), "gradient of {case}");
        }
    });
}
