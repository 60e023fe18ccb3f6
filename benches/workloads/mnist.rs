//! W2 and W2i: training and inference of the MNIST ConvNet.

use couplet::optim::{Optimizer, SGD};
use couplet::prelude::*;

use crate::measure::{emit, emit_memory, resident, time};

fn network() -> Sequential {
    Sequential::new()
        .push(Conv2D::new(32, 3))
        .push(Tensor::relu)
        .push(Conv2D::new(32, 3))
        .push(Tensor::relu)
        .push(Flatten::new())
        .push(Linear::new(10))
}

/// `n` labels in 0..10.
pub fn labels(n: usize) -> Result<Tensor> {
    random::current().integers([n], 0, 10, DType::I64)
}

/// Times a training step: forward, loss, backward and update.
#[allow(clippy::too_many_arguments, reason = "one line of the workload table")]
pub fn train_step(
    workload: &str,
    metric: &str,
    net: &(impl Forward + Module),
    opt: &dyn Optimizer,
    x: &Tensor,
    labels: &Tensor,
    per_step: f64,
    unit: &str,
) -> Result<()> {
    let (mut first, mut last, mut norm, mut steps) = (f32::NAN, f32::NAN, 0.0, 0);
    let timing = time(|| {
        let tape = GradientTape::new();
        let logits = net.forward(x)?;
        let loss = losses::sparse_softmax_cross_entropy(&logits, labels)?.mean()?;
        let params = net.trainable_variables()?;
        let grads = tape.gradient(&loss, &params)?;
        opt.apply(&grads, &params)?;
        last = loss.item::<f32>()?;
        if steps == 0 {
            first = last;
            for gradient in grads.iter().flatten() {
                norm += gradient.dense()?.square()?.sum()?.item::<f32>()?;
            }
        }
        steps += 1;
        Ok(())
    })?;
    let params: usize = net.trainable_variables()?.iter().map(|v| v.shape().size()).sum();
    let notes = format!(
        "params {params}; loss {first:.7} -> {last:.7} after {steps} steps; |grad| {:.3}",
        norm.sqrt()
    );
    let value = if unit.starts_with("us") { timing.seconds * 1e6 } else { per_step / timing.seconds };
    emit(workload, metric, value, unit, &notes, Some(&timing));
    Ok(())
}

/// W2: batch 128, SGD; then the memory it took.
pub fn train() -> Result<()> {
    let at_start = resident();
    random::set_seed(1);
    let x = random::current().uniform([128, 28, 28, 1], 0.0, 1.0, DType::F32)?;
    train_step("W2", "train", &network(), &SGD::new(0.1), &x, &labels(128)?, 128.0, "images/s")?;
    emit_memory("W2", at_start);
    Ok(())
}

/// W2i: forward of 1000 images.
pub fn infer() -> Result<()> {
    random::set_seed(1);
    let net = network();
    let x = random::current().uniform([1000, 28, 28, 1], 0.0, 1.0, DType::F32)?;
    let timing = time(|| net.forward(&x).map(drop))?;
    emit("W2i", "infer_b1000", 1000.0 / timing.seconds, "images/s", "", Some(&timing));
    Ok(())
}
