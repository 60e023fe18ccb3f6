//! The container: what is written comes back, and what is damaged is refused by name.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::super::file::TensorFile;
use super::super::graph::{Attribute, Child, ObjectGraph, ObjectNode};
use super::super::stored::{Raw, Stored, StoredDType, Strings};
use super::super::testing::{Folder, fault};
use super::header::{Header, Place};
use super::{NativeFile, write};
use crate::error::{Error, Fault, Result};
use crate::tensor::{Shape, Tensor};
use crate::{DType, codec};

fn tensor(shape: &[usize], dtype: DType, bytes: &[u8]) -> Stored {
    Tensor::from_bytes(bytes, Shape::from(shape.to_vec()), dtype).unwrap().into()
}

/// The bits of a value.
fn bits(value: &Stored) -> Vec<u8> {
    match value {
        Stored::Tensor(x) => {
            let mut bytes = Vec::new();
            x.write_bytes(&mut bytes).unwrap();
            bytes
        }
        Stored::Strings(strings) => strings.values.concat(),
        Stored::Raw(raw) => raw.bytes.clone(),
    }
}

fn assert_same(got: &Stored, want: &Stored) {
    assert_eq!((got.dtype(), got.shape(), bits(got)), (want.dtype(), want.shape(), bits(want)));
}

fn opened(folder: &Folder, values: &[(String, Stored)]) -> NativeFile {
    let path = folder.path("x.couplet");
    write(&path, None, values).unwrap();
    NativeFile::open(&path).unwrap()
}

/// Everything that a file holds.
fn read_all(path: &Path) -> Result<()> {
    let file = NativeFile::open(path)?;
    file.entries().iter().try_for_each(|entry| file.read(&entry.key).map(drop))
}

/// One tensor of each dtype, strings, raw elements, no elements, no axes.
fn samples() -> Vec<(String, Stored)> {
    let mut values: Vec<(String, Stored)> = DType::ALL
        .into_iter()
        .map(|dtype| {
            let byte = |i: usize| if dtype == DType::Bool { i % 2 } else { i * 37 + 200 } as u8;
            let bytes: Vec<u8> = (0..6 * dtype.size()).map(byte).collect();
            (format!("of {dtype}"), tensor(&[2, 3], dtype, &bytes))
        })
        .collect();
    // A NaN with a payload and a negative zero keep their bits.
    let odd: Vec<u8> = [0x7fc0_1234u32, 0x8000_0000].iter().flat_map(|x| x.to_le_bytes()).collect();
    values.push(("odd".into(), tensor(&[2], DType::F32, &odd)));
    values.push(("scalar".into(), tensor(&[], DType::I64, &7i64.to_le_bytes())));
    values.push(("empty".into(), tensor(&[3, 0, 2], DType::F64, &[])));
    let words = vec![b"".to_vec(), vec![0xff; 127], vec![1; 128], "ü".into(), vec![0; 300], b"x".to_vec()];
    values.push(("words".into(), Stored::Strings(Strings { shape: [2, 3].into(), values: words })));
    values.push(("word".into(), Stored::Strings(Strings::scalar("bytes"))));
    let raw = Raw { dtype: "complex64".into(), shape: [2].into(), bytes: (0..16).collect() };
    values.push(("raw".into(), Stored::Raw(raw)));
    values.push(("".into(), tensor(&[1], DType::U8, &[9])));
    values.push(("last and empty".into(), tensor(&[0], DType::F32, &[])));
    values
}

#[test]
fn every_kind_of_value_comes_back_bit_for_bit() {
    let (folder, values) = (Folder::new(), samples());
    let file = opened(&folder, &values);
    assert_eq!(file.entries().len(), values.len());
    assert!(file.entries().is_sorted_by(|a, b| a.key.as_bytes() < b.key.as_bytes()));
    for (key, want) in &values {
        assert_same(&file.read(key).unwrap(), want);
        let entry = file.entries().iter().find(|entry| entry.key == *key).unwrap();
        assert_eq!((&entry.dtype, &entry.shape[..]), (&want.dtype(), want.shape()));
    }
    assert_eq!(file.graph().unwrap(), None);
    assert_eq!(folder.names(), ["x.couplet"]);
}

#[test]
fn a_view_is_written_in_its_own_order() {
    let folder = Folder::new();
    let x = Tensor::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]).transpose(&[1, 0]).unwrap();
    let file = opened(&folder, &[("x".into(), x.into())]);
    let Stored::Tensor(x) = file.read("x").unwrap() else { panic!("a tensor") };
    assert_eq!(x.shape(), &[3, 2]);
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
}

#[test]
fn tensors_begin_at_multiples_of_64_bytes_and_zeros_lie_between() {
    let folder = Folder::new();
    let values = samples();
    let file = opened(&folder, &values);
    let bytes = std::fs::read(folder.path("x.couplet")).unwrap();
    let mut places: Vec<&Place> = file.places.iter().map(|(place, _)| place).collect();
    places.sort_by_key(|place| place.offset);
    for pair in places.windows(2) {
        let end = (pair[0].offset + pair[0].bytes) as usize;
        assert!(end <= pair[1].offset as usize);
        assert!(bytes[end..pair[1].offset as usize].iter().all(|&byte| byte == 0));
    }
    assert!(places.iter().all(|place| place.offset % 64 == 0));
    let last = places.last().unwrap();
    assert_eq!(last.offset + last.bytes, bytes.len() as u64);
}

#[test]
fn a_file_of_nothing_is_a_file() {
    let folder = Folder::new();
    assert!(opened(&folder, &[]).entries().is_empty());
}

#[test]
fn a_key_that_is_not_there_is_named() {
    let folder = Folder::new();
    let e = opened(&folder, &samples()).read("absent").unwrap_err();
    let (kind, _, tensor) = fault(&folder.path("x.couplet"), &e);
    assert_eq!((kind, tensor.as_deref()), (Fault::MissingTensor, Some("absent")));
}

/// CRC-32C bit by bit: the reflected polynomial 0x82f63b78.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ (0x82f6_3b78 * (crc & 1));
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

/// A container with this header and these bytes from `end of the checksums` on, sealed as a writer does.
fn sealed(header: &[u8], checksums: &[u32]) -> Vec<u8> {
    let mut covered = (header.len() as u64).to_le_bytes().to_vec();
    covered.extend(header);
    checksums.iter().for_each(|checksum| covered.extend(checksum.to_le_bytes()));
    [b"CPLTCKPT".as_slice(), &1u32.to_le_bytes(), &crc(&covered).to_le_bytes(), &covered].concat()
}

/// Version 1 as its first writer wrote it, byte by byte: it stays readable.
#[test]
fn version_1_stays_readable() {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let key = "v/.ATTRIBUTES/VARIABLE_VALUE";
    let header = [
        text("0.1.0"),
        vec![1, 2],                    // there is a graph, of two nodes
        vec![1],                       // the root has one child
        [text("v"), vec![1]].concat(), // of this name, node 1
        vec![0, 0, 1, 1, 0],           // no attributes, no slots; it has values; no saver
        vec![0, 1],                    // node 1 has no children and one attribute
        [text("VARIABLE_VALUE"), text("global/v"), text(key)].concat(),
        vec![0, 1, 1, 0], // no slots; it has values; no saver
        vec![1],          // one tensor
        [text(key), text("f32")].concat(),
        vec![1, 2],      // of rank 1, 2 elements
        vec![251, 0, 1], // at 256: numbers from 251 on are 251 and two bytes
        vec![8],         // 8 bytes
    ]
    .concat();
    let elements: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut bytes = sealed(&header, &[crc(&elements)]);
    assert!(bytes.len() < 256);
    bytes.resize(256, 0);
    bytes.extend(&elements);
    let folder = Folder::new();
    let file = NativeFile::open(&folder.file("old.couplet", bytes)).unwrap();
    assert_same(&file.read(key).unwrap(), &Tensor::from([1.5f32, -2.0]).into());
    let attribute =
        Attribute { name: "VARIABLE_VALUE".into(), full_name: "global/v".into(), key: key.into() };
    let nodes = vec![
        ObjectNode {
            children: vec![Child { name: "v".into(), node: 1 }],
            has_values: Some(true),
            ..ObjectNode::default()
        },
        ObjectNode { attributes: vec![attribute], has_values: Some(true), ..ObjectNode::default() },
    ];
    assert_eq!(file.graph().unwrap(), Some(ObjectGraph { nodes }));
}

#[test]
fn other_versions_and_other_files_are_refused() {
    let folder = Folder::new();
    let mut bytes = sealed(&[], &[]);
    bytes[8] = 2;
    let path = folder.file("new.couplet", bytes);
    let e = NativeFile::open(&path).unwrap_err();
    assert_eq!(fault(&path, &e), (Fault::UnsupportedVersion, Some(8), None));
    assert!(e.to_string().contains("version 2, this release reads version 1"), "{e}");
    for content in
        ["PK\u{3}\u{4}, as other files begin", "CPLTCKP_", "\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}"]
    {
        let path = folder.file("other.couplet", content);
        assert_eq!(fault(&path, &NativeFile::open(&path).unwrap_err()).0, Fault::BadMagic, "{content:?}");
    }
    let absent = NativeFile::open(&folder.path("absent")).unwrap_err();
    assert!(matches!(&absent, Error::File { path, .. } if path.ends_with("absent")), "{absent}");
}

/// A small file of three tensors, and where its elements lie.
fn small(folder: &Folder) -> (PathBuf, Vec<u8>, Vec<Place>) {
    let path = folder.path("small.couplet");
    let values = [
        ("a".to_owned(), tensor(&[3], DType::F32, &[7; 12])),
        ("b".to_owned(), Stored::Strings(Strings::scalar("some state"))),
        ("c".to_owned(), tensor(&[2], DType::Bool, &[0, 1])),
    ];
    write(&path, Some(&ObjectGraph { nodes: vec![ObjectNode::default()] }), &values).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let places = NativeFile::open(&path).unwrap().places.into_iter().map(|(place, _)| place).collect();
    (path, bytes, places)
}

#[test]
fn a_file_that_ends_anywhere_is_refused() {
    let folder = Folder::new();
    let (path, bytes, _) = small(&folder);
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let e = read_all(&path).expect_err("it ends too early");
        let (kind, ..) = fault(&path, &e);
        let expected = [Fault::Truncated, Fault::OutOfRange, Fault::BadMagic, Fault::MalformedHeader];
        assert!(expected.contains(&kind), "{length} bytes: {e}");
    }
}

#[test]
fn every_byte_that_is_not_what_was_written_is_found_and_named() {
    let folder = Folder::new();
    let (path, bytes, places) = small(&folder);
    let first = places.iter().map(|place| place.offset).min().unwrap() as usize;
    let is_in = |at: usize, place: &Place| (place.offset..place.offset + place.bytes).contains(&(at as u64));
    let front = bytes[..first].iter().rposition(|&byte| byte != 0).unwrap();
    for at in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= change;
            std::fs::write(&path, &damaged).unwrap();
            let outcome = read_all(&path);
            if let Some(place) = places.iter().find(|place| is_in(at, place)) {
                let e = outcome.expect_err("an element is another one");
                let want = (Fault::TensorChecksum, Some(place.offset), Some(place.key.clone()));
                assert_eq!(fault(&path, &e), want, "byte {at}: {e}");
            } else if at <= front {
                let e = outcome.expect_err("the header is another one");
                let (kind, offset, _) = fault(&path, &e);
                let expected: &[Fault] = match at {
                    0..8 => &[Fault::BadMagic],
                    8..12 => &[Fault::UnsupportedVersion],
                    12..16 => &[Fault::HeaderChecksum],
                    _ => &[Fault::HeaderChecksum, Fault::MalformedHeader, Fault::Truncated],
                };
                assert!(expected.contains(&kind), "byte {at}: {e}");
                assert!(offset.is_some(), "byte {at}: {e}");
            }
        }
    }
}

fn place(dtype: &str, dims: &[u64], offset: u64, bytes: u64) -> Place {
    Place { key: "net/w".into(), dtype: dtype.into(), dims: dims.to_vec(), offset, bytes }
}

#[test]
fn what_a_sealed_header_claims_is_checked_before_it_is_believed() {
    let folder = Folder::new();
    let high = u64::MAX;
    let cases = [
        (place("f32", &[2], 128, 9), Fault::SizeMismatch, "f32[2] does not have 9 bytes"),
        (place("f32", &[2], 1 << 20, 8), Fault::OutOfRange, "end beyond the file"),
        (place("f32", &[2], high, 8), Fault::OutOfRange, "end beyond the file"),
        (place("f32", &[high], 128, 4), Fault::MalformedEntry, "beyond any memory"),
        (place("u8", &[0, high], 128, 0), Fault::MalformedEntry, "beyond any memory"),
        (place("f32", &[1 << 32, 1 << 32], 128, 0), Fault::MalformedEntry, "beyond any memory"),
        (place("f32", &[1 << 62], 128, 0), Fault::SizeMismatch, "does not have 0 bytes"),
    ];
    for (place, want, problem) in cases {
        let header = Header { writer: "0".into(), graph: None, tensors: vec![place.clone()] };
        let mut bytes = sealed(&codec::encode(&header).unwrap(), &[0]);
        bytes.resize(256, 0);
        let path = folder.file("claims.couplet", bytes);
        let e = NativeFile::open(&path).unwrap_err();
        assert_eq!(fault(&path, &e), (want, Some(place.offset), Some("net/w".to_owned())), "{e}");
        assert!(e.to_string().contains(problem), "{e}");
    }
}

#[test]
fn two_tensors_of_one_key_are_refused() {
    let folder = Folder::new();
    let tensors = vec![place("u8", &[1], 128, 1), place("u8", &[1], 192, 1)];
    let header = Header { writer: "0".into(), graph: None, tensors };
    let mut bytes = sealed(&codec::encode(&header).unwrap(), &[0, 0]);
    bytes.resize(256, 0);
    let path = folder.file("twice.couplet", bytes);
    let e = NativeFile::open(&path).unwrap_err();
    assert_eq!(fault(&path, &e).0, Fault::MalformedHeader);
    assert!(e.to_string().contains("two tensors of the key \"net/w\""), "{e}");
}

#[test]
fn elements_that_are_no_values_of_their_dtype_are_refused() {
    let folder = Folder::new();
    let strings = codec::encode(&vec![b"a".to_vec(), b"b".to_vec()]).unwrap();
    let cases = [("bool", vec![2u8, 0], 2), ("string", strings.clone(), 3), ("string", vec![9; 4], 1)];
    for (dtype, content, dim) in cases {
        let places = vec![place(dtype, &[dim], 192, content.len() as u64)];
        let header = Header { writer: "0".into(), graph: None, tensors: places };
        let mut bytes = sealed(&codec::encode(&header).unwrap(), &[crc(&content)]);
        bytes.resize(192, 0);
        bytes.extend(content);
        let path = folder.file("content.couplet", bytes);
        let e = NativeFile::open(&path).unwrap().read("net/w").unwrap_err();
        assert_eq!(fault(&path, &e), (Fault::MalformedTensor, Some(192), Some("net/w".to_owned())), "{e}");
    }
}

#[test]
fn a_dtype_that_is_not_known_is_listed_and_read_as_it_is() {
    let folder = Folder::new();
    let header = Header { writer: "9".into(), graph: None, tensors: vec![place("f8", &[3], 128, 3)] };
    let mut bytes = sealed(&codec::encode(&header).unwrap(), &[crc(b"abc")]);
    bytes.resize(128, 0);
    bytes.extend(b"abc");
    let file = NativeFile::open(&folder.file("later.couplet", bytes)).unwrap();
    assert_eq!(file.entries()[0].dtype, StoredDType::Other("f8".into()));
    let want = Raw { dtype: "f8".into(), shape: [3].into(), bytes: b"abc".to_vec() };
    assert_same(&file.read("net/w").unwrap(), &Stored::Raw(want));
}

#[test]
fn an_open_file_keeps_its_content_when_another_takes_its_name() {
    let folder = Folder::new();
    let (path, one, two) = (folder.path("x.couplet"), Tensor::from([1i32]), Tensor::from([2i32]));
    write(&path, None, &[("x".into(), one.clone().into())]).unwrap();
    let file = NativeFile::open(&path).unwrap();
    write(&path, None, &[("x".into(), two.clone().into())]).unwrap();
    assert_same(&file.read("x").unwrap(), &one.into());
    assert_same(&NativeFile::open(&path).unwrap().read("x").unwrap(), &two.into());
}

#[test]
fn long_state_and_long_headers_come_back() {
    // More than a header or a state of ordinary size, and more than any fixed limit on either that would be sensible.
    let folder = Folder::new();
    let long = Stored::Strings(Strings::scalar(vec![5; 70 << 20]));
    let nodes = (0..700_000).map(|i| ObjectNode {
        children: vec![Child { name: format!("part {i}"), node: i }],
        ..ObjectNode::default()
    });
    let graph = ObjectGraph { nodes: nodes.collect() };
    let path = folder.path("long.couplet");
    write(&path, Some(&graph), &[("state".into(), long.clone())]).unwrap();
    let file = NativeFile::open(&path).unwrap();
    assert!(file.graph().unwrap() == Some(graph));
    assert!(bits(&file.read("state").unwrap()) == bits(&long));
}

prop_compose! {
    fn any_tensor()(at in 0..DType::ALL.len(), shape in prop::collection::vec(0usize..5, 0..4))
        (bytes in prop::collection::vec(any::<u8>(), shape.iter().product::<usize>() * DType::ALL[at].size()),
         at in Just(at), shape in Just(shape)) -> Stored {
        let dtype = DType::ALL[at];
        let bytes: Vec<u8> = bytes.into_iter().map(|x| if dtype == DType::Bool { x % 2 } else { x }).collect();
        tensor(&shape, dtype, &bytes)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_tensors_come_back(values in prop::collection::btree_map(".*", any_tensor(), 0..8)) {
        let folder = Folder::new();
        let values: Vec<(String, Stored)> = values.into_iter().collect();
        let file = opened(&folder, &values);
        for (key, want) in &values {
            assert_same(&file.read(key).unwrap(), want);
        }
    }

    #[test]
    fn no_sealed_bytes_make_it_panic(header in prop::collection::vec(any::<u8>(), 0..200), after in 0usize..300) {
        let folder = Folder::new();
        let mut bytes = sealed(&header, &[]);
        bytes.resize(bytes.len() + after, 0);
        let path = folder.file("any.couplet", bytes);
        if let Err(e) = read_all(&path) {
            fault(&path, &e);
        }
    }
}
