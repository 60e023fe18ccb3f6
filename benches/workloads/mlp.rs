//! W1: training a large MLP. W5: latency of a small one.

use couplet::optim::{Adam, Optimizer, SGD};
use couplet::prelude::*;

use crate::measure::{emit, time};
use crate::mnist::{labels, train_step};

/// W1: 784-1024-1024-10, batch 128, Adam.
pub fn train() -> Result<()> {
    random::set_seed(1);
    let net = MLP::new([1024, 1024, 10]);
    let x = random::current().normal([128, 784], 0.0, 1.0, DType::F32)?;
    train_step("W1", "train", &net, &Adam::new(1e-3), &x, &labels(128)?, 1.0, "steps/s")
}

/// W5: 32-64-64-10, batch 1: forward alone, then a training step with SGD.
pub fn latency() -> Result<()> {
    random::set_seed(1);
    let net = MLP::new([64, 64, 10]);
    let x = random::current().normal([1, 32], 0.0, 1.0, DType::F32)?;
    net.forward(&x)?;
    let forward = time(|| net.forward(&x).map(drop))?;
    emit("W5", "forward", forward.seconds * 1e6, "us/call", "", Some(&forward));
    let opt: &dyn Optimizer = &SGD::new(0.01);
    train_step("W5", "train_step", &net, opt, &x, &labels(1)?, 0.0, "us/step")
}
