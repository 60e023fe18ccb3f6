//! Checkpoints in the format of TensorFlow 2: `PREFIX.index` and `PREFIX.data-00000-of-00001`, read and written without it.
//!
//! ```
//! use couplet::Tensor;
//! use couplet::checkpoint::Stored;
//! use couplet::checkpoint::tensorflow::{Bundle, BundleWriter};
//!
//! # let folder = std::env::temp_dir().join(format!("couplet_bundle_{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! let prefix = folder.join("ckpt-1");
//! let mut writer = BundleWriter::new(&prefix);
//! writer.add("w/.ATTRIBUTES/VARIABLE_VALUE", &Tensor::from([1.5f32, -2.0]).into())?;
//! writer.finish()?;
//!
//! let bundle = Bundle::open(&prefix)?;
//! assert_eq!(bundle.debug_string(), "w/.ATTRIBUTES/VARIABLE_VALUE (DT_FLOAT) [2]\n");
//! let Stored::Tensor(w) = bundle.read("w/.ATTRIBUTES/VARIABLE_VALUE")? else { panic!("not a tensor") };
//! assert_eq!(w.to_vec::<f32>()?, [1.5, -2.0]);
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), couplet::Error>(())
//! ```

mod block;
mod bundle;
mod checksum;
mod data;
mod dtypes;
mod objects;
mod partition;
mod proto;
mod record;
mod slice_key;
mod strings;
mod table;
mod variants;
mod varint;
mod writer;

pub use bundle::Bundle;
pub use record::{Extent, Record};
pub use writer::BundleWriter;
