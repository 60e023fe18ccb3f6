//! Checkpoints: variables in files, matched by the path that leads to them.

mod binding;
#[cfg(any(feature = "safetensors", feature = "npz"))]
mod by_path;
#[allow(clippy::module_inception, reason = "the type that the module is named after")]
mod checkpoint;
mod checksum;
pub(crate) mod file;
mod format;
mod graph;
mod live;
mod manager;
mod native;
#[cfg(feature = "npz")]
mod npz;
mod reader;
#[cfg(any(feature = "npz", feature = "safetensors"))]
mod replace;
mod restore;
#[cfg(feature = "safetensors")]
mod safetensors;
mod snapshot;
mod state_file;
mod status;
mod stored;
pub(crate) mod temporary;
#[cfg(feature = "tensorflow")]
pub mod tensorflow;
mod tensors;
#[cfg(test)]
mod testing;
mod weights;

pub use checkpoint::Checkpoint;
pub use format::Format;
pub use graph::{Attribute, Child, ObjectGraph, ObjectNode, Slot, escape, unescape};
pub use manager::{CheckpointManager, Resumed, latest_checkpoint};
pub use reader::{CheckpointDifference, CheckpointReader};
pub use status::{RestoreReport, RestoreStatus};
pub use stored::{Entry, Raw, Stored, StoredDType, Strings};
pub use tensors::{load_tensors, save_tensors};
pub use weights::{
    Layout, LoadOptions, LoadReport, LoadedWeight, SaveOptions, UnmatchedWeight, load_weights, save_weights,
};
