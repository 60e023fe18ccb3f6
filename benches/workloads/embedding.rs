//! W11: training of an embedding table, of which each step reads and updates some rows.

use couplet::optim::SGD;
use couplet::prelude::*;

use crate::measure::{emit, time};

const WORDS: usize = 50_000;
const CHANNELS: usize = 128;
const IDS: usize = 4096;

/// A lookup, mean squared error, its sparse gradient and a step of SGD.
pub fn run() -> Result<()> {
    random::set_seed(1);
    let normal = |shape: [usize; 2]| random::current().normal(shape, 0.0, 1.0, DType::F32);
    let table = Variable::from_tensor("embeddings", normal([WORDS, CHANNELS])?);
    let ids = random::current().integers([IDS], 0, WORDS as i64, DType::I64)?;
    let target = normal([IDS, CHANNELS])?;
    let optimizer = SGD::new(0.1);
    let mut losses: Vec<Tensor> = Vec::new();
    let timing = time(|| {
        let tape = GradientTape::new();
        let y = table.value().gather(&ids, 0)?;
        let loss = losses::mean_squared_error(&y, &target)?.mean()?;
        let gradients = tape.gradient(&loss, &[&table])?;
        assert!(matches!(gradients[0], Some(Gradient::Sparse(_))), "a lookup has a sparse gradient");
        losses.push(loss);
        optimizer.apply(&gradients, std::slice::from_ref(&table))
    })?;
    let loss = |at: usize| losses[at].item::<f32>();
    let steps = losses.len();
    let notes =
        format!("params {}; loss {:.7} -> {:.7} after {steps}", WORDS * CHANNELS, loss(0)?, loss(steps - 1)?);
    emit("W11", "train", 1.0 / timing.seconds, "steps/s", &notes, Some(&timing));
    Ok(())
}
