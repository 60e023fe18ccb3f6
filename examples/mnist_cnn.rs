//! Trains a small ConvNet on handwritten digits:
//! `cargo run --release --example mnist_cnn -- --plot curves.png`

mod mnist;

use std::process::ExitCode;

use couplet::prelude::*;

fn main() -> ExitCode {
    let model = Sequential::new()
        .push(Conv2D::new(32, 3))
        .push(Tensor::relu)
        .push(Conv2D::new(32, 3))
        .push(Tensor::relu)
        .push(Flatten::new())
        .push(Linear::new(10));
    let defaults = mnist::Defaults {
        about: "Trains two convolutions and a linear layer to read handwritten digits",
        epochs: "10",
        batch_size: "32",
        learning_rate: "0.1",
    };
    mnist::main("ConvNet", &defaults, |task, report| task.train(&model, report))
}
