//! Scratch files, and what must hold of everything that is read from one.

use std::fs;
use std::path::{Path, PathBuf};

use couplet::checkpoint::{CheckpointReader, Stored, load_tensors};
use couplet::{Error, Fault};

/// A folder in memory for the files of one target, which stays: the next input overwrites them.
pub fn folder(target: &str) -> PathBuf {
    let folder = place(target);
    fs::create_dir_all(&folder).expect("a folder for temporary files");
    folder
}

/// Where the folder of a target is, if there is one.
pub fn place(target: &str) -> PathBuf {
    let shared = Path::new("/dev/shm");
    let base = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    base.join(format!("couplet-fuzz-{}-{target}", std::process::id()))
}

/// Writes a file of the folder.
pub fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("room for a temporary file");
}

/// Reads all that a checkpoint holds, in every way that needs no program behind it.
pub fn checkpoint(path: &Path) -> Option<CheckpointReader> {
    let reader = match CheckpointReader::open(path) {
        Ok(reader) => reader,
        Err(e) => {
            refused(&e);
            return None;
        }
    };
    let whole = tensors(path, &reader);
    assert_eq!(reader.verify().is_ok(), whole, "verify and get disagree");
    assert_eq!(load_tensors(path).is_ok(), whole, "load_tensors and get disagree");
    match reader.compare(&reader) {
        Ok(same) => {
            assert!(same.only_left.is_empty() && same.only_right.is_empty() && same.unlike.is_empty())
        }
        Err(e) => refused(&e),
    }
    Some(reader)
}

/// Reads every tensor; whether all could be read.
fn tensors(path: &Path, reader: &CheckpointReader) -> bool {
    let keys: Vec<&str> = reader.entries().iter().map(|entry| entry.key.as_str()).collect();
    assert!(keys.is_sorted_by(|a, b| a < b), "keys out of order in {}", path.display());
    let mut whole = true;
    for entry in reader.entries() {
        match reader.get(&entry.key) {
            Err(e) => {
                refused(&e);
                whole = false;
            }
            Ok(value) => {
                assert_eq!(value.dtype(), entry.dtype, "{}", entry.key);
                assert_eq!(value.shape(), &*entry.shape, "{}", entry.key);
                match value {
                    Stored::Tensor(x) => assert_eq!((x.size() * x.dtype().size()) as u64, entry.bytes),
                    Stored::Strings(strings) => assert_eq!(strings.values.len(), strings.shape.size()),
                    Stored::Raw(raw) => assert_eq!(raw.bytes.len() as u64, entry.bytes),
                    other => panic!("a kind of value without a check: {other:?}"),
                }
            }
        }
    }
    for path in reader.paths().keys().filter(|path| reader.has(path)) {
        let _ = reader.get(path).map_err(|e| refused(&e));
    }
    let other = "a key that no file has";
    assert!(reader.has(other) || reader.get(other).is_err());
    whole
}

/// An error about a file names it, what is wrong, and a place within it, unless the place is what is wrong.
pub fn refused(e: &Error) {
    let Error::Format { path, offset, fault, .. } = e.root() else {
        panic!("not an error about a format: {e:?}")
    };
    assert!(path.contains("couplet-fuzz-"), "the error is about another file: {e}");
    if let Some(offset) = offset
        && ![Fault::OutOfRange, Fault::MissingShard].contains(fault)
    {
        let length = fs::metadata(path).map_or(0, |metadata| metadata.len());
        assert!(*offset <= length, "byte {offset} of {length}: {e}");
    }
}
