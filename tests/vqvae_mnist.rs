//! The example that writes digits as a few numbers.

#[path = "../examples/mnist/flags.rs"]
mod flags;
#[path = "../examples/mnist/grid.rs"]
mod grid;
#[path = "../examples/mnist/idx.rs"]
mod idx;
#[path = "../examples/vqvae_mnist/model.rs"]
mod model;
#[path = "../examples/mnist/page.rs"]
mod page;
#[path = "../examples/mnist/pixels.rs"]
mod pixels;
#[path = "../examples/mnist/progress.rs"]
mod progress;
#[path = "../examples/vqvae_mnist/train.rs"]
mod train;

use std::fs;
use std::path::PathBuf;

use clap::Parser;
use couplet::prelude::*;
use flags::{Defaults, Flags};
use model::{DigitVQVAE, NUM_EMBEDDINGS};

#[derive(Debug, Parser)]
struct Args {
    #[command(flatten)]
    flags: Flags,
}

fn flags(line: &[&str]) -> Flags {
    let defaults = Defaults { about: "Test", epochs: "1", batch_size: "100", learning_rate: "0.002" };
    flags::parse::<Args>(&defaults, [&["vqvae"], line].concat()).unwrap().flags
}

/// A folder that is not there yet.
fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("couplet-vqvae-{}-{name}", std::process::id()))
}

#[test]
fn an_epoch_tells_and_draws_the_same_on_one_thread_and_on_two() {
    let run = |threads: usize| {
        let (out, mut console) = (folder(&threads.to_string()), Vec::new());
        couplet::with_threads(threads, || train::run(&flags(&[]), &out, &mut console)).unwrap();
        let picture = fs::read(out.join("reconstructions.png")).unwrap();
        fs::remove_dir_all(&out).unwrap();
        let console = String::from_utf8(console).unwrap();
        (console.replace(&*out.to_string_lossy(), "DIR"), picture)
    };
    let (console, picture) = run(1);
    assert!(
        console.starts_with("epoch 1/1  test error 0.0") && console.contains("% of the variance explained\n"),
        "{console}"
    );
    assert!(console.ends_with("drawn: DIR/reconstructions.png\n"), "{console}");
    assert!(picture.starts_with(b"\x89PNG"));
    assert!(run(2) == (console, picture));
}

#[test]
fn a_picture_passes_through_49_numbers() -> Result<()> {
    random::set_seed(1);
    let x = random::current().uniform([3, 28, 28, 1], 0.0, 1.0, DType::F32)?;
    let y = DigitVQVAE::new().forward_t(&x, true)?;
    assert_eq!(y.reconstruction.shape(), x.shape());
    // The error is that of the pictures that come with it.
    let error = (&y.reconstruction - &x)?.square()?.mean()?.item::<f32>()?;
    assert_eq!(y.error.item::<f32>()?, error);
    let perplexity = y.perplexity.item::<f32>()?;
    assert!((1.0..=NUM_EMBEDDINGS as f32).contains(&perplexity), "{perplexity}");
    assert!(y.commitment.item::<f32>()? > 0.0);
    Ok(())
}

#[test]
fn a_run_needs_digits_and_a_folder_it_can_make() {
    let out = folder("none");
    let error = train::run(&flags(&["--data-dir", "no/such/folder"]), &out, Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "no/such/folder: no such folder");
    assert!(!out.exists());
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let error = train::run(&flags(&[]), &file.join("out"), Vec::new()).unwrap_err();
    assert!(error.to_string().starts_with(&*file.to_string_lossy()), "{error}");
}
