//! One run of an example: the command line, the digits, and the reports on the way.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use couplet::data::{Batches, Dataset};
use couplet::prelude::*;

use super::cli::Args;
use super::flags::{self, Defaults, Flags};
use super::idx::{self, Digits, PIXELS};
use super::launch::launch;
use super::pixels::pixels;
use super::plot::{self, History, Verdict, WORST};
use super::progress::Progress;
use super::wrong::Wrong;

/// Images, `f32[n, 28, 28, 1]` from -1 to 1, and their labels, `u8[n]`.
pub type Batch = (Tensor, Tensor);

/// Done, or what went wrong.
pub type Outcome = Result<(), Box<dyn Error>>;

/// Images, `u8[n, 28, 28, 1]`, and their labels, `u8[n]`.
type Data = Dataset<(Tensor, Tensor)>;

/// What is to be done.
pub struct Task {
    pub flags: Flags,
    /// The training digits; each iteration is an epoch, in another order.
    pub batches: Batches<Batch>,
    /// Where to save, and to resume from.
    #[allow(dead_code, reason = "the functional example has no variables to save")]
    pub checkpoint_dir: Option<PathBuf>,
}

/// What is told about it.
pub struct Report {
    progress: Progress<Stdout>,
    history: History,
    test: Data,
    scores: Vec<Score>,
    learning_rate: f64,
    /// Epochs that an earlier run made.
    earlier: usize,
    /// Loss and number of the images of this epoch.
    sum: (f64, usize),
}

/// Reads the command line, trains as it says, and prints what is wrong if something is.
pub fn main(title: &str, defaults: &Defaults, train: impl FnOnce(&Task, &mut Report) -> Outcome) -> ExitCode {
    let args: Args = flags::parse(defaults, std::env::args_os()).unwrap_or_else(|error| error.exit());
    launch(args.flags.threads, || run(title, args, train))
}

fn run(title: &str, args: Args, train: impl FnOnce(&Task, &mut Report) -> Outcome) -> Outcome {
    let Args { flags, plot, checkpoint_dir } = args;
    let digits = idx::load(&flags.data_dir)?;
    let (data, test) = (dataset(&digits.train)?, dataset(&digits.test)?);
    let mut report = Report {
        progress: Progress::new(flags.epochs, data.len(), flags.quiet, io::stdout()),
        history: History::default(),
        test,
        scores: Vec::new(),
        learning_rate: flags.learning_rate,
        earlier: 0,
        sum: (0.0, 0),
    };
    let batches = data.shuffle(flags.seed).batches(flags.batch_size).map(scale);
    train(&Task { flags, batches, checkpoint_dir }, &mut report)?;

    let Report { progress, history, scores, .. } = report;
    progress.finish(format_args!("test accuracy: {}", count_wrong(&scores)))?;
    match &plot {
        Some(file) => draw(file, title, &history, &scores, &digits.test),
        None => Ok(()),
    }
}

impl Report {
    /// An earlier run made so many epochs; `how` says where they come from. `logits` says what the model makes of images.
    ///
    /// # Errors
    /// As in [`epoch`](Report::epoch).
    #[allow(dead_code, reason = "the functional example has no variables to save")]
    pub fn resume(
        &mut self,
        epochs: usize,
        how: impl Display,
        logits: impl Fn(&Tensor) -> couplet::Result<Tensor>,
    ) -> Outcome {
        self.earlier = epochs;
        self.scores = evaluate(logits, &self.test)?;
        self.progress.resume(epochs, how)?;
        Ok(())
    }

    /// A step on this batch is done; `loss` is the mean before it.
    ///
    /// # Errors
    /// The loss is not finite, so training further makes no sense.
    pub fn step(&mut self, (_, labels): &Batch, loss: f32) -> Outcome {
        if !loss.is_finite() {
            let (epoch, rate) = (self.earlier + self.history.accuracies.len() + 1, self.learning_rate);
            let problem = format!("the loss is {loss} in epoch {epoch}; try a --learning-rate below {rate}");
            return Err(problem.into());
        }
        let count = labels.size();
        self.sum.0 += f64::from(loss) * count as f64;
        self.sum.1 += count;
        self.history.losses.push(loss);
        self.progress.step(count, loss);
        Ok(())
    }

    /// All training digits were seen once more. `logits` says what the model makes of images.
    ///
    /// # Errors
    /// Those of `logits`, or nothing can be printed.
    pub fn epoch(&mut self, logits: impl Fn(&Tensor) -> couplet::Result<Tensor>) -> Outcome {
        let (sum, count) = std::mem::take(&mut self.sum);
        let train_loss = sum / count as f64;
        self.scores = evaluate(logits, &self.test)?;
        let accuracy = count_wrong(&self.scores).accuracy();
        self.history.epoch_losses.push(train_loss);
        self.history.accuracies.push(accuracy);
        let report = format_args!("train loss {train_loss:.4}  test accuracy {accuracy:.2} %");
        self.progress.epoch(self.earlier + self.history.accuracies.len(), report)?;
        Ok(())
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

fn evaluate(logits: impl Fn(&Tensor) -> couplet::Result<Tensor>, test: &Data) -> couplet::Result<Vec<Score>> {
    let mut scores = Vec::with_capacity(test.len());
    for batch in test.batches(250).map(scale) {
        let (images, labels) = batch?;
        let logits = logits(&images)?;
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

fn draw(file: &Path, model: &str, history: &History, scores: &[Score], test: &Digits) -> Outcome {
    let mut worst: Vec<_> = scores.iter().zip(test.images.chunks(PIXELS)).collect();
    worst.sort_by(|(a, _), (b, _)| b.loss.total_cmp(&a.loss));
    let verdict =
        |&(score, image): &(&Score, _)| Verdict { image, label: score.label, predicted: score.predicted };
    let worst: Vec<_> = worst.iter().take(WORST).map(verdict).collect();
    let Wrong { wrong, total } = count_wrong(scores);
    let title = format!("{model} on MNIST: {} of {total} test digits read correctly", total - wrong);
    plot::draw(file, &title, history, &worst).map_err(|error| format!("{}: {error}", file.display()).into())
}
