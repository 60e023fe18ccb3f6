//! Trains a multi-layer perceptron on handwritten digits:
//! `cargo run --release --example mnist_mlp -- --plot curves.png`

mod mnist;

use std::process::ExitCode;

use couplet::prelude::*;

fn main() -> ExitCode {
    let model = Sequential::new().push(Flatten::new()).push(MLP::new([512, 256, 10]));
    let defaults = mnist::Defaults {
        about: "Trains three linear layers with ReLU between them to read handwritten digits",
        epochs: "20",
        batch_size: "32",
        learning_rate: "0.1",
    };
    mnist::main("MLP", &defaults, |task, report| task.train(&model, report))
}
