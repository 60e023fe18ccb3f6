//! W2 and W2i: training and inference of the MNIST ConvNet.

use couplet::optim::SGD;
use couplet::prelude::*;

use crate::measure::{emit, emit_memory, resident, time};
use crate::training::{Line, cross_entropy, train as time_steps};

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

/// W2: batch 128, SGD; then the memory it took.
pub fn train() -> Result<()> {
    let at_start = resident();
    random::set_seed(1);
    let x = random::current().uniform([128, 28, 28, 1], 0.0, 1.0, DType::F32)?;
    let (net, labels) = (network(), labels(128)?);
    let line = Line { workload: "W2", metric: "train", per_step: 128.0, unit: "images/s" };
    time_steps(&line, &net, &SGD::new(0.1), || cross_entropy(&net, &x, &labels))?;
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
