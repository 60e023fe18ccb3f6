//! The example that invents digits.

#[path = "../examples/mnist/flags.rs"]
mod flags;
#[path = "../examples/mnist/grid.rs"]
mod grid;
#[path = "../examples/mnist/idx.rs"]
#[allow(dead_code, reason = "as in the example, nobody reads the test digits")]
mod idx;
#[path = "../examples/little_gan_mnist/model.rs"]
mod model;
#[path = "../examples/mnist/page.rs"]
mod page;
#[path = "../examples/mnist/pixels.rs"]
mod pixels;
#[path = "../examples/mnist/progress.rs"]
mod progress;
#[path = "../examples/little_gan_mnist/train.rs"]
mod train;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use couplet::prelude::*;
use flags::{Defaults, Flags};
use model::{LittleGAN, NOISE};

#[derive(Debug, Parser)]
struct Args {
    #[command(flatten)]
    flags: Flags,
}

fn flags(line: &[&str]) -> Flags {
    let defaults = Defaults { about: "Test", epochs: "2", batch_size: "20", learning_rate: "0.0002" };
    flags::parse::<Args>(&defaults, [&["little_gan"], line].concat()).unwrap().flags
}

/// A folder that is not there yet.
fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("couplet-little-gan-{}-{name}", std::process::id()))
}

/// Writes as few digits as a run of a moment needs: image `i` is filled with `i` and labelled with its last decimal.
fn write_digits(folder: &Path, count: u8) {
    let header =
        |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<u8>>();
    fs::create_dir_all(folder).unwrap();
    for prefix in ["train", "t10k"] {
        let pixels = (0..count).flat_map(|i| [i; idx::PIXELS]).collect();
        let images = [header(&[0x0803, count.into(), 28, 28]), pixels].concat();
        let labels = [header(&[0x0801, count.into()]), (0..count).map(|i| i % 10).collect()].concat();
        fs::write(folder.join(format!("{prefix}-images-idx3-ubyte")), images).unwrap();
        fs::write(folder.join(format!("{prefix}-labels-idx1-ubyte")), labels).unwrap();
    }
}

#[test]
fn a_run_tells_and_draws_the_same_on_one_thread_and_on_two() {
    let data = folder("digits");
    write_digits(&data, 50);
    let run = |threads: usize| {
        let (out, mut console) = (folder(&threads.to_string()), Vec::new());
        let flags = flags(&["--data-dir", &data.to_string_lossy()]);
        couplet::with_threads(threads, || train::run(&flags, &out, &mut console)).unwrap();
        let pictures = [1, 2].map(|epoch| fs::read(out.join(format!("epoch_00{epoch}.png"))).unwrap());
        fs::remove_dir_all(&out).unwrap();
        (String::from_utf8(console).unwrap().replace(&*out.to_string_lossy(), "DIR"), pictures)
    };
    let (console, pictures) = run(1);
    assert!(console.starts_with("epoch 1/2  discriminator loss "), "{console}");
    assert!(console.ends_with("\ndrawn: DIR/epoch_002.png\n"), "{console}");
    assert!(pictures.iter().all(|picture| picture.starts_with(b"\x89PNG")) && pictures[0] != pictures[1]);
    assert!(run(2) == (console, pictures));
    fs::remove_dir_all(&data).unwrap();
}

#[test]
fn each_loss_pulls_at_its_own_network() -> Result<()> {
    random::set_seed(1);
    let model = LittleGAN::new();
    let (images, labels) = (Tensor::zeros([4, 28, 28, 1], DType::F32)?, Tensor::from([0i64, 3, 9, 3]));
    let noise = random::current().normal([4, NOISE], 0.0, 1.0, DType::F32)?;

    let tape = GradientTape::new();
    let loss = model.discriminator_loss(&images, &labels, &noise)?;
    let generator = model.generator().trainable_variables()?;
    assert!(tape.gradient(&loss, &generator)?.iter().all(Option::is_none));

    let tape = GradientTape::new();
    let loss = model.generator_loss(&labels, &noise)?;
    assert!(tape.gradient(&loss, &generator)?.iter().all(Option::is_some));
    Ok(())
}

#[test]
fn a_discriminator_that_knows_nothing_has_losses_of_one_bit_a_picture() -> Result<()> {
    random::set_seed(1);
    let model = LittleGAN::new();
    let (images, labels) = (Tensor::zeros([4, 28, 28, 1], DType::F32)?, Tensor::from([0i64, 3, 9, 3]));
    let noise = random::current().normal([4, NOISE], 0.0, 1.0, DType::F32)?;
    model.discriminator_loss(&images, &labels, &noise)?;
    for variable in model.discriminator().trainable_variables()? {
        variable.assign(&Tensor::zeros(variable.shape(), DType::F32)?)?;
    }
    // All scores are 0, so p is a half, for real pictures and for invented ones.
    let ln2 = std::f32::consts::LN_2;
    assert!((model.discriminator_loss(&images, &labels, &noise)?.item::<f32>()? - 2.0 * ln2).abs() < 1e-6);
    assert!((model.generator_loss(&labels, &noise)?.item::<f32>()? - ln2).abs() < 1e-6);
    Ok(())
}
