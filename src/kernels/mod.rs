//! Plain loops over slices: no tape, no tensors.

pub(crate) mod elementwise;
pub(crate) mod lanes;
pub(crate) mod layout;
pub(crate) mod math;
pub mod parallel;
pub(crate) mod reduce;
