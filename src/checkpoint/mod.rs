//! Checkpoints: values in files, matched by the path of the objects that hold them.
//!
//! | for                                                     | use                                                         |
//! |---------------------------------------------------------|-------------------------------------------------------------|
//! | a training loop that can be stopped at any moment       | [`CheckpointManager`]                                       |
//! | one save, one restore, or a part of what was saved      | [`Checkpoint`]                                              |
//! | a look into a file, a comparison, another format        | [`CheckpointReader`]                                        |
//! | weights of PyTorch and others, by path and with renames | [`load_weights`], [`save_weights`]                          |
//! | named tensors without a module                          | [`load_tensors`], [`save_tensors`]                          |
//!
//! Objects form a graph: a module leads to its parts, an optimiser to its slots, a list to its items. A file holds the graph of the
//! program that wrote it, and a restore walks both from their roots by the names of the parts. So neither names of variables nor the
//! order in which things were made matter, and what is not made yet is given its values when it is.

#[cfg(any(feature = "safetensors", feature = "npz"))]
mod by_path;
#[allow(clippy::module_inception, reason = "the type that the module is named after")]
mod checkpoint;
mod format;
mod manager;
mod native;
#[cfg(feature = "npz")]
mod npz;
mod objects;
mod reader;
#[cfg(feature = "safetensors")]
mod safetensors;
mod state_file;
mod storage;
#[cfg(feature = "tensorflow")]
pub mod tensorflow;
mod tensors;
#[cfg(test)]
mod testing;
mod weights;

use objects::{graph, restore, snapshot, status};
#[cfg(any(feature = "npz", feature = "safetensors"))]
use storage::replace;
use storage::{checksum, file, stored, temporary};

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
