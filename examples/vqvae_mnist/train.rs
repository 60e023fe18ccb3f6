//! The training loop.

use std::error::Error;
use std::io;
use std::path::Path;

use couplet::data::Dataset;
use couplet::prelude::*;

use super::flags::Flags;
use super::model::{NUM_EMBEDDINGS, VQVAE};
use super::progress::Progress;
use super::{grid, idx, pixels};

/// Number of digits in a row of the picture, and of rows.
const COLUMNS: usize = 16;
const ROWS: usize = 4;

/// Trains the model as the flags say, prints how well it does on the test digits, and draws some into the folder `out`.
///
/// # Errors
/// The digits cannot be read, the picture not be written, or the training diverges.
pub fn run(flags: &Flags, out: &Path) -> std::result::Result<(), Box<dyn Error>> {
    let digits = idx::load(&flags.data_dir)?;
    let train = Dataset::new(pixels::pixels(&digits.train)?)?;
    let test = scale(pixels::pixels(&digits.test)?)?;
    std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;

    random::set_seed(flags.seed);
    let model = VQVAE::new();
    let opt = optim::Adam::new(flags.learning_rate);
    let variance = variance(&scale(train.tensors().clone())?)?;
    let batches = train.shuffle(flags.seed).batches(flags.batch_size).map(scale);

    let mut progress = Progress::new(flags.epochs, train.len(), flags.quiet, io::stdout());
    for epoch in 1..=flags.epochs {
        for images in &batches {
            let images = images?;
            let tape = GradientTape::new();
            let y = model.forward_t(&images, true)?;
            let loss = ((&y.error / variance)? + &y.commitment)?;
            let params = model.trainable_variables()?;
            opt.apply(&tape.gradient(&loss, &params)?, &params)?;

            let loss = loss.item::<f32>()?;
            if !loss.is_finite() {
                let rate = flags.learning_rate;
                return Err(format!(
                    "the loss is {loss} in epoch {epoch}; try a --learning-rate below {rate}"
                )
                .into());
            }
            progress.step(images.dim(0)?, loss);
        }
        let y = model.forward_t(&test, false)?;
        let (error, perplexity) = (y.error.item::<f32>()?, y.perplexity.item::<f32>()?);
        progress.epoch(
            epoch,
            format_args!("test error {error:.5}  perplexity {perplexity:.1} of {NUM_EMBEDDINGS}"),
        )?;
    }

    let file = out.join("reconstructions.png");
    let y = model.forward_t(&test, false)?;
    let error = y.error.item::<f32>()?;
    let kept = 100.0 * (1.0 - f64::from(error) / variance);
    progress.finish(format_args!(
        "test error: {error:.5} a pixel, {kept:.1} % of the variance is kept; perplexity: {:.1} of {NUM_EMBEDDINGS}\n\
         drawn: {}",
        y.perplexity.item::<f32>()?,
        file.display(),
    ))?;
    draw(&file, &test, &y.reconstruction)
}

/// Pixels from `0..=255` to `0.0..=1.0`.
fn scale(images: Tensor) -> Result<Tensor> {
    images.cast(DType::F32)? / 255.0
}

/// How much pixels differ from their mean: the error of a model that knows nothing of a picture.
fn variance(images: &Tensor) -> Result<f64> {
    let images = images.cast(DType::F64)?;
    (&images - images.mean()?)?.square()?.mean()?.item()
}

/// Draws the first pictures of `images`, and what became of each below it.
fn draw(file: &Path, images: &Tensor, reconstructed: &Tensor) -> std::result::Result<(), Box<dyn Error>> {
    let rows = ROWS.min(images.dim(0)? / COLUMNS);
    let row = |of: &Tensor, row: usize| of.narrow(0, row * COLUMNS, COLUMNS);
    let bands: Result<Vec<_>> =
        (0..rows).map(|i| Ok(vec![row(images, i)?, row(reconstructed, i)?])).collect();
    let title = format!(
        "Digits that the model never saw; below each, what it drew of 49 numbers below {NUM_EMBEDDINGS}"
    );
    grid::draw(file, &title, &bands?).map_err(|error| format!("{}: {error}", file.display()).into())
}
