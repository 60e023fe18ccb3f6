//! W4: training of a small residual network on images of 32 x 32.

use couplet::optim::Momentum;
use couplet::prelude::*;

use crate::measure::{emit_memory, resident};
use crate::mnist::labels;
use crate::training::{Line, cross_entropy, train as time_steps};

/// A convolution without bias, and batch normalisation.
#[derive(Module)]
struct ConvNorm {
    scope: Scope,
    conv: Conv2D,
    norm: BatchNorm,
}

impl ConvNorm {
    fn new(channels: usize, kernel: usize, stride: usize) -> Self {
        let scope = Scope::of::<Self>();
        let _in = scope.enter();
        let conv = Conv2D::new(channels, kernel).stride(stride).with_bias(false);
        ConvNorm { conv, norm: BatchNorm::new(true, true).decay_rate(0.9), scope }
    }
}

#[scoped]
impl Forward for ConvNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_t(x, true)
    }

    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        self.norm.forward_t_owned(self.conv.forward(x)?, is_training)
    }
}

/// Two convolutions around which the input passes, projected where the shape changes.
#[derive(Module)]
struct BasicBlock {
    scope: Scope,
    first: ConvNorm,
    second: ConvNorm,
    shortcut: Option<ConvNorm>,
}

impl BasicBlock {
    fn new(channels: usize, stride: usize) -> Self {
        let scope = Scope::of::<Self>();
        let _in = scope.enter();
        BasicBlock {
            first: ConvNorm::new(channels, 3, stride),
            second: ConvNorm::new(channels, 3, 1),
            shortcut: (stride > 1).then(|| ConvNorm::new(channels, 1, stride)),
            scope,
        }
    }
}

#[scoped]
impl Forward for BasicBlock {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.second.forward(&self.first.forward(x)?.relu()?)?;
        let passed = match &self.shortcut {
            Some(shortcut) => shortcut.forward(x)?,
            None => x.clone(),
        };
        (y + passed)?.relu()
    }
}

/// W4: ResNet-18 for CIFAR, batch 16, momentum; then the memory it took.
pub fn train() -> Result<()> {
    let at_start = resident();
    random::set_seed(1);
    let mut net = Sequential::new().push(ConvNorm::new(64, 3, 1)).push(Tensor::relu);
    for channels in [64, 128, 256, 512] {
        let stride = if channels == 64 { 1 } else { 2 };
        net = net.push(BasicBlock::new(channels, stride)).push(BasicBlock::new(channels, 1));
    }
    let net = net.push(|x: &Tensor| x.global_average_pool(false)).push(Linear::new(10));
    let x = random::current().normal([16, 32, 32, 3], 0.0, 1.0, DType::F32)?;
    let labels = labels(16)?;
    let line = Line { workload: "W4", metric: "train", per_step: 16.0, unit: "images/s" };
    time_steps(&line, &net, &Momentum::new(0.01, 0.9), || cross_entropy(&net, &x, &labels))?;
    emit_memory("W4", at_start);
    Ok(())
}
