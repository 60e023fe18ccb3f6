//! Invents handwritten digits: `cargo run --release --example little_gan_mnist`

#[path = "../mnist/flags.rs"]
mod flags;
#[path = "../mnist/grid.rs"]
mod grid;
#[path = "../mnist/idx.rs"]
mod idx;
#[path = "../mnist/launch.rs"]
mod launch;
mod model;
#[path = "../mnist/page.rs"]
mod page;
#[path = "../mnist/pixels.rs"]
mod pixels;
#[path = "../mnist/progress.rs"]
mod progress;

mod train;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// What the user asked for.
#[derive(Debug, Parser)]
#[command(version, allow_negative_numbers = true)]
struct Args {
    #[command(flatten)]
    flags: flags::Flags,

    /// Folder to draw the invented digits of each epoch into, made if there is none [default: couplet-little-gan-mnist in
    /// the folder for temporary files]
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir().join("couplet-little-gan-mnist"), hide_default_value = true)]
    out: PathBuf,
}

fn main() -> ExitCode {
    let defaults = flags::Defaults {
        about: "Trains two networks against each other until one of them invents handwritten digits",
        epochs: "30",
        batch_size: "50",
        learning_rate: "0.0002",
    };
    let args: Args = flags::parse(&defaults, std::env::args_os()).unwrap_or_else(|error| error.exit());
    launch::launch(args.flags.threads, || train::run(&args.flags, &args.out))
}
