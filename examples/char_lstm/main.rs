//! Learns to write sonnets, letter by letter: `cargo run --release --example char_lstm`

mod cli;
mod model;
mod progress;
mod text;
mod train;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args = cli::Args::parse(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let run = || train::run(&args);
    let outcome = match args.threads {
        Some(threads) => couplet::with_threads(threads, run),
        None => run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
