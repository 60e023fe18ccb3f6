//! Plain loops over slices: no tape, no tensors.

pub mod parallel;
