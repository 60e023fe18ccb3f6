//! Files with a few bytes changed or cut off: nothing panics, and no other value is read.

use std::fs;

use couplet::checkpoint::tensorflow::Bundle;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::fixture::{Folder, all, root, with_suffix};
use crate::values::Value;

/// Small checkpoints of all kinds: plain ones, with slices, strings, variants, compressed, of the other byte order.
const SOURCES: [&str; 8] = [
    "corrupt/ok/t",
    "tiny/t",
    "slices/ckpt",
    "edge_shapes/ckpt-1",
    "toy_adam/ckpt-5",
    "big_endian/ckpt",
    "many_vars_snappy/ckpt",
    "dtypes/ckpt-1",
];

/// Reads all there is, and returns the values in the order of their keys.
fn read_all(bundle: &Bundle) -> Vec<(String, Option<Value>)> {
    let _ = (bundle.graph(), bundle.debug_string(), bundle.index_bytes());
    let read = |key: &str| bundle.read(key).ok().map(|stored| Value::from(&stored));
    bundle.entries().iter().map(|entry| (entry.key.clone(), read(&entry.key))).collect()
}

/// What comes of a checkpoint after `change`: with the index changed, or the data.
fn changed(source: &str, of_index: bool, change: impl Fn(&mut Vec<u8>)) {
    let source = root().join(source);
    if !with_suffix(&source, ".index").exists() {
        return;
    }
    let folder = Folder::new();
    let prefix = folder.0.join("t");
    for (suffix, is_changed) in [(".index", of_index), (".data-00000-of-00001", !of_index)] {
        let mut bytes = fs::read(with_suffix(&source, suffix)).unwrap();
        if is_changed {
            change(&mut bytes);
        }
        fs::write(with_suffix(&prefix, suffix), bytes).unwrap();
    }
    let whole = read_all(&Bundle::open(&source).unwrap());
    match Bundle::open(&prefix) {
        // CRC-32C finds every error of up to 32 neighbouring bits, and few others slip through it.
        Ok(bundle) => {
            for ((key, value), (whole_key, whole_value)) in read_all(&bundle).into_iter().zip(whole) {
                assert_eq!(key, whole_key);
                assert!(value.is_none() || value == whole_value, "{key} has another value");
            }
        }
        Err(_) => assert!(of_index, "the data is not looked at before it is read"),
    }
}

#[test]
fn any_bit_of_a_small_checkpoint() {
    for of_index in [true, false] {
        let source = root().join("tiny/t");
        let suffix = if of_index { ".index" } else { ".data-00000-of-00001" };
        let Ok(bytes) = fs::read(with_suffix(&source, suffix)) else { return };
        for bit in 0..8 * bytes.len() {
            changed("tiny/t", of_index, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn bytes_changed_anywhere(
        source in prop::sample::select(SOURCES.to_vec()),
        of_index in any::<bool>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        changed(source, of_index, |bytes| {
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
        });
    }

    #[test]
    fn files_cut_short(
        source in prop::sample::select(SOURCES.to_vec()),
        of_index in any::<bool>(),
        length in any::<prop::sample::Index>(),
    ) {
        changed(source, of_index, |bytes| bytes.truncate(length.index(bytes.len())));
    }

    /// The checksum is right, so that what stands behind it is looked at.
    #[test]
    fn blocks_changed_under_a_checksum_that_agrees(
        source in prop::sample::select(SOURCES.to_vec()),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let source = root().join(source);
        let Some(fixture) = all().into_iter().find(|fixture| fixture.prefix == source) else { return Ok(()) };
        let folder = Folder::new();
        let prefix = folder.0.join("t");
        let data = ".data-00000-of-00001";
        fs::copy(with_suffix(&source, data), with_suffix(&prefix, data)).unwrap();
        // All of these have one data block, but for the compressed one: it ends where the metaindex begins.
        let mut bytes = fixture.index();
        let footer = bytes.len() - 48;
        let (mut end, mut shift) = (0usize, 0);
        for &byte in &bytes[footer..] {
            end |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        let size = end - 5;
        for (at, byte) in &changes {
            let at = at.index(size);
            bytes[at] = *byte;
        }
        let crc = crc32c(&bytes[..=size]).rotate_right(15).wrapping_add(0xa282_ead8);
        bytes[size + 1..end].copy_from_slice(&crc.to_le_bytes());
        fs::write(with_suffix(&prefix, ".index"), bytes).unwrap();
        if let Ok(bundle) = Bundle::open(&prefix) {
            read_all(&bundle);
        }
    }
}

/// CRC-32C, a bit at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0u32, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}
