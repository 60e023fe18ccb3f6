//! Runs an example and tells how it ended.

use std::error::Error;
use std::process::ExitCode;

/// Runs `example` on a number of threads, and prints what is wrong if something is.
pub fn launch(threads: Option<usize>, example: impl FnOnce() -> Result<(), Box<dyn Error>>) -> ExitCode {
    let outcome = match threads {
        Some(threads) => couplet::with_threads(threads, example),
        None => example(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
