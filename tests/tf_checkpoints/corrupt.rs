//! Broken checkpoints: each is refused for what is wrong with it, and gives what is right.

use std::fs;

use couplet::checkpoint::tensorflow::Bundle;
use couplet::{Error, Fault, Result};
use serde_json::Value as Json;

use crate::fixture::root;
use crate::values::Value;

/// The fault of an error that says where it lies.
fn fault(e: &Error) -> Fault {
    match e {
        Error::Format { fault, .. } => *fault,
        other => panic!("not about the content of a file: {other}"),
    }
}

/// The key that a short name in the table stands for.
fn key(name: &str) -> String {
    format!("{name}/.ATTRIBUTES/VARIABLE_VALUE")
}

/// What a checkpoint with a defect is refused with, when it is opened, read or restored.
fn refusal(case: &Json, bundle: Result<Bundle>) -> Error {
    let stage = case["stage"].as_str().unwrap();
    let bundle = match (stage, bundle) {
        ("open", bundle) => return bundle.expect_err("the defect is in the index"),
        (_, bundle) => bundle.unwrap_or_else(|e| panic!("must still open: {e}")),
    };
    if stage == "restore" {
        assert!(bundle.entries().iter().all(|entry| bundle.read(&entry.key).is_ok()), "plain reads work");
        return bundle.graph().expect_err("the defect is in the object graph");
    }
    let broken = key(stage.strip_prefix("read ").unwrap());
    let source = if case["dir"] == "missing_shard_of_four" { "sharded_whole/ckpt" } else { "corrupt/ok/t" };
    let whole = Bundle::open(root().join(source)).unwrap();
    // Without its only data file no tensor can be read.
    let others_are_there = case["dir"] != "missing_shard";
    for entry in bundle.entries().iter().filter(|entry| entry.key != broken && others_are_there) {
        match bundle.read(&entry.key) {
            Ok(stored) => assert_eq!(Value::from(&stored), Value::from(&whole.read(&entry.key).unwrap())),
            // Several tensors may lie in what is missing; then the data file ends before them, too.
            Err(e) => assert!(
                matches!(fault(&e), Fault::MissingShard) && case["error"] == "missing_shard"
                    || case["dir"] == "truncated_data" && fault(&e) == Fault::OutOfRange,
                "{e}"
            ),
        }
    }
    bundle.read(&broken).expect_err("the defect is in this tensor")
}

#[test]
fn every_defect_is_refused_by_its_name_and_the_rest_can_be_read() {
    let cases: Vec<Json> =
        serde_json::from_slice(&fs::read(root().join("corrupt/expect.json")).unwrap()).unwrap();
    for case in &cases {
        let dir = case["dir"].as_str().unwrap();
        let e = refusal(case, Bundle::open(root().join("corrupt").join(dir).join("t")));
        println!("{dir}: {e}");
        assert_eq!(fault(&e).name(), case["error"], "{dir}: {e}");
    }
    let folders =
        fs::read_dir(root().join("corrupt")).unwrap().filter(|e| e.as_ref().unwrap().path().is_dir());
    assert_eq!(cases.len() + 1, folders.count(), "one case a folder, but for the whole one");
}

#[test]
fn errors_name_the_file_the_place_and_the_tensor() {
    let open = |dir: &str| Bundle::open(root().join("corrupt").join(dir).join("t"));
    let e = open("flipped_data_byte").unwrap().read(&key("a")).unwrap_err();
    let Error::Format { path, offset, tensor, .. } = e else { panic!("{e}") };
    assert!(path.ends_with("t.data-00000-of-00001"), "{path}");
    assert_eq!((offset, tensor), (Some(0), Some(key("a"))));

    let e = open("negative_dim").unwrap_err();
    let Error::Format { path, offset, tensor, .. } = e else { panic!("{e}") };
    assert!(path.ends_with("t.index") && offset.is_some(), "{path} {offset:?}");
    assert_eq!(tensor, Some(key("a")));
}
