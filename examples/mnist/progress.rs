//! Reports on a training run: a progress bar, a line for each epoch, and the result.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Least time between two plain lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Where the training stands. The bar goes to standard error, the results to `out`.
pub struct Progress<W> {
    out: W,
    epochs: usize,
    images_per_epoch: usize,
    images_done: usize,
    start: Instant,
    view: View,
}

enum View {
    Bar(ProgressBar),
    Plain { last: Instant },
    Quiet,
}

impl<W: Write> Progress<W> {
    pub fn new(epochs: usize, images_per_epoch: usize, quiet: bool, out: W) -> Self {
        let start = Instant::now();
        let view = match quiet {
            true => View::Quiet,
            false if io::stderr().is_terminal() => View::Bar(bar(epochs * images_per_epoch)),
            false => View::Plain { last: start },
        };
        Self { out, epochs, images_per_epoch, images_done: 0, start, view }
    }

    /// One step of the optimiser on `images` images is done; `loss` is that of its batch.
    pub fn step(&mut self, images: usize, loss: f32) {
        self.images_done += images;
        let epoch = (self.images_done - 1) / self.images_per_epoch + 1;
        match &mut self.view {
            View::Bar(bar) => {
                bar.set_message(format!("epoch {epoch}/{}  loss {loss:.4}", self.epochs));
                bar.inc(images as u64);
            }
            View::Plain { last } if last.elapsed() >= PLAIN_INTERVAL => {
                *last = Instant::now();
                let images_per_second = self.images_done as f64 / self.start.elapsed().as_secs_f64();
                let left = self.epochs * self.images_per_epoch - self.images_done;
                eprintln!(
                    "epoch {epoch}/{}  loss {loss:.4}  {images_per_second:.0} images/s  ETA {:.0} s",
                    self.epochs,
                    left as f64 / images_per_second,
                );
            }
            View::Plain { .. } | View::Quiet => {}
        }
    }

    /// An earlier run made so many epochs, and `how` says where they come from.
    ///
    /// # Errors
    /// `out` cannot be written to.
    #[allow(dead_code, reason = "only the examples that classify resume")]
    pub fn resume(&mut self, epochs: usize, how: impl Display) -> io::Result<()> {
        self.images_done = epochs * self.images_per_epoch;
        let line = format!("{how}: epoch {epochs} of {} is done", self.epochs);
        match &self.view {
            View::Bar(bar) => {
                bar.set_position(self.images_done as u64);
                bar.reset_eta();
                bar.suspend(|| writeln!(self.out, "{line}"))
            }
            View::Plain { .. } => writeln!(self.out, "{line}"),
            View::Quiet => Ok(()),
        }
    }

    /// Epoch number `epoch`, from 1, is done, and `report` is what to say of it.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub fn epoch(&mut self, epoch: usize, report: impl Display) -> io::Result<()> {
        let line = format!("epoch {epoch}/{}  {report}", self.epochs);
        match &self.view {
            View::Bar(bar) => bar.suspend(|| writeln!(self.out, "{line}")),
            View::Plain { .. } => writeln!(self.out, "{line}"),
            View::Quiet => Ok(()),
        }
    }

    /// All epochs are done: prints the result, even when quiet.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub fn finish(mut self, result: impl Display) -> io::Result<()> {
        if let View::Bar(bar) = &self.view {
            bar.finish_and_clear();
        }
        writeln!(self.out, "{result}")
    }
}

fn bar(images: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg}  {bar:30}  {pos}/{len}  {per_sec}  ETA {eta}")
        .expect("the template is well-formed")
        .with_key("per_sec", |state: &indicatif::ProgressState, out: &mut dyn std::fmt::Write| {
            // Fails only if `out` does, and then indicatif cannot draw either.
            let _ = write!(out, "{:.0} images/s", state.per_sec());
        });
    ProgressBar::new(images as u64).with_style(style)
}
