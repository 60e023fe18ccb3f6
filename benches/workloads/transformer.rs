//! W12: training of one transformer block.

use couplet::optim::Adam;
use couplet::prelude::*;

use crate::measure::{emit, time};

const BATCH: usize = 8;
const POSITIONS: usize = 128;

/// 4 heads of 64 channels, a hidden layer of 1024, mean squared error, Adam.
pub fn train() -> Result<()> {
    random::set_seed(1);
    let normal = || random::current().normal([BATCH, POSITIONS, 256], 0.0, 1.0, DType::F32);
    let (x, target) = (normal()?, normal()?);
    let (block, optimizer) = (TransformerBlock::new(4, 64), Adam::new(1e-3));
    let mut losses: Vec<Tensor> = Vec::new();
    let timing = time(|| {
        let tape = GradientTape::new();
        let loss = losses::mean_squared_error(&block.forward(&x)?, &target)?.mean()?;
        let params = block.trainable_variables()?;
        let gradients = tape.gradient(&loss, &params)?;
        losses.push(loss);
        optimizer.apply(&gradients, &params)
    })?;
    let count: usize = block.trainable_variables()?.iter().map(|v| v.shape().size()).sum();
    let (first, last) = (losses[0].item::<f32>()?, losses[losses.len() - 1].item::<f32>()?);
    let notes = format!("params {count}; loss {first:.7} -> {last:.7} after {}", losses.len());
    let rate = (BATCH * POSITIONS) as f64 / timing.seconds;
    emit("W12", "train", rate, "tokens/s", &notes, Some(&timing));
    Ok(())
}
