//! Reports on a training run: a progress bar, and a line now and then.

use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};

/// Where the training stands. The bar goes to standard error, the results to `out`.
pub struct Progress<W> {
    out: W,
    steps: usize,
    bar: Option<ProgressBar>,
    quiet: bool,
}

impl<W: Write> Progress<W> {
    pub fn new(steps: usize, quiet: bool, out: W) -> Self {
        let bar = (!quiet && io::stderr().is_terminal()).then(|| bar(steps));
        Self { out, steps, bar, quiet }
    }

    /// One step of the optimiser is done.
    pub fn step(&self, loss: f32) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("loss {loss:.3}"));
            bar.inc(1);
        }
    }

    /// The losses after a number of steps.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub fn losses(&mut self, step: usize, train: f64, held_out: f64) -> io::Result<()> {
        let steps = self.steps;
        let line = format!("step {step}/{steps}  train loss {train:.3}  held-out loss {held_out:.3}");
        self.line(&line)
    }

    /// All steps are done: prints the result, and the sample even when quiet.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub fn finish(mut self, held_out: f64, prompt: &str, written: &str) -> io::Result<()> {
        let bits = held_out / std::f64::consts::LN_2;
        self.line(&format!("held-out loss: {held_out:.3} nats or {bits:.2} bits a character\n"))?;
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        writeln!(self.out, "{prompt}{written}")
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        match &self.bar {
            _ if self.quiet => Ok(()),
            Some(bar) => bar.suspend(|| writeln!(self.out, "{line}")),
            None => writeln!(self.out, "{line}"),
        }
    }
}

fn bar(steps: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg}  {bar:30}  {pos}/{len} steps  ETA {eta}")
        .expect("the template is well-formed");
    ProgressBar::new(steps as u64).with_style(style)
}
