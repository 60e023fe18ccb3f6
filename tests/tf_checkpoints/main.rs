//! Checkpoints of TensorFlow against files that TensorFlow wrote, and against files that are broken.
//!
//! `COUPLET_TF_FIXTURES=DIR cargo test --release --test tf_checkpoints` takes the files of another folder in place of
//! `tests/fixtures/tf_checkpoints`, whose README explains what lies where.
#![cfg(feature = "tensorflow")]

mod corrupt;
mod fixture;
mod flips;
mod read;
mod rewrite;
mod round_trip;
mod values;
mod write;
