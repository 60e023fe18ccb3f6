//! Reads MNIST from its four IDX files, plain or compressed with gzip.
//!
//! | file                      | bytes                                                                   |
//! |---------------------------|-------------------------------------------------------------------------|
//! | `*-images-idx3-ubyte`     | magic `00000803`, count, 28, 28 as big-endian `u32`; one byte per pixel |
//! | `*-labels-idx1-ubyte`     | magic `00000801`, count as big-endian `u32`; one byte per label, 0 to 9 |

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

/// Width and height of an image in pixels.
pub const SIDE: usize = 28;
/// Bytes of one image.
pub const PIXELS: usize = SIDE * SIDE;
/// Number of classes: the digits 0 to 9.
pub const CLASSES: usize = 10;

const IMAGES_MAGIC: u32 = 0x0803;
const LABELS_MAGIC: u32 = 0x0801;

/// The training and the test digits.
pub struct Mnist {
    pub train: Digits,
    pub test: Digits,
}

/// Images, [`PIXELS`] bytes each, row by row with 0 for black, and the label of each.
pub struct Digits {
    pub images: Vec<u8>,
    pub labels: Vec<u8>,
}

/// What is wrong with which file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", file.display())]
pub struct IdxError {
    pub file: PathBuf,
    pub fault: Fault,
}

/// What can be wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("no such folder")]
    NoFolder,
    #[error(
        "no such file, nor one that ends in .gz; expected the four MNIST files train-images-idx3-ubyte, \
         train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte"
    )]
    Missing,
    #[error("cannot be read: {0}")]
    Io(io::Error),
    #[error("is damaged after {read} unpacked bytes: {error}")]
    Gzip { read: usize, error: io::Error },
    #[error("is cut short: expected {expected} bytes, found {found}")]
    CutShort { expected: u64, found: u64 },
    #[error("is too long: expected {expected} bytes, found {found}")]
    TooLong { expected: u64, found: u64 },
    #[error(
        "expected {expected} (magic {:#010x}), found {} (magic {found:#010x})",
        expected.magic(),
        name_of(*found)
    )]
    Magic { expected: Content, found: u32 },
    #[error("expected images of 28 x 28 pixels, found {rows} x {columns}")]
    Size { rows: u32, columns: u32 },
    #[error("expected at least one item, found none")]
    Empty,
    #[error("expected labels from 0 to 9, found {label} at position {position}")]
    Label { label: u8, position: usize },
    #[error("expected {expected} labels, one for each image of {}, found {found}", images.display())]
    Count { images: PathBuf, expected: usize, found: usize },
}

/// What a file should hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    Images,
    Labels,
}

impl Content {
    fn magic(self) -> u32 {
        match self {
            Self::Images => IMAGES_MAGIC,
            Self::Labels => LABELS_MAGIC,
        }
    }
}

impl std::fmt::Display for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Self::Images => "images",
            Self::Labels => "labels",
        })
    }
}

/// Reads the four files of the MNIST distribution from `folder`, each with or without `.gz` at its end.
///
/// # Errors
/// A file is missing, cannot be read, or holds anything but what its name says.
pub fn load(folder: &Path) -> Result<Mnist, IdxError> {
    if !folder.is_dir() {
        return Err(IdxError { file: folder.to_path_buf(), fault: Fault::NoFolder });
    }
    Ok(Mnist { train: load_digits(folder, "train")?, test: load_digits(folder, "t10k")? })
}

fn load_digits(folder: &Path, prefix: &str) -> Result<Digits, IdxError> {
    let (images_file, images) = load_file(folder, &format!("{prefix}-images-idx3-ubyte"), read_images)?;
    let (labels_file, labels) = load_file(folder, &format!("{prefix}-labels-idx1-ubyte"), read_labels)?;
    let (expected, found) = (images.len() / PIXELS, labels.len());
    if expected != found {
        let fault = Fault::Count { images: images_file, expected, found };
        return Err(IdxError { file: labels_file, fault });
    }
    Ok(Digits { images, labels })
}

/// Finds `name` or `name.gz`, and reads it with `read`.
fn load_file(
    folder: &Path,
    name: &str,
    read: fn(&mut dyn Read) -> Result<Vec<u8>, Fault>,
) -> Result<(PathBuf, Vec<u8>), IdxError> {
    let plain = folder.join(name);
    let packed = folder.join(format!("{name}.gz"));
    let file = if !plain.exists() && packed.exists() { packed } else { plain };
    match open(&file).and_then(|mut source| read(&mut *source)) {
        Ok(content) => Ok((file, content)),
        Err(fault) => Err(IdxError { file, fault }),
    }
}

/// Opens `file` and unpacks it if its content, whatever its name, is gzip: browsers unpack files and keep the `.gz`.
fn open(file: &Path) -> Result<Box<dyn Read>, Fault> {
    let opened = File::open(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Fault::Missing,
        _ => Fault::Io(error),
    })?;
    let mut start = Vec::new();
    let mut source = BufReader::new(opened);
    source.by_ref().take(2).read_to_end(&mut start).map_err(Fault::Io)?;
    let is_gzip = start == [0x1f, 0x8b];
    let whole = io::Cursor::new(start).chain(source);
    Ok(if is_gzip {
        Box::new(Unpack { inner: MultiGzDecoder::new(whole), read: 0 })
    } else {
        Box::new(whole)
    })
}

/// Reads an image file.
fn read_images(source: &mut dyn Read) -> Result<Vec<u8>, Fault> {
    let count = read_header(source, Content::Images)?;
    let [rows, columns] = [read_u32(source, 8)?, read_u32(source, 12)?];
    if [rows, columns] != [SIDE as u32; 2] {
        return Err(Fault::Size { rows, columns });
    }
    read_body(source, 16, u64::from(count) * PIXELS as u64)
}

/// Reads a label file.
fn read_labels(source: &mut dyn Read) -> Result<Vec<u8>, Fault> {
    let count = read_header(source, Content::Labels)?;
    let labels = read_body(source, 8, u64::from(count))?;
    match labels.iter().position(|&label| usize::from(label) >= CLASSES) {
        Some(position) => Err(Fault::Label { label: labels[position], position }),
        None => Ok(labels),
    }
}

/// Checks the magic number and returns the number of items.
fn read_header(source: &mut dyn Read, expected: Content) -> Result<u32, Fault> {
    let found = read_u32(source, 0)?;
    if found != expected.magic() {
        return Err(Fault::Magic { expected, found });
    }
    match read_u32(source, 4)? {
        0 => Err(Fault::Empty),
        count => Ok(count),
    }
}

/// Reads exactly `len` bytes, which must be all that follows the header.
fn read_body(source: &mut dyn Read, header: u64, len: u64) -> Result<Vec<u8>, Fault> {
    // Grows with what the file really holds: a header that claims 4 billion images allocates nothing.
    let mut body = Vec::new();
    (&mut *source).take(len).read_to_end(&mut body).map_err(fault_of)?;
    let (expected, found) = (header + len, header + body.len() as u64);
    if found < expected {
        return Err(Fault::CutShort { expected, found });
    }
    match io::copy(source, &mut io::sink()).map_err(fault_of)? {
        0 => Ok(body),
        rest => Err(Fault::TooLong { expected, found: found + rest }),
    }
}

/// The big-endian number at byte `position`.
fn read_u32(source: &mut dyn Read, position: u64) -> Result<u32, Fault> {
    let mut bytes = Vec::with_capacity(4);
    source.take(4).read_to_end(&mut bytes).map_err(fault_of)?;
    match bytes[..].try_into() {
        Ok(bytes) => Ok(u32::from_be_bytes(bytes)),
        Err(_) => Err(Fault::CutShort { expected: position + 4, found: position + bytes.len() as u64 }),
    }
}

fn name_of(magic: u32) -> &'static str {
    match magic {
        IMAGES_MAGIC => "images",
        LABELS_MAGIC => "labels",
        _ => "something else",
    }
}

/// A gzip stream that marks its errors as such, with the bytes unpacked before.
struct Unpack<R> {
    inner: R,
    read: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("{error}")]
struct Damaged {
    read: usize,
    error: io::Error,
}

impl<R: Read> Read for Unpack<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ => io::Error::other(Damaged { read: self.read, error }),
        })?;
        self.read += count;
        Ok(count)
    }
}

fn fault_of(error: io::Error) -> Fault {
    match error.downcast::<Damaged>() {
        Ok(Damaged { read, error }) => Fault::Gzip { read, error },
        Err(error) => Fault::Io(error),
    }
}
