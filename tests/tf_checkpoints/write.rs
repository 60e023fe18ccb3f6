//! Files are whole or absent.

use std::fs;

use couplet::checkpoint::tensorflow::{Bundle, BundleWriter};
use couplet::checkpoint::{Raw, Stored, Strings};
use couplet::{Shape, Tensor};

use crate::fixture::Folder;
use crate::values::Value;

fn x(value: f32) -> Stored {
    Tensor::from([value; 4]).into()
}

fn first(bundle: &Bundle) -> Value {
    Value::from(&bundle.read(&bundle.entries()[0].key).unwrap())
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let folder = Folder::new();
    let mut writer = BundleWriter::new(folder.0.join("t")).max_shard_size(16);
    writer.add("a", &x(1.0)).unwrap();
    writer.add("b", &x(2.0)).unwrap();
    assert_eq!(folder.names().len(), 2);
    assert!(folder.names().iter().all(|name| name.ends_with(".tmp")));
    drop(writer);
    assert!(folder.names().is_empty());
}

#[test]
fn tensors_are_not_divided_among_files() {
    let folder = Folder::new();
    let prefix = folder.0.join("t");
    let mut writer = BundleWriter::new(&prefix).max_shard_size(40);
    // 16 bytes each: two in a file, and one of 80 bytes in its own.
    for key in ["a", "b", "c"] {
        writer.add(key, &x(1.0)).unwrap();
    }
    writer.add("d", &Tensor::from([0.5f32; 20]).into()).unwrap();
    writer.add("e", &x(2.0)).unwrap();
    writer.finish().unwrap();
    let bundle = Bundle::open(&prefix).unwrap();
    let places: Vec<_> = bundle.records().iter().map(|r| (r.shard, r.offset)).collect();
    assert_eq!(places, [(0, 0), (0, 16), (1, 0), (2, 0), (3, 0)]);
    let names = (0..4).map(|i| format!("t.data-0000{i}-of-00004")).chain(["t.index".to_owned()]);
    assert_eq!(folder.names(), names.collect::<Vec<_>>());
}

#[test]
fn a_checkpoint_is_replaced_only_when_asked() {
    let folder = Folder::new();
    let prefix = folder.0.join("t");
    let write = |value, overwrite, max_shard_size| {
        let mut writer = BundleWriter::new(&prefix).overwrite(overwrite).max_shard_size(max_shard_size);
        writer.add("a", &x(value)).unwrap();
        writer.add("b", &x(value)).unwrap();
        writer.finish()
    };
    write(1.0, false, 1).unwrap();
    let old = folder.names();
    assert_eq!(old.len(), 3);

    assert!(write(2.0, false, 100).unwrap_err().to_string().contains("there is a checkpoint of this name"));
    assert_eq!(folder.names(), old);
    assert_eq!(first(&Bundle::open(&prefix).unwrap()), Value::from(&x(1.0)));

    fs::write(folder.0.join("t.data-00000-of-00009"), b"of another").unwrap();
    write(3.0, true, 100).unwrap();
    assert_eq!(folder.names(), ["t.data-00000-of-00001", "t.data-00000-of-00009", "t.index"]);
    assert_eq!(first(&Bundle::open(&prefix).unwrap()), Value::from(&x(3.0)));
}

#[test]
fn an_open_checkpoint_is_readable_while_it_is_replaced() {
    let folder = Folder::new();
    let prefix = folder.0.join("t");
    let mut writer = BundleWriter::new(&prefix);
    writer.add("a", &x(1.0)).unwrap();
    writer.finish().unwrap();
    let old = Bundle::open(&prefix).unwrap();
    assert_eq!(first(&old), Value::from(&x(1.0)));
    let mut writer = BundleWriter::new(&prefix).overwrite(true);
    writer.add("a", &x(2.0)).unwrap();
    writer.finish().unwrap();
    // The data that it has opened is still there, though no name leads to it.
    assert_eq!(first(&old), Value::from(&x(1.0)));
    assert_eq!(first(&Bundle::open(&prefix).unwrap()), Value::from(&x(2.0)));
}

#[test]
fn what_cannot_be_written_is_refused_and_the_rest_is() {
    let folder = Folder::new();
    let prefix = folder.0.join("t");
    let raw = |dtype: &str, bytes: usize| {
        Stored::Raw(Raw { dtype: dtype.to_owned(), shape: Shape::from([2]), bytes: vec![0; bytes] })
    };
    let mut writer = BundleWriter::new(&prefix);
    writer.add("a", &x(1.0)).unwrap();
    for (key, stored) in [
        ("", x(1.0)),
        ("a", x(1.0)),
        ("\0a", x(1.0)),
        ("b", raw("complex64", 15)),
        ("b", raw("complex32", 8)),
        ("b", raw("variant", 7)),
        ("b", raw("string", 7)),
        ("b", Stored::Strings(Strings { shape: Shape::from([2]), values: vec![Vec::new()] })),
    ] {
        assert!(writer.add(key, &stored).is_err(), "{key:?}");
    }
    writer.add("b", &raw("complex64", 16)).unwrap();
    writer.finish().unwrap();
    assert_eq!(Bundle::open(&prefix).unwrap().entries().len(), 2);
}

#[test]
fn an_error_at_the_end_removes_all_files() {
    let folder = Folder::new();
    let prefix = folder.0.join("t");
    // A folder lies where the second data file belongs.
    let in_the_way = folder.0.join("t.data-00001-of-00002");
    fs::create_dir(&in_the_way).unwrap();
    let mut writer = BundleWriter::new(&prefix).max_shard_size(1);
    writer.add("a", &x(1.0)).unwrap();
    writer.add("b", &x(1.0)).unwrap();
    assert!(writer.finish().is_err());
    assert_eq!(folder.names(), ["t.data-00001-of-00002"]);
}

#[test]
fn folders_are_made() {
    let folder = Folder::new();
    let prefix = folder.0.join("a/b/t");
    let mut writer = BundleWriter::new(&prefix);
    writer.add("a", &x(1.0)).unwrap();
    writer.finish().unwrap();
    assert!(Bundle::open(&prefix).is_ok());
}
