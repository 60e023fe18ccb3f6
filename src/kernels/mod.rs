//! Plain loops over slices: no tape, no tensors.

pub(crate) mod elementwise;
pub(crate) mod layout;
pub mod parallel;
pub(crate) mod qr;
pub(crate) mod quantile;
pub(crate) mod random;
pub(crate) mod reduce;
