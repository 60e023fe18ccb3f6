//! A toy that is stopped and goes on: `cargo run --release --example resume`
//!
//! Fits a line through points of which the next batch is never known in advance. A run makes 50 steps and saves after every tenth.
//! Started again with the same folder, it goes on at step 51, to the same losses as a run without the stop; three checkpoints are
//! kept. `--folder DIR` says where; without it the folder is new and both runs are made here, one after the other.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use couplet::data::Dataset;
use couplet::optim::Adam;
use couplet::prelude::*;

/// Trains for some steps, and goes on where an earlier run stopped.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Folder for the checkpoints [default: a new one, for two runs]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match &args.folder {
        Some(folder) => run(folder),
        None => twice(&std::env::temp_dir().join(format!("couplet-resume-{}", std::process::id()))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Two runs, as if the first process had ended before the second began.
fn twice(folder: &Path) -> Result<()> {
    let outcome = run(folder).and_then(|()| run(folder));
    let removed = std::fs::remove_dir_all(folder);
    outcome?;
    removed.map_err(|e| Error::File { path: folder.display().to_string(), problem: e.to_string() })
}

/// 50 steps more.
fn run(folder: &Path) -> Result<()> {
    random::set_seed(1);
    let net = Linear::new(5);
    let opt = Adam::new(0.1);
    let step = Variable::from_tensor("step", Tensor::from(0i64));
    let batches = points()?.shuffle(1).batches(2);

    let checkpoint = Checkpoint::new()
        .track("net", &net)
        .track("optimizer", &opt)
        .track("step", &step)
        .track("iterator", &batches);
    let manager = CheckpointManager::new(checkpoint, folder)?.max_to_keep(3);
    match manager.restore_or_initialize()? {
        Some(resumed) => println!("{resumed}"),
        None => println!("starting from scratch"),
    }

    let last = step.value().item::<i64>()? + 50;
    while step.value().item::<i64>()? < last {
        for batch in &batches {
            let (x, y) = batch?;
            let tape = GradientTape::new();
            let loss = (net.forward(&x)? - &y)?.abs()?.mean()?;
            let params = net.trainable_variables()?;
            opt.apply(&tape.gradient(&loss, &params)?, &params)?;

            step.assign_add(&Tensor::from(1i64))?;
            let done = step.value().item::<i64>()?;
            if done % 10 == 0
                && let Some(path) = manager.save()?
            {
                println!("step {done}: saved {}, loss {:.2}", path.display(), loss.item::<f32>()?);
            }
            if done == last {
                break;
            }
        }
    }
    Ok(())
}

/// `x` from 0 to 9, and `5 x + (0, 1, 2, 3, 4)`.
fn points() -> Result<Dataset<(Tensor, Tensor)>> {
    let x = Tensor::arange(0.0, 10.0, 1.0, DType::F32)?.reshape([10, 1])?;
    let y = ((&x * 5.0)? + Tensor::arange(0.0, 5.0, 1.0, DType::F32)?)?;
    Dataset::new((x, y))
}
