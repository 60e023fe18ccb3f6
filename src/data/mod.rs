//! Datasets in memory: any number of aligned tensors, shuffled and cut into batches.
//!
//! ```
//! use couplet::Tensor;
//! use couplet::data::Dataset;
//!
//! let (images, labels) = (Tensor::zeros([10, 28, 28, 1], couplet::DType::F32)?, Tensor::from([7u8; 10]));
//! let train = Dataset::new((images, labels))?;
//! for batch in train.shuffle(42).batches(4) {
//!     let (images, labels) = batch?;
//!     assert_eq!(images.dim(0)?, labels.dim(0)?);
//! }
//! # Ok::<(), couplet::Error>(())
//! ```
//!
//! Several epochs, each in another order, that can be broken off and resumed exactly:
//!
//! ```
//! # use couplet::Tensor;
//! # use couplet::data::Dataset;
//! # let train = Dataset::new(Tensor::from([1, 2, 3, 4, 5]))?;
//! let batches = train.shuffle(42).batches(2).map(|x| x + 1).prefetch(2);
//! for epoch in 0..3 {
//!     for batch in &batches {
//!         let x = batch?;
//!         let state = batches.state(); // goes into a checkpoint; `batches.restore(state)` goes on behind this batch
//!     }
//! }
//! # Ok::<(), couplet::Error>(())
//! ```

mod aligned;
mod batches;
mod dataset;
mod order;
mod prefetch;

pub use aligned::Aligned;
pub use batches::{Batches, IntoIter, Iter};
pub use dataset::Dataset;
pub use order::DatasetState;
