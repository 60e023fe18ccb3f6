//! W1: training a large MLP. W5: latency of a small one.

use couplet::optim::{Adam, SGD};
use couplet::prelude::*;

use crate::measure::{emit, time};
use crate::mnist::labels;
use crate::training::{Line, cross_entropy, train as time_steps};

/// W1: 784-1024-1024-10, batch 128, Adam.
pub fn train() -> Result<()> {
    random::set_seed(1);
    let net = MLP::new([1024, 1024, 10]);
    let x = random::current().normal([128, 784], 0.0, 1.0, DType::F32)?;
    let labels = labels(128)?;
    let line = Line { workload: "W1", metric: "train", per_step: 1.0, unit: "steps/s" };
    time_steps(&line, &net, &Adam::new(1e-3), || cross_entropy(&net, &x, &labels))
}

/// W5: 32-64-64-10, batch 1: forward alone, then a training step with SGD.
pub fn latency() -> Result<()> {
    random::set_seed(1);
    let net = MLP::new([64, 64, 10]);
    let x = random::current().normal([1, 32], 0.0, 1.0, DType::F32)?;
    net.forward(&x)?;
    let forward = time(|| net.forward(&x).map(drop))?;
    emit("W5", "forward", forward.seconds * 1e6, "us/call", "", Some(&forward));
    let labels = labels(1)?;
    let line = Line { workload: "W5", metric: "train_step", per_step: 0.0, unit: "us/step" };
    time_steps(&line, &net, &SGD::new(0.01), || cross_entropy(&net, &x, &labels))
}
