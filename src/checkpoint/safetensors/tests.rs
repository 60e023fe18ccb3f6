use std::fs;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::checkpoint::testing::{Folder, fault};
use crate::dtype::DType;

/// A file with this header and so many bytes of data.
fn with_header(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend((0..data).map(|i| (i % 2) as u8));
    bytes
}

fn some_tensors() -> Vec<(String, Stored)> {
    let values = Tensor::arange(0.0, 6.0, 1.0, DType::F32).unwrap().reshape([2, 3]).unwrap();
    let mut tensors: Vec<_> = DType::ALL
        .into_iter()
        .map(|dtype| (format!("a/{dtype}"), Stored::Tensor(values.cast(dtype).unwrap())))
        .collect();
    tensors.push(("transposed".into(), values.transpose(&[1, 0]).unwrap().into()));
    tensors.push(("scalar".into(), Tensor::from(2.5f64).into()));
    tensors.push(("empty".into(), Tensor::zeros([0, 3], DType::F16).unwrap().into()));
    let raw = Raw { dtype: "F8_E4M3".into(), shape: [3].into(), bytes: vec![1, 2, 3] };
    tensors.push(("eight bits".into(), Stored::Raw(raw)));
    tensors
}

fn same(a: &Stored, b: &Stored) -> bool {
    let numbers = |x: &Tensor| x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    match (a, b) {
        (Stored::Tensor(a), Stored::Tensor(b)) => {
            a.dtype() == b.dtype() && a.shape() == b.shape() && numbers(a) == numbers(b)
        }
        (Stored::Raw(a), Stored::Raw(b)) => a == b,
        _ => false,
    }
}

#[test]
fn every_dtype_and_layout_comes_back() {
    let folder = Folder::new();
    let path = folder.path("x.safetensors");
    let tensors = some_tensors();
    write(&path, &tensors).unwrap();
    let file = SafetensorsFile::open(&path).unwrap();
    assert!(file.entries().is_sorted_by(|a, b| a.key < b.key));
    assert_eq!(file.entries().len(), tensors.len());
    for (key, stored) in &tensors {
        assert!(same(&file.read(key).unwrap(), stored), "{key}");
    }
    assert_eq!(folder.names(), ["x.safetensors"]);
    let (fault, _, key) = fault(&path, &file.read("absent").unwrap_err());
    assert_eq!((fault, key.as_deref()), (Fault::MissingTensor, Some("absent")));
}

#[test]
fn the_format_s_own_library_reads_what_is_written_and_the_other_way_round() {
    let folder = Folder::new();
    let path = folder.path("x.safetensors");
    let tensors = some_tensors();
    write(&path, &tensors).unwrap();
    let bytes = fs::read(&path).unwrap();
    let theirs = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(theirs.len(), tensors.len());
    let view = theirs.tensor("transposed").unwrap();
    let expected: Vec<u8> = [0.0f32, 3.0, 1.0, 4.0, 2.0, 5.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!((view.shape(), view.data()), (&[3, 2][..], &expected[..]));

    let again = ::safetensors::serialize(theirs.iter(), None).unwrap();
    let other = folder.file("y.safetensors", &again);
    let file = SafetensorsFile::open(&other).unwrap();
    tensors.iter().for_each(|(key, stored)| assert!(same(&file.read(key).unwrap(), stored), "{key}"));
}

#[test]
fn what_the_format_cannot_hold_is_refused_and_leaves_no_file() {
    let folder = Folder::new();
    let path = folder.path("x.safetensors");
    let strings = Stored::Strings(super::super::Strings::scalar("a"));
    let raw = |dtype: &str, bytes| {
        Stored::Raw(Raw { dtype: dtype.into(), shape: [3].into(), bytes: vec![0; bytes] })
    };
    for (key, stored) in [
        ("s", strings),
        ("__metadata__", Tensor::from(1.0f32).into()),
        ("q", raw("qint8", 3)),
        ("short", raw("F8_E4M3", 2)),
        ("bits", raw("F4", 1)),
    ] {
        let e = write(&path, &[(key.into(), stored)]).unwrap_err().to_string();
        assert!(e.contains("x.safetensors") && e.contains(key), "{e}");
    }
    assert!(folder.names().is_empty());
}

#[test]
fn damage_is_named_with_its_place() {
    let folder = Folder::new();
    let one = |dtype: &str, shape: &str, start: &str, end: u64| {
        format!(r#"{{"t":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{start},{end}]}}}}"#)
    };
    let two = |start: u64, end: u64| {
        format!(
            r#"{{"s":{{"dtype":"U8","shape":[4],"data_offsets":[0,4]}},
            "t":{{"dtype":"U8","shape":[4],"data_offsets":[{start},{end}]}}}}"#
        )
    };
    let good = with_header(&one("F32", "[2]", "0", 8), 8);
    let mut lying = good.clone();
    lying[0] += 100;
    let mut huge = good.clone();
    huge[7] = 0x7f;
    let twice = r#"{"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#;
    let exact = |header: &str, data| with_header(header, data);
    let len = good.len() as u64;
    let cases: Vec<(&str, Vec<u8>, Fault, Option<u64>, Option<&str>)> = vec![
        ("nothing", vec![], Fault::Truncated, Some(0), None),
        ("short length", good[..7].to_vec(), Fault::Truncated, Some(7), None),
        ("truncated header", good[..20].to_vec(), Fault::Truncated, Some(20), None),
        ("truncated data", good[..good.len() - 1].to_vec(), Fault::Truncated, Some(len - 1), Some("t")),
        ("lying length", lying, Fault::Truncated, Some(len), None),
        ("huge length", huge, Fault::MalformedHeader, Some(0), None),
        ("no JSON", exact("{nonsense", 0), Fault::MalformedHeader, Some(9), None),
        ("no object", exact("[1]", 0), Fault::MalformedHeader, Some(8), None),
        (
            "no UTF-8",
            {
                let mut b = exact(r#"{"abc":1}"#, 0);
                b[11] = 0xff;
                b
            },
            Fault::MalformedHeader,
            None,
            None,
        ),
        ("two values", exact("{}{}", 0), Fault::MalformedHeader, Some(10), None),
        ("twice", exact(twice, 0), Fault::MalformedEntry, Some(8), Some("t")),
        ("unknown dtype", exact(&one("F31", "[2]", "0", 8), 8), Fault::UnsupportedDType, Some(8), Some("t")),
        ("negative dim", exact(&one("F32", "[-2]", "0", 8), 8), Fault::MalformedEntry, None, Some("t")),
        ("fraction", exact(&one("F32", "[2.5]", "0", 8), 8), Fault::MalformedEntry, None, Some("t")),
        (
            "no shape",
            exact(r#"{"t":{"dtype":"F32","data_offsets":[0,8]}}"#, 8),
            Fault::MalformedEntry,
            None,
            Some("t"),
        ),
        ("number", exact(r#"{"t":3}"#, 8), Fault::MalformedEntry, None, Some("t")),
        (
            "product",
            exact(&one("F32", "[4294967296,4294967296,4]", "0", 8), 8),
            Fault::SizeMismatch,
            Some(8),
            Some("t"),
        ),
        (
            "huge dim",
            exact(&one("F32", "[18446744073709551615]", "0", 8), 8),
            Fault::SizeMismatch,
            Some(8),
            Some("t"),
        ),
        ("size", exact(&one("F32", "[3]", "0", 8), 8), Fault::SizeMismatch, Some(8), Some("t")),
        ("backwards", exact(&one("F32", "[2]", "9", 8), 8), Fault::MalformedEntry, Some(8), Some("t")),
        ("negative offset", exact(&one("F32", "[2]", "-1", 7), 8), Fault::MalformedEntry, None, Some("t")),
        (
            "outside",
            exact(&one("F32", "[2]", "18446744073709551600", 18446744073709551608), 8),
            Fault::OutOfRange,
            None,
            Some("t"),
        ),
        ("overlap", exact(&two(3, 7), 7), Fault::MalformedEntry, None, Some("t")),
        ("gap", exact(&two(5, 9), 9), Fault::MalformedEntry, None, Some("t")),
        ("too long", exact(&one("F32", "[2]", "0", 8), 9), Fault::OutOfRange, Some(len), None),
        ("three bits", exact(&one("F4", "[3]", "0", 1), 1), Fault::SizeMismatch, Some(8), Some("t")),
    ];
    for (name, bytes, expected, offset, tensor) in cases {
        let path = folder.file("x.safetensors", &bytes);
        let e = SafetensorsFile::open(&path).unwrap_err();
        let (fault, at, key) = fault(&path, &e);
        assert_eq!((fault, key.as_deref()), (expected, tensor), "{name}: {e}");
        assert!(at.is_some() && (offset.is_none() || at == offset), "{name}: {e}");
    }
    let path = folder.file("bool.safetensors", with_header(&one("BOOL", "[2]", "0", 2), 2));
    let mut bytes = fs::read(&path).unwrap();
    assert!(SafetensorsFile::open(&path).unwrap().read("t").is_ok());
    *bytes.last_mut().unwrap() = 2;
    fs::write(&path, bytes).unwrap();
    let (fault, at, key) = fault(&path, &SafetensorsFile::open(&path).unwrap().read("t").unwrap_err());
    assert_eq!((fault, key.as_deref()), (Fault::MalformedTensor, Some("t")));
    assert_eq!(at, Some(fs::metadata(&path).unwrap().len() - 2));
}

#[test]
fn an_index_leads_to_the_files_of_its_folder() {
    let folder = Folder::new();
    let shard = |name: &str, key: &str, value: f32| {
        write(&folder.path(name), &[(key.into(), Tensor::from(value).into())]).unwrap();
    };
    shard("m-1.safetensors", "b", 1.0);
    shard("m-2.safetensors", "a", 2.0);
    let index = |map: serde_json::Value| {
        let json = json!({ "metadata": { "total_size": 8 }, "weight_map": map });
        folder.file("m.safetensors.index.json", json.to_string())
    };
    let path = index(json!({ "b": "m-1.safetensors", "a": "m-2.safetensors" }));
    let file = ShardedFile::open(&path).unwrap();
    assert_eq!(file.entries().iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(same(&file.read("a").unwrap(), &Tensor::from(2.0f32).into()));
    assert!(same(&file.read("b").unwrap(), &Tensor::from(1.0f32).into()));
    assert!(file.read("c").is_err());

    for (map, expected) in [
        (json!({ "a": "m-3.safetensors" }), Fault::MissingShard),
        (json!({ "a": "m-1.safetensors" }), Fault::MissingTensor),
        (json!({ "a": "../m-1.safetensors" }), Fault::MalformedHeader),
        (json!({ "a": "/m-1.safetensors" }), Fault::MalformedHeader),
        (json!({ "a": "" }), Fault::MalformedHeader),
        (json!({ "a": 1 }), Fault::MalformedHeader),
    ] {
        let path = index(map);
        assert_eq!(fault(&path, &ShardedFile::open(&path).unwrap_err()).0, expected);
    }
    let twice = r#"{"weight_map":{"a":"m-2.safetensors","a":"m-2.safetensors"}}"#;
    for json in [twice, "{}", "", "{\"weight_map\":"] {
        let path = folder.file("m.safetensors.index.json", json);
        assert_eq!(fault(&path, &ShardedFile::open(&path).unwrap_err()).0, Fault::MalformedHeader, "{json}");
    }
}

#[test]
fn damaged_bytes_are_read_or_refused() {
    let folder = Folder::new();
    let path = folder.path("good.safetensors");
    write(&path, &some_tensors()).unwrap();
    let good = fs::read(&path).unwrap();
    let flips = prop::collection::vec((any::<usize>(), any::<u8>()), 0..6);
    proptest!(|(cut in 0usize..2000, flips in flips)| {
        let mut bytes = good.clone();
        bytes.truncate(bytes.len() - if cut < 200 { cut } else { 0 });
        let length = bytes.len();
        flips.iter().for_each(|&(at, mask)| bytes[at % length] ^= mask);
        let path = folder.file("x.safetensors", &bytes);
        match SafetensorsFile::open(&path) {
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
