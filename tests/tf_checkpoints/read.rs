//! Every checkpoint reads to the values, the index and the object graph that are written down beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use couplet::checkpoint::tensorflow::{Bundle, Record};
use couplet::checkpoint::{ObjectGraph, Stored};
use safetensors::SafeTensors;
use serde_json::{Value as Json, json};

use crate::fixture::{Fixture, all, from_hex};
use crate::values::Value;

/// The expected values by key, or `None` if they are written down in another form.
fn expected(fixture: &Fixture) -> Option<BTreeMap<String, Value>> {
    let mut expected = BTreeMap::new();
    if let Some(path) = fixture.described_by("expected.safetensors") {
        let file = fs::read(path).unwrap();
        for (key, x) in SafeTensors::deserialize(&file).unwrap().tensors() {
            let dtype = format!("{:?}", x.dtype()).to_lowercase();
            expected.insert(key, Value { dtype, shape: x.shape().to_vec(), bytes: vec![x.data().to_vec()] });
        }
    }
    let Some(Json::Object(others)) = fixture.json("expected.json") else {
        return Some(expected);
    };
    for (key, x) in others {
        let hex = |x: &Json| from_hex(x.as_str().unwrap());
        let dtype = x.get("dtype")?.as_str()?.to_owned();
        let bytes = match (x.get("values_hex"), x.get("little_endian_hex")) {
            (Some(values), None) => values.as_array().unwrap().iter().map(hex).collect(),
            (None, Some(bytes)) => vec![hex(bytes)],
            _ => panic!("{key}: {x}"),
        };
        expected.insert(key, Value { dtype, shape: dims(&x["shape"]), bytes });
    }
    Some(expected)
}

fn dims(list: &Json) -> Vec<usize> {
    list.as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap() as usize).collect()
}

#[test]
fn every_tensor_has_its_value_bit_for_bit() {
    let mut variants = 0;
    for fixture in all() {
        let (bundle, name) = (fixture.open(), fixture.prefix.display());
        let Some(expected) = expected(&fixture) else { continue };
        let mut seen = BTreeSet::new();
        for entry in bundle.entries() {
            let stored = bundle.read(&entry.key).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!((stored.dtype(), stored.shape()), (entry.dtype.clone(), &entry.shape[..]), "{name}");
            if entry.dtype.to_string() == "variant" {
                variants += 1;
                continue;
            }
            let expected = expected.get(&entry.key);
            assert_eq!(Some(&Value::from(&stored)), expected, "{name}: {}", entry.key);
            seen.insert(&entry.key);
        }
        assert_eq!(seen, expected.keys().collect(), "{name}");
    }
    let of_iterators = all().iter().any(|fixture| fixture.prefix.ends_with("toy_adam/ckpt-5"));
    assert!(variants > 0 || !of_iterators, "the state of the iterator is a variant");
}

#[test]
fn keys_longer_than_a_block_are_found() {
    for fixture in all().iter().filter(|fixture| expected(fixture).is_none()) {
        let (bundle, json) = (fixture.open(), fixture.json("expected.json").unwrap());
        let values = json["first_16_characters_to_value"].as_object().unwrap();
        assert_eq!(bundle.entries().len(), values.len());
        for entry in bundle.entries() {
            let Stored::Tensor(x) = bundle.read(&entry.key).unwrap() else { panic!("{}", entry.key) };
            let start: String = entry.key.chars().take(16).collect();
            assert_eq!(x.to_vec::<f32>().unwrap(), [values[&start].as_f64().unwrap() as f32]);
        }
    }
}

/// A record as a manifest has it.
fn manifest_entry(record: &Record, name: &Json) -> Json {
    let mut entry = json!({
        "dtype": record.dtype, "dtype_name": name, "shape": record.shape.dims(), "shard": record.shard,
        "offset": record.offset, "size": record.size, "crc32c_masked": record.checksum,
    });
    if record.key.starts_with(&[0]) {
        let hex: String = record.key.iter().map(|byte| format!("{byte:02x}")).collect();
        entry["key_hex"] = hex.into();
        entry["slice"] = true.into();
    } else {
        entry["key"] = String::from_utf8(record.key.clone()).unwrap().into();
    }
    if !record.slices.is_empty() {
        let slice = |slice: &Vec<_>| {
            let extents = slice
                .iter()
                .map(|e: &couplet::checkpoint::tensorflow::Extent| json!([e.start, e.length.unwrap_or(-1)]));
            extents.collect::<Json>()
        };
        entry["slices"] = record.slices.iter().map(slice).collect();
    }
    entry
}

#[test]
fn every_index_says_what_its_manifest_does() {
    for fixture in all() {
        let Some(manifest) = fixture.json("manifest.json") else { continue };
        let bundle = fixture.open();
        assert_eq!(json!(bundle.shards()), manifest["num_shards"]);
        let entries = manifest["entries"].as_array().unwrap();
        assert_eq!(bundle.records().len(), entries.len());
        for (record, entry) in bundle.records().iter().zip(entries) {
            assert_eq!(&manifest_entry(record, &entry["dtype_name"]), entry, "{}", fixture.prefix.display());
        }
        // Of what has no dtype here, the name is that of TensorFlow.
        for entry in entries.iter().filter(|entry| entry.get("key").is_some()) {
            let key = entry["key"].as_str().unwrap();
            if let Some(listed) = bundle.entries().iter().find(|listed| listed.key == key)
                && let couplet::checkpoint::StoredDType::Other(name) = &listed.dtype
            {
                assert_eq!(json!(name), entry["dtype_name"]);
            }
        }
    }
}

/// A graph as the files have it.
fn graph_json(graph: &ObjectGraph) -> Json {
    let nodes = graph.nodes.iter().map(|node| {
        assert_eq!(node.saver, None);
        json!({
            "children": node.children.iter().map(|c| json!([c.node, c.name])).collect::<Json>(),
            "attributes": node.attributes.iter().map(|a| json!([a.name, a.full_name, a.key])).collect::<Json>(),
            "slots": node.slots.iter().map(|s| json!([s.variable, s.name, s.slot_variable])).collect::<Json>(),
            "has_checkpoint_values": node.has_values,
        })
    });
    nodes.collect()
}

#[test]
fn every_object_graph_is_the_one_written_down() {
    for fixture in all() {
        let graph = fixture.open().graph().unwrap_or_else(|e| panic!("{e}"));
        let expected = fixture.json("graph.json");
        assert_eq!(graph.as_ref().map(graph_json), expected, "{}", fixture.prefix.display());
    }
}

#[test]
fn keys_that_are_no_tensors_are_not_found() {
    for fixture in all() {
        let bundle = fixture.open();
        let last = bundle.entries().last().unwrap().key.clone();
        let slice = bundle.records().iter().find(|record| record.key.starts_with(&[0]));
        let slice = slice.and_then(|record| String::from_utf8(record.key.clone()).ok());
        for key in
            ["", "~", "a", &format!("{last}x"), &last[..last.len() - 1]].into_iter().chain(slice.as_deref())
        {
            if bundle.entries().iter().all(|entry| entry.key != key) {
                let message = bundle.read(key).unwrap_err().to_string();
                assert!(message.contains("missing_tensor") && message.contains(key), "{message}");
            }
        }
    }
}

#[test]
fn tensors_are_listed_with_their_names_in_messages() {
    for fixture in all() {
        let bundle = fixture.open();
        let text = bundle.debug_string();
        let graph = usize::from(fixture.open().graph().unwrap().is_some());
        assert_eq!(text.lines().count(), bundle.entries().len() + graph);
        if fixture.prefix.ends_with("slices/ckpt") {
            assert!(
                text.starts_with("cols (DT_FLOAT) [4,6]\ncube (DT_FLOAT) [2,3,4]\nlong (DT_INT8) [9000]\n"),
                "{text}"
            );
        }
    }
}

#[test]
fn what_is_no_prefix_is_refused_with_a_hint() {
    let fixture = all().into_iter().next().unwrap();
    let prefix = fixture.prefix.display().to_string();
    let folder = fixture.prefix.parent().unwrap().display().to_string();
    for (path, hint) in [
        (format!("{prefix}.index"), format!("its prefix {prefix}")),
        (folder, "a folder".to_owned()),
        (format!("{prefix}-0"), "no checkpoint".to_owned()),
    ] {
        let message = Bundle::open(&path).unwrap_err().to_string();
        assert!(message.contains(&hint) && message.contains(&path), "{message}");
    }
}
