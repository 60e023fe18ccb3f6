//! W10: convolutions forward, and with both gradients.

use couplet::ops::ConvOptions;
use couplet::prelude::*;

use crate::measure::{emit, time_fast};

/// Name, height and width, input channels, output channels, kernel and stride; the batch is 16.
const CONVS: [(&str, usize, usize, usize, usize, usize); 5] = [
    ("c3_64_hw32", 32, 64, 64, 3, 1),
    ("c3_128_hw16", 16, 128, 128, 3, 1),
    ("c3_256_hw8", 8, 256, 256, 3, 1),
    ("c1_64_256_hw32", 32, 64, 256, 1, 1),
    ("c3s2_64_128_hw32", 32, 64, 128, 3, 2),
];

/// Each convolution, SAME, without a bias.
pub fn run() -> Result<()> {
    random::set_seed(1);
    for (name, size, from, to, kernel, stride) in CONVS {
        let x = random::current().normal([16, size, size, from], 0.0, 1.0, DType::F32)?;
        let w = random::current().normal([kernel, kernel, from, to], 0.0, 1.0, DType::F32)?;
        let options = ConvOptions { stride: vec![stride], ..ConvOptions::default() };
        let seed = Tensor::ones(x.convolve(&w, None, &options)?.shape().clone(), DType::F32)?;
        let flop = 2.0 * (seed.size() * from * kernel * kernel) as f64;
        let timing = time_fast(|| x.convolve(&w, None, &options).map(drop))?;
        emit("W10", &format!("{name}_fwd"), flop / timing.seconds / 1e9, "GF/s", "", Some(&timing));
        let timing = time_fast(|| {
            let tape = GradientTape::new();
            tape.watch(&x);
            tape.watch(&w);
            let y = x.convolve(&w, None, &options)?;
            tape.gradient_with_seed(&y, &seed, &[&x, &w]).map(drop)
        })?;
        let rate = 3.0 * flop / timing.seconds / 1e9;
        emit("W10", &format!("{name}_fwdbwd"), rate, "GF/s", "", Some(&timing));
    }
    depthwise()
}

/// 3x3, each of 128 channels by itself.
fn depthwise() -> Result<()> {
    let x = random::current().normal([16, 32, 32, 128], 0.0, 1.0, DType::F32)?;
    let w = random::current().normal([3, 3, 128, 1], 0.0, 1.0, DType::F32)?;
    let (options, seed) = (ConvOptions::default(), Tensor::ones(x.shape().clone(), DType::F32)?);
    let flop = 2.0 * (seed.size() * 9) as f64;
    let timing = time_fast(|| x.depthwise_convolve(&w, &options).map(drop))?;
    emit("W10", "dw3_128_hw32_fwd", flop / timing.seconds / 1e9, "GF/s", "", Some(&timing));
    let timing = time_fast(|| {
        let tape = GradientTape::new();
        tape.watch(&x);
        tape.watch(&w);
        let y = x.depthwise_convolve(&w, &options)?;
        tape.gradient_with_seed(&y, &seed, &[&x, &w]).map(drop)
    })?;
    emit("W10", "dw3_128_hw32_fwdbwd", 3.0 * flop / timing.seconds / 1e9, "GF/s", "", Some(&timing));
    Ok(())
}
