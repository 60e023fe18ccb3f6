//! Checkpoints: variables in files, matched by the path that leads to them.

pub(crate) mod file;
mod graph;
#[cfg(feature = "npz")]
mod npz;
mod replace;
#[cfg(feature = "safetensors")]
mod safetensors;
mod stored;
#[cfg(test)]
mod testing;

pub use graph::{Attribute, Child, ObjectGraph, ObjectNode, Slot, escape, unescape};
pub use stored::{Entry, Raw, Stored, StoredDType, Strings};
