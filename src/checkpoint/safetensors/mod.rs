//! Tensors in safetensors files.

mod header;
mod index;
#[cfg(test)]
mod tests;
mod write;

use std::path::{Path, PathBuf};

use self::header::Located;
pub(crate) use self::index::ShardedFile;
pub(crate) use self::write::write;
use super::file::TensorFile;
use super::graph::ObjectGraph;
use super::stored::{Entry, Raw, Stored, StoredDType};
use super::temporary::file_error;
use crate::error::{Error, Fault, Result};
use crate::kernels::mapping::Mapping;
use crate::tensor::Tensor;

/// An open safetensors file.
#[derive(Debug)]
pub(crate) struct SafetensorsFile {
    path: PathBuf,
    bytes: Mapping,
    entries: Vec<Entry>,
    /// Where the elements lie, in the order of the entries.
    places: Vec<(usize, usize)>,
}

impl SafetensorsFile {
    /// Opens a file and checks its header.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let bytes = Mapping::open(path).map_err(|e| file_error(path, &e))?;
        let located = header::read(path, &bytes)?.into_iter();
        let (entries, places) = located.map(|Located { entry, start, end }| (entry, (start, end))).unzip();
        Ok(SafetensorsFile { path: path.to_owned(), bytes, entries, places })
    }
}

impl TensorFile for SafetensorsFile {
    fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn read(&self, key: &str) -> Result<Stored> {
        let found = self.entries.binary_search_by(|entry| entry.key.as_str().cmp(key));
        let place = found.ok().and_then(|i| Some((self.entries.get(i)?, *self.places.get(i)?)));
        let Some((entry, (start, end))) = place else {
            return Err(Error::format(&self.path, Fault::MissingTensor, "the file has none of this key")
                .of_tensor(key));
        };
        let at = |e: Error| e.at_offset(start as u64).of_tensor(key);
        let bytes = self.bytes.get(start..end).unwrap_or(&[]);
        match &entry.dtype {
            StoredDType::Tensor(dtype) => {
                let tensor = Tensor::from_bytes(bytes, entry.shape.clone(), *dtype);
                tensor
                    .map(Stored::Tensor)
                    .map_err(|e| at(Error::format(&self.path, Fault::MalformedTensor, e.root().to_string())))
            }
            other => {
                let (dtype, shape) = (other.to_string(), entry.shape.clone());
                Ok(Stored::Raw(Raw { dtype, shape, bytes: bytes.to_vec() }))
            }
        }
    }

    fn graph(&self) -> Result<Option<ObjectGraph>> {
        Ok(None)
    }
}
