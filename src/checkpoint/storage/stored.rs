//! What files hold: tensors of the crate's dtypes, strings, and what it has no dtype for.

use std::fmt;

use crate::dtype::DType;
use crate::tensor::{Shape, Tensor};

/// The type of a tensor's elements in a file. Files hold more of them than tensors do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoredDType {
    /// Numbers or bools, as in a tensor.
    Tensor(DType),
    /// Strings of bytes.
    String,
    /// A type that tensors do not have, by its name in the file's format, e.g. `complex64`.
    Other(String),
}

impl From<DType> for StoredDType {
    fn from(dtype: DType) -> Self {
        StoredDType::Tensor(dtype)
    }
}

impl fmt::Display for StoredDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredDType::Tensor(dtype) => dtype.fmt(f),
            StoredDType::String => f.write_str("string"),
            StoredDType::Other(name) => f.write_str(name),
        }
    }
}

/// A tensor in a file: everything but its elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its key: a path such as `net/w`, or what the file's format calls it.
    pub key: String,
    /// The type of its elements.
    pub dtype: StoredDType,
    /// Its shape. A file may claim dims whose product is no size.
    pub shape: Shape,
    /// The bytes that its elements take in the file.
    pub bytes: u64,
}

/// A tensor read from a file, or to be written to one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Stored {
    /// Numbers or bools.
    Tensor(Tensor),
    /// Strings of bytes.
    Strings(Strings),
    /// Elements of another type, as they lie in the file but for their byte order.
    Raw(Raw),
}

/// A tensor of strings of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strings {
    /// Its shape.
    pub shape: Shape,
    /// The strings, in row-major order.
    pub values: Vec<Vec<u8>>,
}

impl Strings {
    /// One string, of rank 0.
    pub fn scalar(value: impl Into<Vec<u8>>) -> Self {
        Strings { shape: Shape::from([]), values: vec![value.into()] }
    }
}

/// A tensor of a type that the crate does not compute with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// The name of the type in the file's format.
    pub dtype: String,
    /// Its shape.
    pub shape: Shape,
    /// The elements in row-major order, each in little-endian order.
    pub bytes: Vec<u8>,
}

impl Stored {
    /// The type of the elements.
    pub fn dtype(&self) -> StoredDType {
        match self {
            Stored::Tensor(x) => x.dtype().into(),
            Stored::Strings(_) => StoredDType::String,
            Stored::Raw(raw) => StoredDType::Other(raw.dtype.clone()),
        }
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        match self {
            Stored::Tensor(x) => x.shape(),
            Stored::Strings(strings) => &strings.shape,
            Stored::Raw(raw) => &raw.shape,
        }
    }
}

impl From<Tensor> for Stored {
    fn from(x: Tensor) -> Self {
        Stored::Tensor(x)
    }
}
