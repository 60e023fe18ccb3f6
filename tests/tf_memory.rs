//! No file makes the reader of TensorFlow's checkpoints reserve more than a multiple of the bytes that are there.
#![cfg(feature = "tensorflow")]

use std::fs;
use std::path::{Path, PathBuf};

use couplet::checkpoint::tensorflow::Bundle;
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// The bytes of all files beside a checkpoint.
fn size(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len() as usize).sum()
}

/// Most bytes that were in use at once to open a checkpoint and to read all of it, beyond those before.
fn peak(prefix: &Path) -> usize {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    if let Ok(bundle) = Bundle::open(prefix) {
        let _ = bundle.graph();
        for entry in bundle.entries() {
            let _ = bundle.read(&entry.key);
        }
    }
    HEAP.peak_usage() - before
}

fn fixtures() -> PathBuf {
    let default = || concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tf_checkpoints").into();
    std::env::var_os("COUPLET_TF_FIXTURES").map_or_else(default, PathBuf::from)
}

/// The only test here: the allocator counts for the whole process.
#[test]
fn memory_is_bounded_by_the_bytes_that_are_there() {
    // An entry of 20 bytes becomes a record of 200 and its description. The fixed part is for paths, names and messages.
    let bound = |size: usize| 16 * size + (8 << 10);
    for folder in fs::read_dir(fixtures().join("corrupt")).unwrap().map(|entry| entry.unwrap().path()) {
        if folder.is_dir() {
            let (peak, size) = (peak(&folder.join("t")), size(&folder));
            println!("{}: {peak} bytes for {size}", folder.display());
            assert!(peak <= bound(size), "{}: {peak} bytes for {size}", folder.display());
        }
    }
    // A whole checkpoint of more than its own size would not pass: 1 MiB of elements is read into 1 MiB.
    let prefix = std::env::temp_dir().join(format!("couplet-tf-memory-{}", std::process::id()));
    let mut writer = couplet::checkpoint::tensorflow::BundleWriter::new(&prefix);
    let x = couplet::Tensor::zeros([1 << 18], couplet::DType::F32).unwrap().into();
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    writer.add("x", &x).unwrap();
    writer.finish().unwrap();
    let written = HEAP.peak_usage() - before;
    drop(x);
    couplet::release_cached_memory();
    let read = peak(&prefix);
    for suffix in ["index", "data-00000-of-00001"] {
        fs::remove_file(prefix.with_extension(suffix)).unwrap();
    }
    assert!(written < 800 << 10, "{written} bytes to write 1 MiB: a second copy of it");
    assert!(read < (1 << 20) + (200 << 10), "{read} bytes to read 1 MiB");
}
