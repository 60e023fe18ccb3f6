//! Checkpoints through the public interface: what is written, what a restore does, and what it says when it cannot.

mod background;
mod graph;
mod paths;
mod restore;
mod resume;
mod status;
mod support;
