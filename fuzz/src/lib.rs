//! What the fuzz targets and `tests/fuzz_corpus.rs` do with a file: everything that reads it must come to an end with a value or
//! with an error that names a place in the file.
//!
//! The checksums of a mutated file are made right again where they would hide what lies behind them.

mod checked;
mod idx;
mod names;
mod native;
mod state;
mod tensorflow;

/// The targets, each with what reads its files.
pub const TARGETS: [(&str, fn(&[u8])); 10] = [
    ("native", native::run),
    ("tensorflow_index", tensorflow::index),
    ("tensorflow_entries", tensorflow::entries),
    ("tensorflow_graph", tensorflow::graph),
    ("safetensors", names::safetensors),
    ("safetensors_index", names::safetensors_index),
    ("npz", names::npz),
    ("npy", names::npy),
    ("idx", idx::run),
    ("state", state::run),
];

/// Gives `bytes` to a target.
///
/// # Panics
/// The library does not do with them what it promises.
pub fn run(target: &str, bytes: &[u8]) {
    let (_, read) = TARGETS.iter().find(|(name, _)| *name == target).expect("the name of a target");
    read(bytes);
}

/// Removes the temporary files of a target.
pub fn clean(target: &str) {
    let _ = std::fs::remove_dir_all(checked::place(target));
}
