//! The flags of the examples that classify.

use std::path::{Path, PathBuf};

use clap::Parser;

use super::flags::Flags;

/// What the user asked for.
#[derive(Debug, Parser)]
#[command(version, allow_negative_numbers = true)]
pub struct Args {
    #[command(flatten)]
    pub flags: Flags,

    /// Draw the learning curves and the twelve worst-classified digits into this PNG file
    #[arg(long, value_name = "FILE.png", value_parser = png_file)]
    pub plot: Option<PathBuf>,

    /// Save after each epoch into this folder, and go on where an earlier run with the same folder stopped
    #[arg(long, value_name = "DIR")]
    pub checkpoint_dir: Option<PathBuf>,
}

/// Checked before the training rather than after it.
fn png_file(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    if !file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png")) {
        return Err("expected a file name that ends in .png".into());
    }
    match file.parent() {
        Some(folder) if folder != Path::new("") && !folder.is_dir() => {
            Err(format!("there is no folder {}", folder.display()))
        }
        _ => Ok(file),
    }
}
