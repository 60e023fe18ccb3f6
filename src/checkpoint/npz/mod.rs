//! Tensors in NumPy's files: one array in a `.npy`, several in a `.npz`, which is a ZIP archive of the former.

mod archive;
mod descr;
mod elements;
mod header;
#[cfg(test)]
mod tests;
mod write;

use std::path::{Path, PathBuf};

pub(crate) use self::archive::NpzFile;
use self::header::{Flaw, Header};
pub(crate) use self::write::{write_npy, write_npz};
use super::file::TensorFile;
use super::graph::ObjectGraph;
use super::stored::{Entry, Stored};
use super::temporary::file_error;
use crate::error::{Error, Fault, Result};
use crate::kernels::mapping::Mapping;

/// An open `.npy` file. Its array has the name of the file, without the ending, as its key.
#[derive(Debug)]
pub(crate) struct NpyFile {
    path: PathBuf,
    bytes: Mapping,
    header: Header,
    entry: Entry,
}

impl NpyFile {
    /// Opens a file and checks its header.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let bytes = Mapping::open(path).map_err(|e| file_error(path, &e))?;
        let key = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let refuse =
            |(fault, at, problem): Flaw| Error::format(path, fault, problem).at_offset(at).of_tensor(&key);
        let header = Header::read(&mut &bytes[..]).map_err(refuse)?;
        let there = (bytes.len() as u64).saturating_sub(header.start);
        match header.size().map_err(refuse)? {
            Some(size) if there < size => {
                let problem =
                    format!("{there} bytes, expected {size} for {}{}", header.descr.dtype(), header.shape);
                return Err(refuse((Fault::Truncated, bytes.len() as u64, problem)));
            }
            Some(size) if there > size => {
                let problem = format!("{} bytes follow the array", there - size);
                return Err(refuse((Fault::SizeMismatch, header.start.saturating_add(size), problem)));
            }
            _ => {}
        }
        let entry = header.entry(key, there);
        Ok(NpyFile { path: path.to_owned(), bytes, header, entry })
    }
}

impl TensorFile for NpyFile {
    fn entries(&self) -> &[Entry] {
        std::slice::from_ref(&self.entry)
    }

    fn read(&self, key: &str) -> Result<Stored> {
        if key != self.entry.key {
            let problem = format!("the file has {:?} alone", self.entry.key);
            return Err(Error::format(&self.path, Fault::MissingTensor, problem).of_tensor(key));
        }
        let elements = self.bytes.get(self.header.start as usize..).unwrap_or(&[]);
        elements::decode(&self.header, elements).map_err(|(fault, at, problem)| {
            Error::format(&self.path, fault, problem).at_offset(at).of_tensor(key)
        })
    }

    fn graph(&self) -> Result<Option<ObjectGraph>> {
        Ok(None)
    }
}
