//! The header: what there is and where.

use serde::{Deserialize, Serialize};

use super::super::graph::ObjectGraph;
use super::super::stored::{Stored, StoredDType};
use crate::dtype::DType;

/// What a file holds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    /// The version of the library that wrote it, for messages.
    pub(super) writer: String,
    pub(super) graph: Option<ObjectGraph>,
    /// In the order of their places.
    pub(super) tensors: Vec<Place>,
}

/// A tensor and its place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) key: String,
    /// Its name rather than its number, which depends on the order of declaration.
    pub(super) dtype: String,
    pub(super) dims: Vec<u64>,
    /// From the beginning of the file.
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

const STRING: &str = "string";

/// The name of a dtype in a file.
pub(super) fn dtype_name(value: &Stored) -> String {
    match value.dtype() {
        StoredDType::Tensor(dtype) => dtype.name().to_owned(),
        StoredDType::String => STRING.to_owned(),
        StoredDType::Other(name) => name,
    }
}

/// The dtype of a name.
pub(super) fn dtype_of(name: &str) -> StoredDType {
    match DType::ALL.into_iter().find(|dtype| dtype.name() == name) {
        Some(dtype) => dtype.into(),
        None if name == STRING => StoredDType::String,
        None => StoredDType::Other(name.to_owned()),
    }
}
