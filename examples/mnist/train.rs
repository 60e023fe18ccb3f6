//! The training loop that the examples share.

use std::error::Error;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use couplet::data::Dataset;
use couplet::prelude::*;

use super::cli::Args;
use super::flags::{self, Defaults};
use super::idx::{self, Digits, PIXELS};
use super::launch::launch;
use super::pixels::pixels;
use super::plot::{self, History, Verdict, WORST};
use super::progress::Progress;
use super::wrong::Wrong;

/// Images, `u8[n, 28, 28, 1]`, and their labels, `u8[n]`.
type Data = Dataset<(Tensor, Tensor)>;

/// Reads the command line, trains `model` as it says, and prints what is wrong if something is.
pub fn main(title: &str, defaults: &Defaults, model: impl Forward + Module) -> ExitCode {
    let args: Args = flags::parse(defaults, std::env::args_os()).unwrap_or_else(|error| error.exit());
    launch(args.flags.threads, || run(title, &args, &model))
}

fn run(title: &str, args: &Args, model: &(impl Forward + Module)) -> Result<(), Box<dyn Error>> {
    let flags = &args.flags;
    let digits = idx::load(&flags.data_dir)?;
    let (train, test) = (dataset(&digits.train)?, dataset(&digits.test)?);

    random::set_seed(flags.seed);
    let opt = optim::SGD::new(flags.learning_rate);
    let batches = train.shuffle(flags.seed).batches(flags.batch_size).map(scale);

    let mut progress = Progress::new(flags.epochs, train.len(), flags.quiet, io::stdout());
    let mut history = History::default();
    let mut scores = Vec::new();
    for epoch in 1..=flags.epochs {
        let mut sum = 0.0;
        for batch in &batches {
            let (images, labels) = batch?;
            let tape = GradientTape::new();
            let logits = model.forward(&images)?;
            let loss = losses::sparse_softmax_cross_entropy(&logits, &labels)?.mean()?;
            let params = model.trainable_variables()?;
            let grads = tape.gradient(&loss, &params)?;
            opt.apply(&grads, &params)?;

            let (count, loss) = (labels.size(), loss.item::<f32>()?);
            if !loss.is_finite() {
                let rate = flags.learning_rate;
                return Err(format!(
                    "the loss is {loss} in epoch {epoch}; try a --learning-rate below {rate}"
                )
                .into());
            }
            sum += f64::from(loss) * count as f64;
            history.losses.push(loss);
            progress.step(count, loss);
        }
        let train_loss = sum / train.len() as f64;
        scores = evaluate(model, &test)?;
        let accuracy = count_wrong(&scores).accuracy();
        let report = format_args!("train loss {train_loss:.4}  test accuracy {accuracy:.2} %");
        progress.epoch(epoch, report)?;
        history.epoch_losses.push(train_loss);
        history.accuracies.push(accuracy);
    }
    progress.finish(format_args!("test accuracy: {}", count_wrong(&scores)))?;

    match &args.plot {
        Some(file) => draw(file, title, &history, &scores, &digits.test),
        None => Ok(()),
    }
}

fn dataset(digits: &Digits) -> couplet::Result<Data> {
    Dataset::new((pixels(digits)?, Tensor::from(&digits.labels[..])))
}

/// Pixels from `0..=255` to `-1.0..=1.0`.
fn scale((images, labels): (Tensor, Tensor)) -> couplet::Result<(Tensor, Tensor)> {
    let images = ((images.cast(DType::F32)? / 255.0)? - 0.5)? * 2.0;
    Ok((images?, labels))
}

/// What the model says of one test digit.
struct Score {
    label: usize,
    predicted: usize,
    loss: f32,
}

fn evaluate(model: &impl Forward, test: &Data) -> couplet::Result<Vec<Score>> {
    let mut scores = Vec::with_capacity(test.len());
    for batch in test.batches(250).map(scale) {
        let (images, labels) = batch?;
        let logits = model.forward(&images)?;
        let losses = losses::sparse_softmax_cross_entropy(&logits, &labels)?.to_vec::<f32>()?;
        let predicted = logits.argmax(-1)?.to_vec::<i64>()?;
        for ((label, predicted), loss) in labels.to_vec::<u8>()?.into_iter().zip(predicted).zip(losses) {
            scores.push(Score { label: label.into(), predicted: predicted as usize, loss });
        }
    }
    Ok(scores)
}

fn count_wrong(scores: &[Score]) -> Wrong {
    let wrong = scores.iter().filter(|score| score.predicted != score.label).count();
    Wrong { wrong, total: scores.len() }
}

fn draw(
    file: &Path,
    model: &str,
    history: &History,
    scores: &[Score],
    test: &Digits,
) -> Result<(), Box<dyn Error>> {
    let mut worst: Vec<_> = scores.iter().zip(test.images.chunks(PIXELS)).collect();
    worst.sort_by(|(a, _), (b, _)| b.loss.total_cmp(&a.loss));
    let verdict =
        |&(score, image): &(&Score, _)| Verdict { image, label: score.label, predicted: score.predicted };
    let worst: Vec<_> = worst.iter().take(WORST).map(verdict).collect();
    let Wrong { wrong, total } = count_wrong(scores);
    let title = format!("{model} on MNIST: {} of {total} test digits read correctly", total - wrong);
    plot::draw(file, &title, history, &worst).map_err(|error| format!("{}: {error}", file.display()).into())
}
