//! Procedural macros of the `couplet` crate.
