//! What all formats of files share: their interface, the values they hold, and how files come into being.

pub(crate) mod checksum;
pub(crate) mod file;
#[cfg(any(feature = "npz", feature = "safetensors"))]
pub(crate) mod replace;
pub(crate) mod stored;
pub(crate) mod temporary;

use super::objects::graph;
