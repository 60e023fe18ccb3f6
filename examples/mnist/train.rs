//! The training loop for models that hold their variables.

use couplet::prelude::*;

use super::session::{Outcome, Report, Task};

impl Task {
    /// Trains `model` by stochastic gradient descent.
    #[allow(dead_code, reason = "the functional example has a loop of its own")]
    pub fn train(&self, model: &(impl Forward + Module), report: &mut Report) -> Outcome {
        random::set_seed(self.flags.seed);
        let opt = optim::SGD::new(self.flags.learning_rate);
        for _ in 0..self.flags.epochs {
            for batch in &self.batches {
                let batch = batch?;
                let (images, labels) = &batch;
                let tape = GradientTape::new();
                let logits = model.forward(images)?;
                let loss = losses::sparse_softmax_cross_entropy(&logits, labels)?.mean()?;
                let params = model.trainable_variables()?;
                let grads = tape.gradient(&loss, &params)?;
                opt.apply(&grads, &params)?;
                report.step(&batch, loss.item()?)?;
            }
            report.epoch(|images| model.forward(images))?;
        }
        Ok(())
    }
}
