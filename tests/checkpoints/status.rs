//! What the status of a restore asserts, says and warns of.

use std::collections::BTreeMap;

use couplet::checkpoint::Checkpoint;
use couplet::optim::Adam;
use couplet::prelude::*;

use crate::support::{Dense, Folder, messages, values, var};

#[test]
fn assert_consumed_lists_both_sides_with_near_names() {
    let folder = Folder::new();
    let (a, b, c) = (var(&[1.0]), var(&[2.0]), var(&[3.0]));
    let path =
        Checkpoint::new().track("encoder", &a).track("decoder", &b).track("v", &c).save(folder.path("x"));
    let checkpoint = Checkpoint::new().track("encodr", &a).track("decoder", &b).track("unlike", &c);
    let status = checkpoint.restore(path.unwrap()).unwrap();
    let report = status.report();
    assert_eq!(report.restored, ["decoder", "save_counter"]);
    assert_eq!(report.unused, ["encoder", "v"]);
    assert_eq!(report.missing, ["encodr", "unlike"]);
    assert!(report.waiting.is_empty() && !report.is_complete());
    let e = status.assert_consumed().unwrap_err().to_string();
    assert!(e.contains("only in the file: encoder (near encodr), v"), "{e}");
    assert!(e.contains("only in the program: encodr (near encoder), unlike"), "{e}");
    assert!(e.contains("x-1: ") && e.contains("expect_partial"), "{e}");
    let e = status.assert_existing_objects_matched().unwrap_err().to_string();
    assert!(e.contains("encodr (near encoder), unlike") && !e.contains("only in the file"), "{e}");
    status.assert_nontrivial_match().unwrap();
}

#[test]
fn nothing_in_common_is_no_nontrivial_match() {
    let folder = Folder::new();
    let v = var(&[1.0]);
    let path = Checkpoint::new().track("a", &v).save(folder.path("x")).unwrap();
    let checkpoint = Checkpoint::new().track("b", &v);
    let status = checkpoint.restore(&path).unwrap();
    let e = status.assert_nontrivial_match().unwrap_err().to_string();
    assert!(e.contains("nothing was matched") && e.contains("names that they were saved with"), "{e}");
    assert_eq!(values(&v), [1.0]);
}

#[test]
fn reads_expect_no_counter_and_restores_do() {
    let folder = Folder::new();
    let v = var(&[1.0]);
    let saved = Checkpoint::new().track("v", &v).save(folder.path("saved")).unwrap();
    let written = Checkpoint::new().track("v", &v).write(folder.path("written")).unwrap();
    let fresh = || Checkpoint::new().track("v", &v);
    fresh().restore(&saved).unwrap().assert_consumed().unwrap();
    fresh().read(&written).unwrap().assert_consumed().unwrap();
    let checkpoint = fresh();
    let status = checkpoint.restore(&written).unwrap();
    let e = status.assert_consumed().unwrap_err().to_string();
    assert!(e.contains("only in the program: save_counter"), "{e}");
    let checkpoint = fresh();
    let status = checkpoint.read(&saved).unwrap();
    let e = status.assert_consumed().unwrap_err().to_string();
    assert!(e.contains("only in the file: save_counter"), "{e}");
}

#[test]
fn variables_made_later_fail_assertions_that_passed_before() {
    let folder = Folder::new();
    let path = Checkpoint::new().save(folder.path("empty")).unwrap();
    let linear = Linear::new(2);
    let checkpoint = Checkpoint::new().track("net", &linear);
    let status = checkpoint.restore(path).unwrap();
    status.assert_existing_objects_matched().unwrap();
    linear.forward(&Tensor::ones([1, 2], DType::F32).unwrap()).unwrap();
    let e = status.assert_existing_objects_matched().unwrap_err().to_string();
    assert!(e.contains("net/b, net/w"), "{e}");
}

#[test]
fn values_that_nothing_took_are_warned_of_when_the_status_goes() {
    let folder = Folder::new();
    let (dense, adam) = (Dense::new(&[1.0], &[2.0]), Adam::new(0.1));
    let checkpoint = Checkpoint::new().track("net", &dense).track("optimizer", &adam);
    let path = checkpoint.save(folder.path("ckpt")).unwrap();
    let part: BTreeMap<String, Variable> = [("bias".to_owned(), var(&[0.0]))].into();
    let partial = Checkpoint::new().track("net", &part);
    let warned = messages(|| drop(partial.restore(&path).unwrap()));
    assert_eq!(warned.len(), 3, "{warned:?}");
    assert!(warned[0].contains("expect_partial") && warned[0].contains("ckpt-1"), "{warned:?}");
    assert!(warned[1].ends_with("no object took net/kernel"), "{warned:?}");
    assert!(warned[2].ends_with("no object took optimizer/step"), "{warned:?}");
    // It was said that it is so, or it was reported as an error already, or everything was taken.
    let silent = messages(|| {
        partial.restore(&path).unwrap().expect_partial();
        assert!(partial.restore(&path).unwrap().assert_consumed().is_err());
        drop(checkpoint.restore(&path).unwrap());
    });
    assert!(silent.is_empty(), "{silent:?}");
    // A match of what exists says nothing about the rest.
    let warned = messages(|| {
        partial.restore(&path).unwrap().assert_existing_objects_matched().unwrap();
    });
    assert_eq!(warned.len(), 3, "{warned:?}");
}

#[test]
fn values_that_wait_are_taken_or_warned_of_in_the_end() {
    let folder = Folder::new();
    let x = Tensor::ones([1, 2], DType::F32).unwrap();
    let made = Linear::new(2);
    made.forward(&x).unwrap();
    let path = Checkpoint::new().track("net", &made).save(folder.path("ckpt")).unwrap();
    let later = Linear::new(2);
    let checkpoint = Checkpoint::new().track("net", &later);
    let silent = messages(|| {
        let status = checkpoint.restore(&path).unwrap();
        later.forward(&x).unwrap();
        drop(status);
    });
    assert!(silent.is_empty(), "{silent:?}");
}
