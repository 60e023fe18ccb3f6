//! The training loop.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use couplet::data::Dataset;
use couplet::optim::schedule::PolynomialDecay;
use couplet::prelude::*;

use super::flags::Flags;
use super::idx::CLASSES;
use super::model::{LittleGAN, NOISE};
use super::progress::Progress;
use super::{grid, idx, pixels};

/// Number of pictures of each digit that are drawn.
const COLUMNS: usize = 16;

/// How much faster the generator learns than the discriminator, as in InfoGAN: it has to follow the other.
const GENERATOR_PACE: f64 = 5.0;

/// Trains the model as the flags say, draws what it invents after each epoch into the folder `out`, and tells `console` how it
/// goes.
///
/// # Errors
/// The digits cannot be read, a picture not be written, or the training diverges.
pub fn run(flags: &Flags, out: &Path, console: impl Write) -> std::result::Result<(), Box<dyn Error>> {
    let digits = idx::load(&flags.data_dir)?.train;
    let train = Dataset::new((pixels::pixels(&digits)?, Tensor::from(&digits.labels[..])))?;
    std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;

    random::set_seed(flags.seed);
    let model = LittleGAN::new();
    let batches = train.shuffle(flags.seed).batches(flags.batch_size).map(scale);
    let steps = (flags.epochs * batches.batches_per_epoch()) as u64;
    // A short memory, since the opponent moves (Radford et al. 2016); steps that shrink to 0 let the two settle.
    let adam = |rate: f64| optim::Adam::new(PolynomialDecay::new(rate, steps, 0.0)).beta1(0.5);
    let (d_opt, g_opt) = (adam(flags.learning_rate), adam(GENERATOR_PACE * flags.learning_rate));
    let noise = |count: usize| random::current().normal([count, NOISE], 0.0, 1.0, DType::F32);
    // The same numbers after each epoch, so that one sees how a picture comes to be, and for each digit.
    let shown = noise(COLUMNS)?;

    let file = |epoch: usize| out.join(format!("epoch_{epoch:03}.png"));
    let mut progress = Progress::new(flags.epochs, train.len(), flags.quiet, console);
    for epoch in 1..=flags.epochs {
        let (mut d_sum, mut g_sum) = (0.0, 0.0);
        for batch in &batches {
            let (images, labels) = batch?;
            let size = images.dim(0)?;
            let (d_noise, g_noise) = (noise(size)?, noise(size)?);
            let d_loss =
                step(&d_opt, model.discriminator(), || model.discriminator_loss(&images, &labels, &d_noise))?;
            let g_loss = step(&g_opt, model.generator(), || model.generator_loss(&labels, &g_noise))?;
            if !(d_loss + g_loss).is_finite() {
                let (losses, rate) = (format!("the losses are {d_loss} and {g_loss}"), flags.learning_rate);
                return Err(format!("{losses} in epoch {epoch}; try a --learning-rate below {rate}").into());
            }
            (d_sum, g_sum) = (d_sum + d_loss, g_sum + g_loss);
            progress.step(size, d_loss);
        }
        draw(&file(epoch), epoch, &model, &shown)?;
        let count = batches.batches_per_epoch() as f32;
        let (d_loss, g_loss) = (d_sum / count, g_sum / count);
        progress.epoch(epoch, format_args!("discriminator loss {d_loss:.3}  generator loss {g_loss:.3}"))?;
    }
    progress.finish(format_args!("drawn: {}", file(flags.epochs).display()))?;
    Ok(())
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
fn scale((images, labels): (Tensor, Tensor)) -> Result<(Tensor, Tensor)> {
    Ok(((images.cast(DType::F32)? / 255.0)?, labels))
}

/// Draws a row of each digit; a column is made of one row of `noise`.
fn draw(
    file: &Path,
    epoch: usize,
    model: &LittleGAN,
    noise: &Tensor,
) -> std::result::Result<(), Box<dyn Error>> {
    let row = |digit: usize| model.generate(noise, &Tensor::from(vec![digit as i64; COLUMNS]), false);
    let rows = (0..CLASSES).map(row).collect::<Result<Vec<_>>>()?;
    let title = format!("Invented by the generator after {epoch} epochs");
    grid::draw(file, &title, &[rows]).map_err(|error| format!("{}: {error}", file.display()).into())
}
