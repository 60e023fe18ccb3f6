//! The files in `tests/fixtures/fuzz`, kept from runs of the fuzz targets, read as the targets read them.
#![cfg(all(feature = "npz", feature = "safetensors", feature = "tensorflow"))]

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::path::Path;

/// Reads the corpus of a target; how many files it has.
fn read_corpus(target: &str) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fuzz").join(target);
    let mut files = 0;
    for file in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = file.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let outcome = std::panic::catch_unwind(|| targets::run(target, &bytes));
        assert!(outcome.is_ok(), "{} is not read as promised", path.display());
        files += 1;
    }
    targets::clean(target);
    files
}

#[test]
fn every_file_of_the_corpus_is_read_or_refused_as_promised() {
    for (target, _) in targets::TARGETS {
        assert!(read_corpus(target) > 0, "{target} has no corpus");
    }
}
