//! The flags that all examples on MNIST have.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches};

/// What differs between the examples.
pub struct Defaults {
    /// What the example does, in one line.
    pub about: &'static str,
    pub epochs: &'static str,
    pub batch_size: &'static str,
    pub learning_rate: &'static str,
}

/// What the user asked for. The fields marked `required = false` get their default from [`Defaults`].
#[derive(Debug, Args)]
pub struct Flags {
    /// Number of passes over the training images
    #[arg(long, value_name = "N", value_parser = at_least_one, required = false)]
    pub epochs: usize,

    /// Number of images in one step of the optimiser
    #[arg(long, value_name = "N", value_parser = at_least_one, required = false)]
    pub batch_size: usize,

    /// Step size of the optimiser
    #[arg(long, value_name = "RATE", value_parser = positive, required = false)]
    pub learning_rate: f64,

    /// Seed of the first weights and of the order of the images: the same seed gives the same losses, bit for bit
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// Number of threads to compute on; changes the speed, never the losses [default: one for each core]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,

    /// Print the final result and nothing else
    #[arg(long)]
    pub quiet: bool,

    /// Folder with the four MNIST files, plain or .gz [default: the 5,000 digits in examples/data/mnist-5k]
    #[arg(
        long,
        value_name = "DIR",
        default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/mnist-5k"),
        hide_default_value = true
    )]
    pub data_dir: PathBuf,
}

/// Reads a command line, whose first item is the name of the program, into the flags `T` of an example.
///
/// # Errors
/// A flag is unknown or its value is out of range; or help is asked for.
pub fn parse<T: CommandFactory + FromArgMatches>(
    defaults: &Defaults,
    line: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<T, clap::Error> {
    let command = T::command()
        .about(defaults.about)
        .mut_arg("epochs", |arg| arg.default_value(defaults.epochs))
        .mut_arg("batch_size", |arg| arg.default_value(defaults.batch_size))
        .mut_arg("learning_rate", |arg| arg.default_value(defaults.learning_rate));
    T::from_arg_matches(&command.try_get_matches_from(line)?)
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&number| number >= 1).ok_or("expected a whole number, at least 1".into())
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or("expected a finite number above 0".into())
}
