//! W5b: what one tracked op costs, forward and backward.

use couplet::prelude::*;

use crate::measure::{emit, time};

/// 100 additions of ten numbers, then the gradient.
pub fn run() -> Result<()> {
    let (x, c) = (Tensor::ones([10], DType::F32)?, Tensor::full([10], 0.5, DType::F32)?);
    let mut gradient = None;
    let timing = time(|| {
        let tape = GradientTape::new();
        tape.watch(&x);
        let mut y = x.clone();
        for _ in 0..100 {
            y = (&y + &c)?;
        }
        gradient = tape.gradient(&y.sum()?, &[&x])?.remove(0);
        Ok(())
    })?;
    let ones = gradient.as_ref().map(|g| g.dense()?.to_vec::<f32>()).transpose()?;
    assert_eq!(ones, Some(vec![1.0; 10]), "the gradient of a sum of x and constants is 1");
    emit("W5b", "add_chain", timing.seconds * 1e9 / 100.0, "ns/op", "", Some(&timing));
    Ok(())
}
