//! The objects of a program and those of a file, and how values go from one to the other.

mod binding;
pub(super) mod graph;
mod live;
pub(super) mod restore;
pub(super) mod snapshot;
pub(super) mod status;

use super::storage::{file, stored};

pub(super) use binding::Binding;
pub(super) use live::{Live, Root};
