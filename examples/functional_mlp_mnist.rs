//! Trains the perceptron of `mnist_mlp` with pure functions: parameters go in, new ones come out.
//! `cargo run --release --example functional_mlp_mnist -- --plot curves.png`
//!
//! It reads 95.7 % of the test digits after 20 epochs. The losses are those of `mnist_mlp`, bit for bit.

mod mnist;

use std::process::ExitCode;

use couplet::functional::{self, Params, State};
use couplet::prelude::*;

use mnist::session::{Batch, Outcome, Report, Task};

fn main() -> ExitCode {
    let defaults = mnist::Defaults {
        about: "Trains three linear layers with ReLU between them, as pure functions, to read handwritten digits",
        epochs: "20",
        batch_size: "32",
        learning_rate: "0.1",
    };
    mnist::main("Functional MLP", &defaults, train)
}

fn train(task: &Task, report: &mut Report) -> Outcome {
    if task.checkpoint_dir.is_some() {
        return Err("--checkpoint-dir saves variables, and this example has none; see mnist_mlp".into());
    }
    // The module says how to compute. It holds no values: they are the argument `params`.
    let net = Sequential::new().push(Flatten::new()).push(MLP::new([512, 256, 10]));
    let logits = functional::transform(&net, |net, images: &Tensor| net.forward(images));

    // The functions: the mean loss of a batch, and one step down its gradient.
    let loss = |params: &Params, (images, labels): &Batch| {
        losses::sparse_softmax_cross_entropy(&logits.apply(params, images)?, labels)?.mean()
    };
    let optimizer = functional::sgd(task.flags.learning_rate);
    let update = |params: Params, state: State, batch: &Batch| -> Result<(f32, Params, State)> {
        let (loss, grads) = functional::value_and_grad(|params| loss(params, batch), &params)?;
        let (params, state) = optimizer.apply(state, &grads, params)?;
        Ok((loss.item()?, params, state))
    };

    // The values, which these functions take and return. All that is random comes from the seed.
    let generator = Generator::seed(task.flags.seed);
    let mut params = logits.init(&generator, &Tensor::zeros([1, 28, 28, 1], DType::F32)?)?;
    let mut state = optimizer.init(&params)?;

    for _ in 0..task.flags.epochs {
        for batch in &task.batches {
            let batch = batch?;
            let loss;
            (loss, params, state) = update(params, state, &batch)?;
            report.step(&batch, loss)?;
        }
        report.epoch(|images| logits.apply(&params, images))?;
    }
    Ok(())
}
