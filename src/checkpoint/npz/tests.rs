use std::fs;

use proptest::prelude::*;

use super::super::stored::{Raw, Strings};
use super::*;
use crate::checkpoint::testing::{Folder, fault};
use crate::dtype::DType;
use crate::tensor::Tensor;

fn some_tensors() -> Vec<(String, Stored)> {
    let values = Tensor::arange(0.0, 6.0, 1.0, DType::F32).unwrap().reshape([2, 3]).unwrap();
    let dtypes = DType::ALL.into_iter().filter(|&dtype| dtype != DType::BF16);
    let mut tensors: Vec<_> =
        dtypes.map(|dtype| (format!("net/{dtype}"), Stored::Tensor(values.cast(dtype).unwrap()))).collect();
    tensors.push(("transposed".into(), values.transpose(&[1, 0]).unwrap().into()));
    tensors.push(("scalar".into(), Tensor::from(2.5f64).into()));
    tensors.push(("empty".into(), Tensor::zeros([0, 3], DType::F16).unwrap().into()));
    tensors.push(("größe".into(), Tensor::zeros([1000], DType::F32).unwrap().into()));
    let raw = Raw { dtype: "complex64".into(), shape: [1].into(), bytes: (0..8).collect() };
    tensors.push(("complex".into(), Stored::Raw(raw)));
    let values = vec![b"ab".to_vec(), vec![], b"\0c".to_vec()];
    tensors.push(("strings".into(), Stored::Strings(Strings { shape: [3].into(), values })));
    tensors
}

fn same(a: &Stored, b: &Stored) -> bool {
    let numbers = |x: &Tensor| x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    match (a, b) {
        (Stored::Tensor(a), Stored::Tensor(b)) => {
            a.dtype() == b.dtype() && a.shape() == b.shape() && numbers(a) == numbers(b)
        }
        (Stored::Raw(a), Stored::Raw(b)) => a == b,
        (Stored::Strings(a), Stored::Strings(b)) => a == b,
        _ => false,
    }
}

/// A file of one array with this description, of version 1.
fn npy(descr: &str, fortran_order: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran_order}, 'shape': {shape}}}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(elements);
    bytes
}

/// An archive of these members, not compressed.
fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    use std::io::Write;
    let mut archive = rawzip::ZipArchiveWriter::new(Vec::new());
    for (name, bytes) in members {
        let (mut entry, config) = archive.new_file(*name).start().unwrap();
        let mut writer = config.wrap(&mut entry);
        writer.write_all(bytes).unwrap();
        let (_, descriptor) = writer.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap()
}

#[test]
fn every_dtype_and_layout_comes_back_compressed_or_not() {
    let folder = Folder::new();
    let path = folder.path("x.npz");
    let tensors = some_tensors();
    let mut sizes = Vec::new();
    for compress in [false, true] {
        write_npz(&path, &tensors, compress).unwrap();
        sizes.push(fs::metadata(&path).unwrap().len());
        let file = NpzFile::open(&path).unwrap();
        assert!(file.entries().is_sorted_by(|a, b| a.key < b.key));
        assert_eq!(file.entries().len(), tensors.len());
        for (key, stored) in &tensors {
            assert!(same(&file.read(key).unwrap(), stored), "{key}");
        }
    }
    assert!(sizes[1] + 3000 < sizes[0], "4000 zeros compress: {sizes:?}");
    for (_, stored) in &tensors {
        let path = folder.path("one.npy");
        write_npy(&path, stored).unwrap();
        let file = NpyFile::open(&path).unwrap();
        assert_eq!(file.entries()[0].key, "one");
        assert!(same(&file.read("one").unwrap(), stored));
        assert!(file.read("x").is_err());
    }
    assert_eq!(folder.names(), ["one.npy", "x.npz"]);
}

#[test]
fn the_first_index_or_the_first_byte_may_come_last() {
    let folder = Folder::new();
    let read = |bytes: &[u8]| NpyFile::open(&folder.file("x.npy", bytes)).unwrap().read("x").unwrap();
    let little: Vec<u8> = (1..=6i16).flat_map(i16::to_le_bytes).collect();
    let big: Vec<u8> = (1..=6i16).flat_map(i16::to_be_bytes).collect();
    // [[1, 3, 5], [2, 4, 6]] by columns.
    for (descr, bytes) in [("<i2", &little), (">i2", &big)] {
        let Stored::Tensor(x) = read(&npy(descr, "True", "(2, 3)", bytes)) else { panic!() };
        assert_eq!((x.shape().as_ref(), x.to_vec::<i16>().unwrap()), (&[2, 3][..], vec![1, 3, 5, 2, 4, 6]));
        let Stored::Tensor(x) = read(&npy(descr, "False", "(2, 3)", bytes)) else { panic!() };
        assert_eq!(x.to_vec::<i16>().unwrap(), [1, 2, 3, 4, 5, 6]);
    }
    let Stored::Raw(raw) = read(&npy(">c8", "True", "(2, 2)", &(0..32).collect::<Vec<_>>())) else {
        panic!()
    };
    assert_eq!((&raw.bytes[..8], &raw.bytes[8..12]), (&[3, 2, 1, 0, 7, 6, 5, 4][..], &[19, 18, 17, 16][..]));
    let text: Vec<u8> = ['ä', '\0', 'b', 'c'].iter().flat_map(|&c| (c as u32).to_be_bytes()).collect();
    let Stored::Strings(strings) = read(&npy(">U2", "False", "(2,)", &text)) else { panic!() };
    assert_eq!(strings.values, ["ä".as_bytes(), b"bc"]);
}

#[test]
fn what_numpy_cannot_hold_is_refused_and_leaves_no_file() {
    let folder = Folder::new();
    let bf16 = Tensor::zeros([2], DType::BF16).unwrap();
    let raw = Stored::Raw(Raw { dtype: "F8_E4M3".into(), shape: [1].into(), bytes: vec![0] });
    let short = Stored::Raw(Raw { dtype: "complex64".into(), shape: [2].into(), bytes: vec![0] });
    let zero = Stored::Strings(Strings::scalar("a\0"));
    for (stored, word) in
        [(bf16.into(), "no bf16"), (raw, "F8_E4M3"), (short, "1 bytes"), (zero, "zero byte")]
    {
        let e = write_npz(&folder.path("x.npz"), &[("k".into(), stored)], false).unwrap_err().to_string();
        assert!(e.contains("x.npz") && e.contains("\"k\"") && e.contains(word), "{e}");
    }
    let odd = [("ä/../b".to_owned(), Stored::Tensor(Tensor::from(1.0f32)))];
    assert!(write_npz(&folder.path("x.npz"), &odd, false).is_err());
    assert!(folder.names().is_empty());
}

#[test]
fn damage_of_an_array_is_named_with_its_place() {
    let folder = Folder::new();
    let good = npy("<f4", "False", "(2,)", &[0; 8]);
    let start = good.len() as u64 - 8;
    let longer = [&good[..], &[0]].concat();
    for (name, bytes, expected, at) in [
        ("nothing", vec![], Fault::Truncated, 0),
        ("other magic", b"PK345678".to_vec(), Fault::BadMagic, 0),
        ("truncated", good[..good.len() - 1].to_vec(), Fault::Truncated, start + 7),
        ("longer", longer, Fault::SizeMismatch, start + 8),
        ("huge", npy("<f4", "False", "(1099511627776, 1099511627776)", &[0; 8]), Fault::SizeMismatch, 0),
        ("more", npy("<f4", "False", "(1000,)", &[0; 8]), Fault::Truncated, start + 11),
        ("dtype", npy("<q4", "False", "(2,)", &[0; 8]), Fault::UnsupportedDType, 25),
    ] {
        let path = folder.file("x.npy", &bytes);
        let e = NpyFile::open(&path).unwrap_err();
        assert_eq!(fault(&path, &e), (expected, Some(at), Some("x".into())), "{name}: {e}");
    }
    for (bytes, expected) in [
        (npy("|b1", "False", "(2,)", &[1, 2]), Fault::MalformedTensor),
        (npy("<U1", "False", "()", &[0, 0xd8, 0, 0]), Fault::MalformedTensor),
        (npy("|O", "False", "(1,)", &[1, 2]), Fault::UnsupportedDType),
        (npy("<f4", "False", "(0, 4611686018427387904, 8)", &[]), Fault::MalformedTensor),
    ] {
        let path = folder.file("x.npy", &bytes);
        let file = NpyFile::open(&path).unwrap();
        assert_eq!(fault(&path, &file.read("x").unwrap_err()).0, expected);
    }
}

#[test]
fn damage_of_an_archive_is_named_with_its_place() {
    let folder = Folder::new();
    let good = npy("<f4", "False", "(2,)", &[7; 8]);
    let archive = zip(&[("readme.txt", b"skipped"), ("a.npy", &good), ("b.npy", &good)]);
    let path = folder.file("x.npz", &archive);
    let file = NpzFile::open(&path).unwrap();
    assert_eq!(file.entries().iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let place = |needle: &[u8], nth: usize| {
        archive.windows(needle.len()).enumerate().filter(|(_, w)| *w == needle).nth(nth).unwrap().0
    };
    let data = place(b"\x93NUMPY", 0);
    let directory = place(b"PK\x01\x02", 1);
    let changed = |at: usize, bytes: &[u8]| {
        let mut archive = archive.clone();
        archive[at..at + bytes.len()].copy_from_slice(bytes);
        archive
    };
    let second = place(b"PK\x01\x02", 2);
    let local = |at: usize| archive[at + 42..at + 46].to_vec();
    let a = || Some("a".to_owned());
    for (name, bytes, expected, key) in [
        ("nothing", vec![], Fault::Truncated, None),
        ("no archive", b"not an archive".to_vec(), Fault::BadMagic, None),
        ("truncated", archive[..archive.len() - 30].to_vec(), Fault::Truncated, None),
        ("array without magic", changed(data, b"x"), Fault::BadMagic, a()),
        ("bzip2", changed(directory + 10, &[12]), Fault::UnsupportedCompression, a()),
        ("encrypted", changed(directory + 8, &[1]), Fault::UnsupportedCompression, a()),
        ("too long", changed(directory + 20, &[0xff, 0xff, 0xff]), Fault::OutOfRange, a()),
        ("bomb", changed(directory + 24, &[0xff, 0xff, 0xff]), Fault::SizeMismatch, a()),
        ("elsewhere", changed(directory + 42, &[0xff, 0xff, 0xff]), Fault::OutOfRange, a()),
        ("no member", changed(directory + 42, &[1]), Fault::MalformedEntry, a()),
        ("same bytes", changed(second + 42, &local(directory)), Fault::MalformedEntry, Some("b".into())),
        ("no UTF-8", changed(directory + 46, &[0xff]), Fault::MalformedEntry, None),
        ("count", changed(archive.len() - 14, &[9, 0, 9, 0]), Fault::MalformedFooter, None),
        ("directory", changed(directory, b"XX"), Fault::MalformedHeader, None),
        ("twice", zip(&[("a.npy", &good), ("a.npy", &good)]), Fault::MalformedEntry, a()),
        ("size", zip(&[("a.npy", &good[..good.len() - 1])]), Fault::SizeMismatch, a()),
    ] {
        let path = folder.file("x.npz", &bytes);
        let e = NpzFile::open(&path).map(|_| name).unwrap_err();
        let (found, at, tensor) = fault(&path, &e);
        assert_eq!((found, tensor), (expected, key), "{name}: {e}");
        assert!(at.is_some_and(|at| at <= bytes.len() as u64), "{name}: {e}");
    }
    let path = folder.file("x.npz", changed(data + good.len() - 1, &[8]));
    let (found, at, tensor) = fault(&path, &NpzFile::open(&path).unwrap().read("a").unwrap_err());
    assert_eq!((found, at, tensor), (Fault::TensorChecksum, Some(data as u64), a()));
}

#[test]
fn a_member_that_inflates_to_more_than_it_claims_is_stopped() {
    let folder = Folder::new();
    let path = folder.path("x.npz");
    let zeros = Tensor::zeros([1 << 20], DType::U8).unwrap();
    write_npz(&path, &[("z".into(), zeros.into())], true).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    assert!(bytes.len() < 3000);
    let directory = bytes.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    // A header for 2^40 elements with a size to match would need more than deflate can pack into these bytes.
    bytes[directory + 24..directory + 28].copy_from_slice(&[0, 0, 0, 0x40]);
    let path = folder.file("y.npz", &bytes);
    assert_eq!(fault(&path, &NpzFile::open(&path).unwrap_err()).0, Fault::SizeMismatch);
}

#[test]
fn damaged_bytes_are_read_or_refused() {
    let folder = Folder::new();
    let good = [false, true].map(|compress| {
        let path = folder.path("good.npz");
        write_npz(&path, &some_tensors(), compress).unwrap();
        fs::read(&path).unwrap()
    });
    let flips = prop::collection::vec((any::<usize>(), any::<u8>()), 0..6);
    proptest!(|(compressed in 0usize..2, cut in 0usize..2000, flips in flips)| {
        let mut bytes = good[compressed].clone();
        bytes.truncate(bytes.len() - if cut < 200 { cut } else { 0 });
        let length = bytes.len();
        flips.iter().for_each(|&(at, mask)| bytes[at % length] ^= mask);
        let path = folder.file("x.npz", &bytes);
        match NpzFile::open(&path) {
            Err(e) => { fault(&path, &e); }
            Ok(file) => {
                for entry in file.entries() {
                    if let Err(e) = file.read(&entry.key) {
                        fault(&path, &e);
                    }
                }
            }
        }
    });
}

#[test]
fn damaged_arrays_are_read_or_refused() {
    let folder = Folder::new();
    let good: Vec<Vec<u8>> = some_tensors()
        .iter()
        .map(|(_, stored)| {
            let path = folder.path("good.npy");
            write_npy(&path, stored).unwrap();
            fs::read(&path).unwrap()
        })
        .collect();
    let flips = prop::collection::vec((0usize..140, any::<u8>()), 1..4);
    proptest!(|(which: usize, flips in flips)| {
        let mut bytes = good[which % good.len()].clone();
        let length = bytes.len();
        flips.iter().for_each(|&(at, mask)| bytes[at % length] ^= mask);
        let path = folder.file("x.npy", &bytes);
        if let Err(e) = NpyFile::open(&path).and_then(|file| file.read("x")) {
            fault(&path, &e);
        }
    });
}
