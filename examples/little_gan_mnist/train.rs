//! The training loop.

use std::error::Error;
use std::io;
use std::path::Path;

use couplet::data::Dataset;
use couplet::optim::schedule::PolynomialDecay;
use couplet::prelude::*;

use super::flags::Flags;
use super::model::{LittleGAN, NOISE};
use super::progress::Progress;
use super::{grid, idx, pixels};

/// Number of digits in a row of a picture, and of rows.
const COLUMNS: usize = 16;
const ROWS: usize = 8;

/// Trains the model as the flags say, and draws what it invents after each epoch into the folder `out`.
///
/// # Errors
/// The digits cannot be read, a picture not be written, or the training diverges.
pub fn run(flags: &Flags, out: &Path) -> std::result::Result<(), Box<dyn Error>> {
    let train = Dataset::new(pixels::pixels(&idx::load(&flags.data_dir)?.train)?)?;
    std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;

    random::set_seed(flags.seed);
    let model = LittleGAN::new();
    let batches = train.shuffle(flags.seed).batches(flags.batch_size).drop_remainder(true).map(scale);
    let steps = (flags.epochs * batches.batches_per_epoch()) as u64;
    // No memory of gradients against an opponent that has changed since; steps that end at 0 let the two settle.
    let adam = |rate: f64| optim::Adam::new(PolynomialDecay::new(rate, steps, 0.0)).beta1(0.5);
    let (d_opt, g_opt) = (adam(flags.learning_rate), adam(flags.learning_rate));
    let noise = |count: usize| random::current().normal([count, NOISE], 0.0, 1.0, DType::F32);
    // The same numbers after each epoch: each place of the picture shows how one digit comes to be.
    let shown = noise(COLUMNS * ROWS)?;

    let mut progress = Progress::new(flags.epochs, train.len(), flags.quiet, io::stdout());
    for epoch in 1..=flags.epochs {
        let (mut d_sum, mut g_sum, mut count) = (0.0, 0.0, 0.0);
        for images in &batches {
            let images = images?;
            let size = images.dim(0)?;
            let noise = [noise(size)?, noise(size)?];
            let d_loss =
                step(&d_opt, model.discriminator(), || model.discriminator_loss(&images, &noise[0]))?;
            let g_loss = step(&g_opt, model.generator(), || model.generator_loss(&noise[1]))?;
            if !(d_loss.is_finite() && g_loss.is_finite()) {
                let rate = flags.learning_rate;
                return Err(format!(
                    "a loss is not finite in epoch {epoch}; try a --learning-rate below {rate}"
                )
                .into());
            }
            (d_sum, g_sum, count) = (d_sum + d_loss, g_sum + g_loss, count + 1.0);
            progress.step(size, d_loss);
        }
        let file = out.join(format!("epoch_{epoch:03}.png"));
        draw(&file, epoch, &model.generate(&shown, false)?)?;
        let (d_loss, g_loss) = (d_sum / count, g_sum / count);
        progress.epoch(epoch, format_args!("discriminator loss {d_loss:.3}  generator loss {g_loss:.3}"))?;
    }
    Ok(progress
        .finish(format_args!("drawn: {}", out.join(format!("epoch_{:03}.png", flags.epochs)).display()))?)
}

/// One step of an optimiser on the variables of one of the two networks: the other stays as it is.
fn step(opt: &optim::Adam, network: &Sequential, loss: impl FnOnce() -> Result<Tensor>) -> Result<f32> {
    let tape = GradientTape::new();
    let loss = loss()?;
    let params = network.trainable_variables()?;
    opt.apply(&tape.gradient(&loss, &params)?, &params)?;
    loss.item()
}

/// Pixels from `0..=255` to `0.0..=1.0`.
fn scale(images: Tensor) -> Result<Tensor> {
    images.cast(DType::F32)? / 255.0
}

fn draw(file: &Path, epoch: usize, images: &Tensor) -> std::result::Result<(), Box<dyn Error>> {
    let rows: Result<Vec<_>> = (0..ROWS).map(|row| images.narrow(0, row * COLUMNS, COLUMNS)).collect();
    let title = format!("Invented by the generator after {epoch} epochs");
    grid::draw(file, &title, &[rows?]).map_err(|error| format!("{}: {error}", file.display()).into())
}
