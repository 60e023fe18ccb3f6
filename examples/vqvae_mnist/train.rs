//! The training loop.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use couplet::data::Dataset;
use couplet::prelude::*;

use super::flags::Flags;
use super::model::{DigitVQVAE, NUM_EMBEDDINGS};
use super::progress::Progress;
use super::{grid, idx, pixels};

/// Number of digits in a row of the picture, and of rows.
const COLUMNS: usize = 16;
const ROWS: usize = 4;

/// Trains the model as the flags say, tells `console` how well it does on the test digits, and draws some into the folder
/// `out`.
///
/// # Errors
/// The digits cannot be read, the picture not be written, or the training diverges.
pub fn run(flags: &Flags, out: &Path, console: impl Write) -> std::result::Result<(), Box<dyn Error>> {
    let digits = idx::load(&flags.data_dir)?;
    let train = Dataset::new(pixels::pixels(&digits.train)?)?;
    let test = Dataset::new(pixels::pixels(&digits.test)?)?;
    std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;

    random::set_seed(flags.seed);
    let model = DigitVQVAE::new();
    let opt = optim::Adam::new(flags.learning_rate);
    let variance = variance(&scale(train.tensors().clone())?)?;
    let batches = train.shuffle(flags.seed).batches(flags.batch_size).map(scale);

    let mut progress = Progress::new(flags.epochs, train.len(), flags.quiet, console);
    let mut result = Scores { error: f64::NAN, perplexity: f64::NAN };
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
        result = evaluate(&model, &test)?;
        let Scores { error, perplexity } = result;
        let report = format_args!("test error {error:.5}  perplexity {perplexity:.1} of {NUM_EMBEDDINGS}");
        progress.epoch(epoch, report)?;
    }

    let file = out.join("reconstructions.png");
    draw(&file, &model, &test)?;
    let (Scores { error, perplexity }, file) = (result, file.display());
    let explained = 100.0 * (1.0 - error / variance);
    progress.finish(format_args!(
        "test error: {error:.5} a pixel, {explained:.1} % of the variance explained\n\
         perplexity: {perplexity:.1} of {NUM_EMBEDDINGS}\n\
         drawn: {file}",
    ))?;
    Ok(())
}

/// How well the model does.
struct Scores {
    error: f64,
    perplexity: f64,
}

/// Means over batches of 1,000 pictures.
fn evaluate(model: &DigitVQVAE, test: &Dataset<Tensor>) -> Result<Scores> {
    let mut scores = Scores { error: 0.0, perplexity: 0.0 };
    for images in &test.batches(1000).map(scale) {
        let images = images?;
        let share = images.dim(0)? as f64 / test.len() as f64;
        let y = model.forward_t(&images, false)?;
        scores.error += share * f64::from(y.error.item::<f32>()?);
        scores.perplexity += share * f64::from(y.perplexity.item::<f32>()?);
    }
    Ok(scores)
}

/// Pixels from `0..=255` to `0.0..=1.0`.
fn scale(images: Tensor) -> Result<Tensor> {
    images.cast(DType::F32)? / 255.0
}

/// How much pixels differ from their mean: the error of a model that knows nothing of a picture.
fn variance(images: &Tensor) -> Result<f64> {
    Ok((images - images.mean()?)?.square()?.mean()?.item::<f32>()?.into())
}

/// Draws the first pictures of `test`, and what becomes of each below it.
fn draw(file: &Path, model: &DigitVQVAE, test: &Dataset<Tensor>) -> std::result::Result<(), Box<dyn Error>> {
    let rows = test.batches(COLUMNS).map(scale).into_iter().take(ROWS);
    let bands: Result<Vec<_>> = rows
        .map(|row| {
            let row = row?;
            let drawn = model.forward_t(&row, false)?.reconstruction;
            Ok(vec![row, drawn])
        })
        .collect();
    let title = "Digits that the model never saw, and below each what it draws from 49 numbers";
    grid::draw(file, title, &bands?).map_err(|error| format!("{}: {error}", file.display()).into())
}
