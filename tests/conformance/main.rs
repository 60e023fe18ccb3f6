//! Compares Couplet with numbers that the reference computed.
//!
//! `COUPLET_FIXTURES=DIR cargo test --release --test conformance` runs every case below DIR; `tests/fixtures/sonnet` is
//! the default, and its README explains the format. `-- WORD` runs the cases whose id contains a word.

mod args;
mod case;
mod check;
mod checkpoints;
mod errors;
mod gradients;
mod initializers;
mod mended;
mod modules;
mod ops;
mod optimizers;
mod report;
mod tables;
mod train;
mod values;

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use couplet::Tensor;

use case::Case;
use check::{Check, Findings};
use report::Report;

/// A result, or text that says what is wrong.
pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// What a computation returns, by name.
pub type Outputs = Vec<(String, Tensor)>;

/// An error made of text.
pub fn problem(text: impl Into<String>) -> Box<dyn Error> {
    text.into().into()
}

/// Runs a case, or returns false if its family is not built.
fn run(check: &Check<'_>) -> Outcome<bool> {
    let case = check.case;
    match (case.group(), case.mode.as_str()) {
        (_, "op" | "function") => ops::run(check),
        (_, "call" | "script") | ("rnn" | "dnc", _) => modules::run(check),
        (_, "train") => train::run(check),
        (_, "optimizer") => optimizers::run(check),
        ("initializers", _) => initializers::run(check),
        ("errors", _) => errors::run(check).map(|()| true),
        (_, "table") => tables::run(check),
        _ => Ok(false),
    }
}

/// What a case comes to, or `None` if its family is not built.
fn findings(folder: &Path, case: &Case) -> Option<Findings> {
    let check = Check::new(case);
    let problem = match catch_unwind(AssertUnwindSafe(|| run(&check))) {
        Ok(Ok(true)) => return Some(check.finish()),
        Ok(Ok(false)) => return None,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it panicked; see {}", folder.display()),
    };
    check.fail(problem);
    Some(check.finish())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--list") {
        println!("conformance: test");
        return ExitCode::SUCCESS;
    }
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    let given = std::env::var_os("COUPLET_FIXTURES").map(PathBuf::from);
    let root = given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sonnet"));
    let mut report = Report::default();
    let folders = case::folders(&root).unwrap_or_else(|error| {
        report.broken(error.to_string());
        Vec::new()
    });
    if folders.is_empty() {
        report.broken(format!("{}: there are no cases", root.display()));
    }
    for folder in folders {
        match Case::read(&folder) {
            Ok(case) if words.is_empty() || words.iter().any(|word| case.id.contains(word)) => {
                report.add(&case, findings(&folder, &case));
            }
            Ok(_) => {}
            Err(error) => report.broken(format!("{}: {error}", folder.display())),
        }
    }
    print!("{report}");
    if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
