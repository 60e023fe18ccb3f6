//! Checkpoints: variables in files, matched by the path that leads to them.

mod binding;
pub(crate) mod file;
mod graph;
mod live;
mod native;
mod replace;
mod snapshot;
mod stored;
pub(crate) mod temporary;
#[cfg(test)]
mod testing;

pub use graph::{Attribute, Child, ObjectGraph, ObjectNode, Slot, escape, unescape};
pub use stored::{Entry, Raw, Stored, StoredDType, Strings};
