//! Checkpoints: variables in files, matched by the path that leads to them.

pub(crate) mod file;
mod graph;
#[cfg(feature = "npz")]
mod npz;
mod replace;
#[cfg(feature = "safetensors")]
mod safetensors;
mod stored;
mod tensors;
#[cfg(test)]
mod testing;
mod weights;

pub use graph::{Attribute, Child, ObjectGraph, ObjectNode, Slot, escape, unescape};
pub use stored::{Entry, Raw, Stored, StoredDType, Strings};
pub use tensors::{load_tensors, save_tensors};
pub use weights::{
    Layout, LoadOptions, LoadReport, LoadedWeight, SaveOptions, UnmatchedWeight, load_weights, save_weights,
};
