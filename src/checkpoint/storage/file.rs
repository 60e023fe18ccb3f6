//! What every format of checkpoint files offers to the rest of the crate.

use std::fmt;

use super::graph::ObjectGraph;
use super::stored::{Entry, Stored};
use crate::error::Result;
use crate::tensor::Tensor;

/// A tensor that is known to be whole.
pub(crate) enum Prepared {
    /// Its value.
    Value(Stored),
    /// It can be read from the file without fail.
    Here,
}

/// The description of a tensor, if a file has one of this key.
pub(crate) fn find<'f>(file: &'f dyn TensorFile, key: &str) -> Option<&'f Entry> {
    let entries = file.entries();
    let at = entries.binary_search_by(|entry| entry.key.as_bytes().cmp(key.as_bytes())).ok()?;
    Some(&entries[at])
}

/// An open file, or the several of one checkpoint.
pub(crate) trait TensorFile: fmt::Debug + Send + Sync {
    /// Everything it holds but its object graph, in ascending order of the keys' bytes.
    fn entries(&self) -> &[Entry];

    /// Reads the tensor with this key and verifies its checksum, if the format has one.
    ///
    /// # Errors
    /// There is none of the key, its elements are damaged, or the file cannot be read.
    fn read(&self, key: &str) -> Result<Stored>;

    /// As [`read`](TensorFile::read), but the elements may stay in the file until [`read_into`](TensorFile::read_into).
    ///
    /// # Errors
    /// As there.
    fn prepare(&self, key: &str) -> Result<Prepared> {
        self.read(key).map(Prepared::Value)
    }

    /// Takes the elements of a tensor that was [prepared](Prepared::Here) into `x`, which has its shape and dtype.
    ///
    /// # Errors
    /// There is none of the key.
    fn read_into(&self, key: &str, x: &mut Tensor) -> Result<()> {
        if let Stored::Tensor(value) = self.read(key)? {
            *x = value;
        }
        Ok(())
    }

    /// The object graph, or `None` if the format has none.
    ///
    /// # Errors
    /// It is damaged.
    fn graph(&self) -> Result<Option<ObjectGraph>>;
}
