//! W9: elementwise functions, a sum, softmax and layer normalisation of 4096 x 1024.

use couplet::prelude::*;

use crate::measure::{emit, time_fast};

/// Bytes of one tensor.
const TENSOR: f64 = 4096.0 * 1024.0 * 4.0;

type Function = fn(&[Tensor]) -> Result<Tensor>;

/// Name, number of inputs, nominal traffic forward and forward plus backward in tensors, and the function.
const OPS: [(&str, usize, f64, f64, Function); 8] = [
    ("add", 2, 3.0, 6.0, |x| &x[0] + &x[1]),
    ("muladd", 3, 4.0, 10.0, |x| (&x[0] * &x[1])? + &x[2]),
    ("exp", 1, 2.0, 5.0, |x| x[0].exp()),
    ("tanh", 1, 2.0, 5.0, |x| x[0].tanh()),
    ("gelu", 1, 2.0, 5.0, |x| x[0].gelu()),
    ("sum", 1, 1.0, 2.0, |x| x[0].sum()),
    ("softmax", 1, 2.0, 5.0, |x| x[0].softmax(-1)),
    ("layer_norm", 1, 2.0, 5.0, |x| x[0].layer_norm(-1, Some(&x[1]), Some(&x[2]), 1e-5)),
];

/// Each op forward, then forward and backward from ones.
pub fn run() -> Result<()> {
    random::set_seed(1);
    let normal = |shape: &[usize]| random::current().normal(shape, 0.0, 1.0, DType::F32);
    for (name, count, forward, both, f) in OPS {
        let mut x: Vec<Tensor> = (0..count).map(|_| normal(&[4096, 1024])).collect::<Result<_>>()?;
        if name == "layer_norm" {
            x.extend([normal(&[1024])?, normal(&[1024])?]);
        }
        let timing = time_fast(|| f(&x).map(drop))?;
        let rate = forward * TENSOR / timing.seconds / 1e9;
        emit("W9", &format!("{name}_fwd"), rate, "GB/s", &notes(timing.seconds), Some(&timing));
        let seed = Tensor::ones(f(&x)?.shape().clone(), DType::F32)?;
        let timing = time_fast(|| {
            let tape = GradientTape::new();
            x.iter().for_each(|x| tape.watch(x));
            let y = f(&x)?;
            tape.gradient_with_seed(&y, &seed, &x).map(drop)
        })?;
        let rate = both * TENSOR / timing.seconds / 1e9;
        emit("W9", &format!("{name}_fwdbwd"), rate, "GB/s", &notes(timing.seconds), Some(&timing));
    }
    Ok(())
}

fn notes(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}
