//! Checkpoints for TensorFlow to restore: `tests/python/restore_in_tensorflow.py` reads what this writes.
//!
//! `COUPLET_TENSORFLOW_DIR=DIR cargo test --release --test tensorflow_restores` leaves the files in DIR; else they are read back
//! here and removed.

use std::path::{Path, PathBuf};

use couplet::checkpoint::{Checkpoint, CheckpointReader, Format, save_tensors};
use couplet::optim::{Adam, Momentum, Optimizer};
use couplet::prelude::*;

/// Trains for three steps, so that averages and slots are no longer what they were at the start.
fn train(net: &impl Forward, module: &dyn Module, optimizer: &dyn Optimizer, x: &Tensor) -> Result<()> {
    for _ in 0..3 {
        let tape = GradientTape::new();
        let loss = net.forward_t(x, true)?.square()?.mean()?;
        let params = module.trainable_variables()?;
        optimizer.apply(&tape.gradient(&loss, &params)?, &params)?;
    }
    Ok(())
}

fn save(
    folder: &Path,
    name: &str,
    net: &dyn Module,
    optimizer: &dyn Optimizer,
    results: [(&str, Tensor); 2],
) -> Result<()> {
    let step = Variable::from_tensor("step", Tensor::from(3i32));
    let optimizer = optimizer.as_module();
    let checkpoint = Checkpoint::new()
        .track("net", net)
        .track("optimizer", optimizer)
        .track("step", &step)
        .format(Format::TensorFlow);
    let path = checkpoint.save(folder.join(name).join("ckpt"))?;
    let reader = CheckpointReader::open(&path)?;
    reader.verify()?;
    assert!(reader.has("net") || reader.paths().keys().any(|path| path.starts_with("net/")));
    save_tensors(folder.join(name).join("results.npz"), results)
}

#[test]
fn checkpoints_are_left_for_tensorflow() -> Result<()> {
    let given = std::env::var_os("COUPLET_TENSORFLOW_DIR").map(PathBuf::from);
    let own = std::env::temp_dir().join(format!("couplet-for-tensorflow-{}", std::process::id()));
    let folder = given.clone().unwrap_or_else(|| own.clone());
    random::set_seed(5);
    let normal = |shape: &[usize]| random::current().normal(shape, 0.0, 1.0, DType::F32);

    let (mlp, adam, x) = (MLP::new([8, 6, 3]), Adam::new(0.01), normal(&[4, 5])?);
    train(&mlp, &mlp, &adam, &x)?;
    save(&folder, "mlp", &mlp, &adam, [("y", mlp.forward(&x)?), ("x", x)])?;

    let net = Sequential::new()
        .push(Conv2D::new(4, 3))
        .push(BatchNorm::new(true, true).decay_rate(0.9))
        .push(Tensor::relu)
        .push(Flatten::new())
        .push(Linear::new(2));
    let (momentum, x) = (Momentum::new(0.01, 0.9), normal(&[4, 5, 5, 2])?);
    train(&net, &net, &momentum, &x)?;
    save(&folder, "conv", &net, &momentum, [("y", net.forward_t(&x, false)?), ("x", x)])?;

    let (lstm, x) = (LSTM::new(4), normal(&[6, 3, 5])?);
    let run = |x: &Tensor| Ok(static_unroll(&lstm, x, &lstm.initial_state(3)?, None)?.0);
    let tape = GradientTape::new();
    let loss = run(&x)?.square()?.mean()?;
    let (adam, params) = (Adam::new(0.01), lstm.trainable_variables()?);
    adam.apply(&tape.gradient(&loss, &params)?, &params)?;
    save(&folder, "lstm", &lstm, &adam, [("y", run(&x)?), ("x", x)])?;

    if given.is_none() {
        std::fs::remove_dir_all(&own)
            .map_err(|e| Error::File { path: own.display().to_string(), problem: e.to_string() })?;
    }
    Ok(())
}
