//! Checkpoints: variables in files, matched by the path that leads to them.

mod binding;
pub(crate) mod file;
mod graph;
mod live;
mod native;
#[cfg(feature = "npz")]
mod npz;
mod replace;
#[cfg(feature = "safetensors")]
mod safetensors;
mod snapshot;
mod stored;
pub(crate) mod temporary;
#[cfg(feature = "tensorflow")]
pub mod tensorflow;
#[cfg(test)]
mod testing;

pub use graph::{Attribute, Child, ObjectGraph, ObjectNode, Slot, escape, unescape};
pub use stored::{Entry, Raw, Stored, StoredDType, Strings};
