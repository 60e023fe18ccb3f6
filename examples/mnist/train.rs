//! The training loop for models that hold their variables.

use couplet::prelude::*;

use super::session::{Outcome, Report, Task};

impl Task {
    /// Trains `model` by stochastic gradient descent.
    #[allow(dead_code, reason = "the functional example has a loop of its own")]
    pub fn train(&self, model: &(impl Forward + Module), report: &mut Report) -> Outcome {
        random::set_seed(self.flags.seed);
        let opt = optim::SGD::new(self.flags.learning_rate);
        let done = Variable::from_tensor("epochs", Tensor::from(0i64));
        let checkpoint = Checkpoint::new()
            .track("model", model)
            .track("optimizer", &opt)
            .track("batches", &self.batches)
            .track("epochs", &done);
        let manager = self.checkpoint_dir.as_ref().map(|folder| CheckpointManager::new(checkpoint, folder));
        let manager = manager.transpose()?;
        if let Some(manager) = &manager
            && let Some(resumed) = manager.restore_or_initialize()?
        {
            let epochs = done.value().item::<i64>()? as usize;
            report.resume(epochs, &resumed, |images| model.forward(images))?;
            resumed.status.assert_existing_objects_matched()?;
        }
        for _ in done.value().item::<i64>()?..self.flags.epochs as i64 {
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
            done.assign_add(&Tensor::from(1i64))?;
            if let Some(manager) = &manager {
                manager.save()?;
            }
        }
        Ok(())
    }
}
