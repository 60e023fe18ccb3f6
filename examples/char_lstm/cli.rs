//! The flags of the example.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;

/// Trains an LSTM to predict the next character of a text, and lets it write
#[derive(Debug, Parser)]
#[command(version, allow_negative_numbers = true)]
pub struct Args {
    /// Number of steps of the optimiser
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value = "1200")]
    pub steps: usize,

    /// Number of places at which the text is read side by side
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value = "16")]
    pub batch_size: usize,

    /// Number of characters that one step reads at each place
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value = "64")]
    pub window: usize,

    /// Number of cells of each of the two layers
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value = "128")]
    pub hidden_size: usize,

    /// Probability with which training drops an output of a layer
    #[arg(long, value_name = "RATE", value_parser = share, default_value = "0.3")]
    pub dropout: f64,

    /// Step size of the optimiser
    #[arg(long, value_name = "RATE", value_parser = positive, default_value = "0.004")]
    pub learning_rate: f64,

    /// Seed of everything random: the same seed gives the same losses and the same sample
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// Number of threads to compute on; changes the speed, never the result [default: one for each core]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,

    /// What the sample begins with
    #[arg(long, value_name = "TEXT", default_value = "Shall I ")]
    pub prompt: String,

    /// Number of characters to write
    #[arg(long, value_name = "N", default_value = "500")]
    pub length: usize,

    /// How freely to write: below 1 likely characters become likelier
    #[arg(long, value_name = "T", value_parser = positive, default_value = "0.6")]
    pub temperature: f64,

    /// Print the sample and nothing else
    #[arg(long)]
    pub quiet: bool,

    /// The text to learn [default: the sonnets in examples/data/sonnets]
    #[arg(
        long,
        value_name = "FILE",
        default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/sonnets/sonnets.txt"),
        hide_default_value = true
    )]
    pub text: PathBuf,
}

impl Args {
    /// Reads a command line, whose first item is the name of the program.
    ///
    /// # Errors
    /// A flag is unknown or its value is out of range; or help is asked for.
    pub fn parse<T: Into<OsString> + Clone>(line: impl IntoIterator<Item = T>) -> Result<Self, clap::Error> {
        Self::try_parse_from(line)
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&number| number >= 1).ok_or("expected a whole number, at least 1".into())
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or("expected a finite number above 0".into())
}

fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number| (0.0..1.0).contains(number)).ok_or("expected a number in [0, 1)".into())
}
