//! What TensorFlow wrote is written again, byte for byte.

use std::fs;

use couplet::checkpoint::tensorflow::{Bundle, BundleWriter};

use crate::fixture::{Folder, all, root, with_suffix};
use crate::values::Value;

const GRAPH: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";

#[test]
fn every_index_is_encoded_to_the_same_bytes() {
    for fixture in all() {
        let again = fixture.open().index_bytes();
        let original = if fixture.rewritten {
            fs::read(root().join("many_vars/ckpt-1.index")).unwrap()
        } else {
            fixture.index()
        };
        assert!(again == original, "{}", fixture.prefix.display());
    }
}

/// The keys of the tensors in the order of their data.
fn in_order(bundle: &Bundle) -> Vec<String> {
    let mut records: Vec<_> = bundle.records().iter().filter(|r| !r.key.starts_with(&[0])).collect();
    records.sort_by_key(|r| (r.shard, r.offset, r.size));
    records.iter().map(|r| String::from_utf8(r.key.clone()).unwrap()).collect()
}

fn copy(bundle: &Bundle, mut writer: BundleWriter) {
    for key in in_order(bundle) {
        if key == GRAPH {
            writer.add_graph(&bundle.graph().unwrap().unwrap()).unwrap();
        } else {
            writer.add(&key, &bundle.read(&key).unwrap()).unwrap();
        }
    }
    writer.finish().unwrap();
}

#[test]
fn tensors_in_the_same_order_give_the_same_files() {
    let mut compared = 0;
    for fixture in all() {
        let (bundle, folder) = (fixture.open(), Folder::new());
        let sliced = bundle.records().iter().any(|record| record.key.starts_with(&[0]));
        // One shard as TensorFlow writes it, of a machine such as this one.
        if sliced || bundle.shards() > 1 || fixture.prefix.ends_with("big_endian/ckpt") || fixture.rewritten {
            continue;
        }
        let prefix = folder.0.join("again");
        let align = if fixture.prefix.ends_with("handmade/ckpt") { 64 } else { 1 };
        copy(&bundle, BundleWriter::new(&prefix).align(align));
        assert_eq!(folder.names(), ["again.data-00000-of-00001", "again.index"]);
        for suffix in [".data-00000-of-00001", ".index"] {
            let (ours, original) = (with_suffix(&prefix, suffix), with_suffix(&fixture.prefix, suffix));
            assert!(fs::read(&ours).unwrap() == fs::read(&original).unwrap(), "{}", original.display());
        }
        compared += 1;
    }
    assert!(compared > 0);
}

#[test]
fn slices_shards_and_the_other_byte_order_become_one_plain_file() {
    for fixture in all() {
        let (bundle, folder) = (fixture.open(), Folder::new());
        let prefix = folder.0.join("plain");
        copy(&bundle, BundleWriter::new(&prefix));
        let plain = Bundle::open(&prefix).unwrap();
        assert_eq!(plain.shards(), 1);
        assert_eq!(plain.debug_string(), bundle.debug_string());
        assert_eq!(plain.graph().unwrap(), bundle.graph().unwrap());
        for entry in bundle.entries() {
            let value = |bundle: &Bundle| Value::from(&bundle.read(&entry.key).unwrap());
            assert_eq!(value(&plain), value(&bundle), "{}", entry.key);
        }
    }
}
