//! The MNIST files of the examples.

#[allow(dead_code, reason = "the examples use all of it")]
#[path = "../../examples/mnist/idx.rs"]
mod reader;

use super::checked::{folder, write};

const NAMES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

/// The lowest bits of the first byte say which of the four files consists of the others; the rest are whole.
pub fn run(bytes: &[u8]) {
    let Some((&which, bytes)) = bytes.split_first() else { return };
    let folder = folder("idx");
    let images = [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28][..], &[7; 2 * reader::PIXELS]].concat();
    let labels = vec![0, 0, 8, 1, 0, 0, 0, 2, 3, 9];
    for (i, name) in NAMES.iter().enumerate() {
        let whole = if i % 2 == 0 { &images } else { &labels };
        write(&folder.join(name), if i == usize::from(which % 4) { bytes } else { whole });
    }
    match reader::load(&folder) {
        Ok(mnist) => {
            for digits in [mnist.train, mnist.test] {
                assert_eq!(digits.images.len(), digits.labels.len() * reader::PIXELS);
                assert!(digits.labels.iter().all(|&label| label < 10));
            }
        }
        Err(e) => assert!(e.to_string().contains("-ubyte"), "{e}"),
    }
}
