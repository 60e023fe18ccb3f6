//! Plain loops over slices: no tape, no tensors.

pub(crate) mod elementwise;
pub(crate) mod lanes;
pub(crate) mod layout;
pub mod parallel;
pub(crate) mod real;
pub(crate) mod reduce;
