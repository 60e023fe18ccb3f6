//! Ops against plain loops over random shapes, layouts and arguments: no disagreement, and an error rather than a panic for
//! what does not fit.
//!
//! Numbers are small and whole, so that sums and products are exact in any order. Cases are drawn from a fixed seed:
//! `PROPTEST_CASES` raises their number, and `PROPTEST_RNG_SEED` draws others.

mod array;
mod broadcasting;
mod convolution;
mod einsum;
mod gather;
mod misuse;
mod padding;
mod pooling;
mod reductions;
mod slicing;
