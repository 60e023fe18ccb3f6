//! Whatever is written comes back.

use couplet::checkpoint::tensorflow::{Bundle, BundleWriter};
use couplet::checkpoint::{Attribute, Child, ObjectGraph, ObjectNode, Raw, Slot, Stored, Strings};
use couplet::{DType, Shape, Tensor};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::fixture::Folder;
use crate::values::Value;

/// A tensor of this dtype and shape with the numbers 0, 1, 2, ... in it.
fn counted(shape: &[usize], dtype: DType) -> Stored {
    let size: usize = shape.iter().product();
    let x = Tensor::arange(0.0, size as f64, 1.0, DType::F64).unwrap();
    Stored::Tensor(x.reshape(shape).unwrap().cast(dtype).unwrap())
}

/// Writes, reads, and compares.
fn comes_back(tensors: &[(String, Stored)], align: usize, max_shard_size: u64) {
    let folder = Folder::new();
    let prefix = folder.0.join("ckpt");
    let mut writer = BundleWriter::new(&prefix).align(align).max_shard_size(max_shard_size);
    for (key, stored) in tensors {
        writer.add(key, stored).unwrap();
    }
    writer.finish().unwrap();
    let bundle = Bundle::open(&prefix).unwrap();
    assert_eq!(bundle.entries().len(), tensors.len());
    assert!(bundle.entries().is_sorted_by(|a, b| a.key.as_bytes() < b.key.as_bytes()));
    for (key, stored) in tensors {
        assert_eq!(Value::from(&bundle.read(key).unwrap()), Value::from(stored), "{key}");
    }
    assert!(bundle.records().iter().all(|record| record.offset % align as u64 == 0));
}

#[test]
fn every_dtype_in_shapes_from_scalars_to_rank_20() {
    let shapes: [&[usize]; 8] =
        [&[], &[1], &[0], &[3, 0, 2], &[2, 3], &[1; 20], &[2, 1, 2, 1, 2, 1, 2, 1], &[70_000]];
    let mut tensors = Vec::new();
    for dtype in DType::ALL {
        for (i, shape) in shapes.iter().enumerate() {
            tensors.push((format!("{dtype}/{i}"), counted(shape, dtype)));
        }
    }
    comes_back(&tensors, 1, u64::MAX);
    comes_back(&tensors, 64, 100_000);
}

#[test]
fn views_are_written_in_their_own_order() {
    let x = Tensor::arange(0.0, 6.0, 1.0, DType::F32).unwrap().reshape([2, 3]).unwrap();
    let x = x.transpose(&[1, 0]).unwrap();
    comes_back(&[("x".to_owned(), Stored::Tensor(x))], 1, u64::MAX);
}

#[test]
fn odd_bits_of_floats_are_kept() {
    let x =
        [f32::from_bits(0x7fc1_2345), f32::from_bits(0xff80_0001), -0.0, f32::from_bits(1), f32::INFINITY];
    comes_back(&[("x".to_owned(), Tensor::from(x).into())], 1, u64::MAX);
}

#[test]
fn strings_of_every_length() {
    let of = |shape: &[usize], lengths: &[usize]| {
        let values = lengths.iter().map(|&n| (0..n).map(|i| i as u8).collect()).collect();
        Stored::Strings(Strings { shape: Shape::from(shape), values })
    };
    let tensors = [
        ("none".to_owned(), of(&[0], &[])),
        ("empty".to_owned(), of(&[], &[0])),
        ("mixed".to_owned(), of(&[2, 3], &[0, 1, 127, 128, 300, 300_000])),
    ];
    comes_back(&tensors, 1, u64::MAX);
    comes_back(&tensors, 16, 1000);
}

#[test]
fn dtypes_that_tensors_do_not_have() {
    let of = |dtype: &str, width: usize| {
        let bytes = (0..6 * width).map(|i| i as u8).collect();
        (dtype.to_owned(), Stored::Raw(Raw { dtype: dtype.to_owned(), shape: Shape::from([2, 3]), bytes }))
    };
    let tensors = [
        of("complex64", 8),
        of("complex128", 16),
        of("qint8", 1),
        of("quint8", 1),
        of("qint16", 2),
        of("quint16", 2),
        of("qint32", 4),
        of("float8_e5m2", 1),
        of("float8_e4m3fn", 1),
        of("int4", 1),
        of("uint4", 1),
    ];
    comes_back(&tensors, 1, u64::MAX);
}

#[test]
fn no_tensors_at_all() {
    comes_back(&[], 1, u64::MAX);
}

fn stored() -> impl Strategy<Value = Stored> {
    let shape = || vec(0usize..4, 0..5);
    let tensor = (0..DType::ALL.len(), shape()).prop_map(|(i, shape)| counted(&shape, DType::ALL[i]));
    let strings = shape().prop_flat_map(|shape| {
        let size: usize = shape.iter().product();
        vec(vec(any::<u8>(), 0..200), size)
            .prop_map(move |values| Stored::Strings(Strings { shape: Shape::from(&shape[..]), values }))
    });
    prop_oneof![3 => tensor, 1 => strings]
}

fn graph() -> impl Strategy<Value = ObjectGraph> {
    (1usize..12).prop_flat_map(|count| {
        let child = (".{0,6}", 0..count).prop_map(|(name, node)| Child { name, node });
        let attribute = (".{0,6}", ".{0,6}", ".{0,6}").prop_map(|(name, full_name, key)| Attribute {
            name,
            full_name,
            key,
        });
        let slot = (0..count, ".{0,6}", 0..count).prop_map(|(variable, name, slot_variable)| Slot {
            variable,
            name,
            slot_variable,
        });
        let saver = prop::option::of((".{0,6}", ".{0,6}"));
        let node = (vec(child, 0..4), vec(attribute, 0..3), vec(slot, 0..3), any::<Option<bool>>(), saver)
            .prop_map(|(children, attributes, slots, has_values, saver)| ObjectNode {
                children,
                attributes,
                slots,
                has_values,
                saver,
            });
        vec(node, count).prop_map(|nodes| ObjectGraph { nodes })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn any_tensors_in_any_number_of_files(
        tensors in btree_map("[^\0].{0,40}", stored(), 0..40),
        align in prop::sample::select(vec![1usize, 8, 64]),
        max_shard_size in prop::sample::select(vec![0u64, 100, 1000, u64::MAX]),
    ) {
        comes_back(&tensors.into_iter().collect::<Vec<_>>(), align, max_shard_size);
    }

    #[test]
    fn any_object_graph(graph in graph()) {
        let folder = Folder::new();
        let prefix = folder.0.join("ckpt");
        let mut writer = BundleWriter::new(&prefix);
        writer.add_graph(&graph).unwrap();
        writer.finish().unwrap();
        let bundle = Bundle::open(&prefix).unwrap();
        prop_assert!(bundle.entries().is_empty());
        prop_assert_eq!(bundle.graph().unwrap(), Some(graph));
    }
}
