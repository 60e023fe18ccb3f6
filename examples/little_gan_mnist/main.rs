//! Invents handwritten digits: `cargo run --release --example little_gan_mnist`
//!
//! A conditional GAN with transposed convolutions, on the 4,000 training digits in `examples/data`. After each epoch it draws a
//! picture: a row for each digit, and a column for each handwriting. After 10 epochs half of the digits can be read, after 30
//! nearly all, in thin and bold, upright and slanted; some have specks or gaps. The losses end near 0.92 for the discriminator,
//! where guessing has 1.39, and near 1.14 for the generator. About a minute on two cores.

#[path = "../mnist/flags.rs"]
mod flags;
#[path = "../mnist/grid.rs"]
mod grid;
#[path = "../mnist/idx.rs"]
#[allow(dead_code, reason = "nobody reads the test digits: there is nothing to test")]
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
        about: "Trains two networks against each other, until one of them draws handwritten digits",
        epochs: "30",
        batch_size: "50",
        learning_rate: "0.0002",
    };
    let args: Args = flags::parse(&defaults, std::env::args_os()).unwrap_or_else(|error| error.exit());
    launch::launch(args.flags.threads, || train::run(&args.flags, &args.out, std::io::stdout()))
}
