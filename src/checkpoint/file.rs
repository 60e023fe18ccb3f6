//! What every format of checkpoint files offers to the rest of the crate.

use std::fmt;

use super::graph::ObjectGraph;
use super::stored::{Entry, Stored};
use crate::error::Result;

/// An open file, or the several of one checkpoint.
pub(crate) trait TensorFile: fmt::Debug + Send + Sync {
    /// Everything it holds but its object graph, in ascending order of the keys' bytes.
    fn entries(&self) -> &[Entry];

    /// Reads the tensor with this key and verifies its checksum, if the format has one.
    ///
    /// # Errors
    /// There is none of the key, its elements are damaged, or the file cannot be read.
    fn read(&self, key: &str) -> Result<Stored>;

    /// The object graph, or `None` if the format has none.
    ///
    /// # Errors
    /// It is damaged.
    fn graph(&self) -> Result<Option<ObjectGraph>>;
}
