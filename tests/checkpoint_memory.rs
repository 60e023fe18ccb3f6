//! No file makes the reader of the library's own container reserve more than a multiple of the bytes that are there.

use couplet::checkpoint::{Checkpoint, CheckpointReader};
use couplet::prelude::*;
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Most bytes that were in use at once to open a file and to read all of it, beyond those before.
fn peak(path: &std::path::Path) -> usize {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    if let Ok(reader) = CheckpointReader::open(path) {
        for entry in reader.entries() {
            let _ = reader.get(&entry.key); // an error is as good here
        }
    }
    HEAP.peak_usage().saturating_sub(before)
}

/// The only test here: the allocator counts for the whole process.
#[test]
fn memory_is_bounded_by_the_bytes_that_are_there() {
    let prefix = std::env::temp_dir().join(format!("couplet-memory-{}", std::process::id()));
    let v = Variable::from_tensor("v", Tensor::from([1.0f32, 2.0]));
    let words = Generator::seed(1);
    let path = Checkpoint::new().track("v", &v).track("g", &words).write(&prefix).unwrap();
    let path = path.with_extension("couplet");
    let bytes = std::fs::read(&path).unwrap();
    // Of a list that claims to be huge, serde makes room for 1 MiB at most; lists lie in lists, three deep.
    let bound = |length: usize| 256 * length + (3 << 20);
    let end = bytes.len() - 8;
    for at in 0..end {
        // In the header 252 to 254 announce a length of 4, 8 or 16 bytes: what follows becomes a huge one.
        for value in [0xff, 0x7f, 251, 252, 253, 254] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            std::fs::write(&path, damaged).unwrap();
            let peak = peak(&path);
            assert!(peak <= bound(bytes.len()), "byte {at} is {value}: {peak} bytes for {}", bytes.len());
        }
    }
    // The writer's name claims 60 MiB, in a header of 25 bytes; nothing is believed before the checksum, which is wrong, too.
    let mut claim = bytes[..24].to_vec();
    claim[16..24].copy_from_slice(&25u64.to_le_bytes());
    claim.extend([252, 0, 0, 0xc0, 3]);
    claim.resize(24 + 25, 0);
    std::fs::write(&path, &claim).unwrap();
    let peak = peak(&path);
    std::fs::remove_file(&path).unwrap();
    assert!(peak <= bound(claim.len()), "{peak} bytes for {}", claim.len());
}
