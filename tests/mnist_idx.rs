//! The MNIST reader of the examples: what it accepts, and what it says of each damaged file.

#[path = "../examples/mnist/idx.rs"]
mod idx;

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::{Compression, write::GzEncoder};
use idx::PIXELS;

const TRAIN_IMAGES: &str = "train-images-idx3-ubyte";
const TRAIN_LABELS: &str = "train-labels-idx1-ubyte";
const TEST_IMAGES: &str = "t10k-images-idx3-ubyte";
const TEST_LABELS: &str = "t10k-labels-idx1-ubyte";

/// A folder with three training and two test digits, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("couplet-idx-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let folder = Self(path);
        folder.write(TRAIN_IMAGES, &images(3, 28, 28));
        folder.write(TRAIN_LABELS, &labels(&[7, 0, 9]));
        folder.write(TEST_IMAGES, &images(2, 28, 28));
        folder.write(TEST_LABELS, &labels(&[1, 2]));
        folder
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.0.join(name)).unwrap();
    }

    /// The error without the folder in front of its file names.
    fn error(&self) -> String {
        let error = idx::load(&self.0).err().expect("the files are damaged");
        error.to_string().replace(&format!("{}/", self.0.display()), "")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn header(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// Image `i` is filled with the value `i`.
fn images(count: u32, rows: u32, columns: u32) -> Vec<u8> {
    let pixels = (0..count).flat_map(|i| vec![i as u8; PIXELS]);
    header(&[0x803, count, rows, columns]).into_iter().chain(pixels).collect()
}

fn labels(labels: &[u8]) -> Vec<u8> {
    [header(&[0x801, labels.len() as u32]), labels.to_vec()].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn plain_files_are_read() {
    let folder = Folder::new("plain");
    let mnist = idx::load(&folder.0).unwrap();
    assert_eq!(mnist.train.labels, [7, 0, 9]);
    assert_eq!(mnist.train.images, [[0; PIXELS], [1; PIXELS], [2; PIXELS]].concat());
    assert_eq!(mnist.test.labels, [1, 2]);
    assert_eq!(mnist.test.images.len(), 2 * PIXELS);
}

#[test]
fn gzip_files_are_read_beside_plain_ones() {
    let folder = Folder::new("gzip");
    folder.remove(TRAIN_IMAGES);
    folder.write(&format!("{TRAIN_IMAGES}.gz"), &gzip(&images(3, 28, 28)));
    let mnist = idx::load(&folder.0).unwrap();
    assert_eq!(mnist.train.images, [[0; PIXELS], [1; PIXELS], [2; PIXELS]].concat());
}

#[test]
fn the_content_not_the_name_decides_whether_a_file_is_unpacked() {
    let folder = Folder::new("content");
    folder.write(TRAIN_LABELS, &gzip(&labels(&[7, 0, 9])));
    folder.remove(TEST_LABELS);
    folder.write(&format!("{TEST_LABELS}.gz"), &labels(&[1, 2]));
    let mnist = idx::load(&folder.0).unwrap();
    assert_eq!((mnist.train.labels, mnist.test.labels), (vec![7, 0, 9], vec![1, 2]));
}

#[test]
fn the_shipped_subset_has_a_hundred_test_digits_of_each_class() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/data/mnist-5k");
    let mnist = idx::load(&folder).unwrap();
    assert_eq!((mnist.train.labels.len(), mnist.test.labels.len()), (4000, 1000));
    for digit in 0..10 {
        assert_eq!(mnist.test.labels.iter().filter(|&&label| label == digit).count(), 100);
    }
}

#[test]
fn a_missing_folder_is_named() {
    let error = idx::load(&PathBuf::from("no/such/folder")).err().unwrap();
    assert_eq!(error.to_string(), "no/such/folder: no such folder");
}

#[test]
fn a_missing_file_is_named() {
    let folder = Folder::new("missing");
    folder.remove(TEST_IMAGES);
    let error = folder.error();
    assert!(error.starts_with("t10k-images-idx3-ubyte: no such file, nor one that ends in .gz"), "{error}");
}

#[test]
fn a_folder_in_the_place_of_a_file_is_refused() {
    let folder = Folder::new("folder");
    folder.remove(TEST_IMAGES);
    fs::create_dir(folder.0.join(TEST_IMAGES)).unwrap();
    let error = folder.error();
    assert!(error.starts_with("t10k-images-idx3-ubyte: cannot be read"), "{error}");
}

#[test]
fn labels_in_the_place_of_images_are_recognised() {
    let folder = Folder::new("swapped");
    folder.write(TRAIN_IMAGES, &labels(&[7, 0, 9]));
    let expected =
        "train-images-idx3-ubyte: expected images (magic 0x00000803), found labels (magic 0x00000801)";
    assert_eq!(folder.error(), expected);
}

#[test]
fn images_in_the_place_of_labels_are_recognised() {
    let folder = Folder::new("swapped-back");
    folder.write(TRAIN_LABELS, &images(3, 28, 28));
    let expected =
        "train-labels-idx1-ubyte: expected labels (magic 0x00000801), found images (magic 0x00000803)";
    assert_eq!(folder.error(), expected);
}

#[test]
fn a_wrong_magic_number_is_shown() {
    let folder = Folder::new("magic");
    folder.write(TRAIN_IMAGES, b"\x89PNG\r\n\x1a\n, and so on");
    let expected = "train-images-idx3-ubyte: expected images (magic 0x00000803), found something else (magic 0x89504e47)";
    assert_eq!(folder.error(), expected);
}

#[test]
fn a_truncated_file_is_refused_wherever_it_ends() {
    let folder = Folder::new("truncated");
    let whole = images(3, 28, 28); // 16 + 3 * 784 = 2368 bytes
    for (len, expected) in [(0, 4), (3, 4), (4, 8), (9, 12), (15, 16), (16, 2368), (2367, 2368)] {
        folder.write(TRAIN_IMAGES, &whole[..len]);
        let message =
            format!("train-images-idx3-ubyte: is cut short: expected {expected} bytes, found {len}");
        assert_eq!(folder.error(), message);
    }
    folder.write(TRAIN_IMAGES, &whole);
    folder.write(TRAIN_LABELS, &labels(&[7, 0, 9])[..10]);
    assert_eq!(folder.error(), "train-labels-idx1-ubyte: is cut short: expected 11 bytes, found 10");
}

#[test]
fn a_truncated_or_damaged_gzip_file_is_refused() {
    let folder = Folder::new("damaged");
    let packed = gzip(&images(3, 28, 28));
    folder.write(TRAIN_IMAGES, &packed[..packed.len() / 2]);
    let error = folder.error();
    assert!(error.starts_with("train-images-idx3-ubyte: is damaged after"), "{error}");

    let mut bad_checksum = packed.clone();
    bad_checksum[packed.len() - 8] ^= 1;
    folder.write(TRAIN_IMAGES, &bad_checksum);
    let error = folder.error();
    assert!(error.starts_with("train-images-idx3-ubyte: is damaged after 2368 unpacked bytes"), "{error}");

    folder.write(TRAIN_IMAGES, &[packed, b"garbage".to_vec()].concat());
    let error = folder.error();
    assert!(error.starts_with("train-images-idx3-ubyte: is damaged after 2368 unpacked bytes"), "{error}");
}

#[test]
fn trailing_bytes_are_refused() {
    let folder = Folder::new("trailing");
    folder.write(TEST_LABELS, &[labels(&[1, 2]), vec![3; 5]].concat());
    assert_eq!(folder.error(), "t10k-labels-idx1-ubyte: is too long: expected 10 bytes, found 15");
}

#[test]
fn images_of_another_size_are_refused() {
    let folder = Folder::new("size");
    folder.write(TRAIN_IMAGES, &images(3, 28, 32));
    let expected = "train-images-idx3-ubyte: expected images of 28 x 28 pixels, found 28 x 32";
    assert_eq!(folder.error(), expected);
}

#[test]
fn an_absurd_count_is_refused_without_memory_for_it() {
    let folder = Folder::new("absurd");
    folder.write(TRAIN_IMAGES, &header(&[0x803, u32::MAX, 28, 28]));
    // 16 + (2^32 - 1) * 784
    let expected = "train-images-idx3-ubyte: is cut short: expected 3367254359296 bytes, found 16";
    assert_eq!(folder.error(), expected);
}

#[test]
fn an_empty_set_is_refused() {
    let folder = Folder::new("empty");
    folder.write(TEST_IMAGES, &images(0, 28, 28));
    assert_eq!(folder.error(), "t10k-images-idx3-ubyte: expected at least one item, found none");
}

#[test]
fn a_label_above_nine_is_shown_with_its_position() {
    let folder = Folder::new("label");
    folder.write(TRAIN_LABELS, &labels(&[7, 0, 10]));
    let expected = "train-labels-idx1-ubyte: expected labels from 0 to 9, found 10 at position 2";
    assert_eq!(folder.error(), expected);
}

#[test]
fn another_number_of_labels_than_of_images_is_refused() {
    let folder = Folder::new("count");
    folder.write(TRAIN_LABELS, &labels(&[7, 0]));
    let expected =
        "train-labels-idx1-ubyte: expected 3 labels, one for each image of train-images-idx3-ubyte, found 2";
    assert_eq!(folder.error(), expected);
}
