//! Plain loops over slices: no tape, no tensors.

pub(crate) mod elementwise;
pub(crate) mod layout;
pub mod parallel;
pub(crate) mod reduce;
