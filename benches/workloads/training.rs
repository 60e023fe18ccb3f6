//! Timing of training steps.

use couplet::optim::Optimizer;
use couplet::prelude::*;

use crate::measure::{emit, time};

/// What is measured, and what one step is worth in its unit; a unit of time is that of the step itself.
pub struct Line {
    pub workload: &'static str,
    pub metric: &'static str,
    pub per_step: f64,
    pub unit: &'static str,
}

/// The mean cross entropy of what a network says of `x`.
pub fn cross_entropy(net: &impl Forward, x: &Tensor, labels: &Tensor) -> Result<Tensor> {
    losses::sparse_softmax_cross_entropy(&net.forward(x)?, labels)?.mean()
}

/// Times a training step: forward, loss, backward and update of all parameters.
pub fn train(
    line: &Line,
    net: &dyn Module,
    opt: &dyn Optimizer,
    loss: impl Fn() -> Result<Tensor>,
) -> Result<()> {
    let (mut first, mut last, mut norm, mut steps) = (f32::NAN, f32::NAN, 0.0, 0);
    let timing = time(|| {
        let tape = GradientTape::new();
        let loss = loss()?;
        let params = net.trainable_variables()?;
        let grads = tape.gradient(&loss, &params)?;
        opt.apply(&grads, &params)?;
        last = loss.item::<f32>()?;
        if steps == 0 {
            first = last;
            norm = optim::global_norm(&grads)?.item::<f32>()?;
        }
        steps += 1;
        Ok(())
    })?;
    let params: usize = net.trainable_variables()?.iter().map(|v| v.shape().size()).sum();
    let notes =
        format!("params {params}; loss {first:.7} -> {last:.7} after {steps} steps; |grad| {norm:.3}");
    let &Line { workload, metric, per_step, unit } = line;
    let value = if unit.starts_with("us") { timing.seconds * 1e6 } else { per_step / timing.seconds };
    emit(workload, metric, value, unit, &notes, Some(&timing));
    Ok(())
}
