//! Saves while training goes on, and readers while a save goes on.

use std::sync::atomic::{AtomicBool, Ordering};

use couplet::checkpoint::{Checkpoint, latest_checkpoint};
use couplet::prelude::*;

use crate::support::{Folder, messages, values, var};

fn fill(variable: &Variable, value: f32) {
    variable.assign(&Tensor::full(variable.shape().clone(), value.into(), DType::F32).unwrap()).unwrap();
}

#[test]
fn values_are_those_of_the_call() {
    let folder = Folder::new();
    let list: Vec<Variable> = (0..8).map(|_| var(&[0.0; 100_000])).collect();
    let checkpoint = Checkpoint::new().track("list", &list);
    for number in 1..=5u8 {
        list.iter().for_each(|variable| fill(variable, number.into()));
        let path = checkpoint.save_async(folder.path("ckpt")).unwrap();
        assert_eq!(path, folder.path(&format!("ckpt-{number}")));
        // Training goes on, in place.
        list.iter().for_each(|v| v.assign_add(&Tensor::full([100_000], 0.5, DType::F32).unwrap()).unwrap());
    }
    checkpoint.sync().unwrap();
    assert_eq!(latest_checkpoint(folder.path("")).unwrap(), Some(folder.path("ckpt-5")));
    for number in 1..=5u8 {
        checkpoint.restore(folder.path(&format!("ckpt-{number}"))).unwrap().assert_consumed().unwrap();
        assert!(list.iter().all(|variable| values(variable).iter().all(|&x| x == f32::from(number))));
    }
}

#[test]
fn an_error_of_the_background_is_that_of_the_next_call() {
    let folder = Folder::new();
    let v = var(&[1.0]);
    let checkpoint = Checkpoint::new().track("v", &v);
    let count = || checkpoint.save_counter().unwrap().value().item::<i64>().unwrap();
    std::fs::create_dir(folder.path("ckpt-1.couplet")).unwrap();
    for call in 0..4 {
        std::fs::create_dir_all(folder.path(&format!("ckpt-{}.couplet", count() + 1))).unwrap();
        checkpoint.save_async(folder.path("ckpt")).unwrap();
        let e = match call {
            0 => checkpoint.sync().unwrap_err(),
            1 => checkpoint.save(folder.path("ckpt")).unwrap_err(),
            2 => checkpoint.save_async(folder.path("ckpt")).unwrap_err(),
            _ => checkpoint.restore(folder.path("ckpt-1")).unwrap_err(),
        };
        assert!(e.to_string().contains(".couplet: "), "{e}");
        checkpoint.sync().unwrap(); // once is enough
    }
    assert!(!folder.path("checkpoint").exists(), "none of them is the latest");
    let path = checkpoint.save(folder.path("ckpt")).unwrap();
    checkpoint.restore(path).unwrap().assert_consumed().unwrap();
}

#[test]
fn an_error_that_nobody_asks_for_is_reported_when_the_checkpoint_goes() {
    let folder = Folder::new();
    let v = var(&[1.0]);
    std::fs::create_dir(folder.path("ckpt-1.couplet")).unwrap();
    let reported =
        messages(|| drop(Checkpoint::new().track("v", &v).save_async(folder.path("ckpt")).unwrap()));
    assert!(reported.len() == 1 && reported[0].contains("ckpt-1.couplet"), "{reported:?}");
}

#[test]
fn readers_see_whole_checkpoints_only() {
    let folder = Folder::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let list: Vec<Variable> = (0..20).map(|_| var(&[0.0; 2000])).collect();
            let manager =
                CheckpointManager::new(Checkpoint::new().track("list", &list), folder.path("")).unwrap();
            let manager = manager.max_to_keep(2);
            for number in 1..=60u8 {
                list.iter().for_each(|variable| fill(variable, number.into()));
                manager.save().unwrap();
            }
            done.store(true, Ordering::Release);
        });
        let list: Vec<Variable> = (0..20).map(|_| var(&[0.0; 2000])).collect();
        let mut newest = 0.0;
        while !done.load(Ordering::Acquire) {
            let manager =
                CheckpointManager::new(Checkpoint::new().track("list", &list), folder.path("")).unwrap();
            // Between the state file and the restore the writer may have deleted all that the file named.
            let Ok(Some(resumed)) = manager.restore_or_initialize() else { continue };
            resumed.status.assert_consumed().unwrap();
            let first = values(&list[0])[0];
            assert!(
                list.iter().all(|variable| values(variable).iter().all(|&x| x == first)),
                "two saves in one"
            );
            assert!(first >= newest, "{first} after {newest}");
            newest = first;
        }
    });
    assert_eq!(folder.names(), ["checkpoint", "ckpt-59.couplet", "ckpt-60.couplet"]);
}
