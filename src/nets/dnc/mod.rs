//! Parts of the differentiable neural computer: a network that reads from and writes to a memory by weighted addresses
//! (Graves et al. 2016, "Hybrid computing using a neural network with dynamic external memory").
//!
//! A memory is `[batch, rows, width]`, an address `[batch, heads, rows]`: how much each head attends to each row. A head
//! that attends to a single row reads, erases and writes that row alone:
//!
//! ```
//! use couplet::nets::dnc;
//! use couplet::prelude::*;
//! let memory = Tensor::from([[[1.0f32, 2.0], [3.0, 4.0]]]);
//! let second_row = Tensor::from([[[0.0f32, 1.0]]]);
//! assert_eq!(dnc::read(&memory, &second_row)?.to_vec::<f32>()?, [3.0, 4.0]);
//! let (everything, values) = (Tensor::from([[[1.0f32, 1.0]]]), Tensor::from([[[5.0f32, 6.0]]]));
//! let memory = dnc::erase_and_write(&memory, &second_row, &everything, &values)?;
//! assert_eq!(memory.to_vec::<f32>()?, [1.0, 2.0, 5.0, 6.0]);
//! # Ok::<(), couplet::Error>(())
//! ```

mod apply_linear;
mod controller;
mod feed_forward;
mod memory;
mod permutation;
mod read;
mod segment;
mod write;

pub use apply_linear::apply_linear;
pub use controller::{deep_core, get_controller_ctor};
pub use feed_forward::FeedForward;
pub use permutation::{batch_gather, batch_invert_permutation};
pub use read::read;
pub use segment::segment_dim;
pub use write::{additive_write, erase, erase_and_write, erase_rows};
