//! Slots stay with their parameters through checkpoints, whatever is frozen and whichever comes first.

use std::path::{Path, PathBuf};

use couplet::checkpoint::{Checkpoint, CheckpointReader, Stored};
use couplet::optim::{Adam, Optimizer};
use couplet::prelude::*;

/// A folder of its own for each test, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Folder(std::env::temp_dir().join(format!("couplet-slots-{name}-{}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // it may not exist
    }
}

fn x() -> Tensor {
    Generator::seed(9).normal([6, 4], 0.0, 1.0, DType::F32).unwrap()
}

/// All layers have the same shapes, so that a slot in the wrong place would go unnoticed but for its values.
fn net() -> MLP {
    random::set_seed(1);
    MLP::new([4, 4, 4])
}

fn train(net: &MLP, optimizer: &Adam, steps: usize) {
    for _ in 0..steps {
        let tape = GradientTape::new();
        let loss = net.forward(&x()).unwrap().square().unwrap().mean().unwrap();
        let params = net.trainable_variables().unwrap();
        optimizer.apply(&tape.gradient(&loss, &params).unwrap(), &params).unwrap();
    }
}

fn bits(module: &dyn Module) -> Vec<(String, Vec<u32>)> {
    let bits = |v: &Variable| v.value().to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect();
    module.named_variables().unwrap().iter().map(|(path, v)| (path.clone(), bits(v))).collect()
}

fn save(net: &MLP, optimizer: &Adam, folder: &Folder) -> PathBuf {
    Checkpoint::new().track("net", net).track("optimizer", optimizer).save(folder.0.join("ckpt")).unwrap()
}

#[test]
fn a_resumed_run_may_freeze_what_the_first_run_trained() {
    let folder = Folder::new("frozen");
    let (first, adam) = (net(), Adam::new(0.01));
    train(&first, &adam, 3);
    let path = save(&first, &adam, &folder);
    // What comes after the save, in the same process.
    first.freeze("_layers/0").unwrap();
    train(&first, &adam, 2);
    first.thaw("").unwrap();
    train(&first, &adam, 2);
    let want = bits(&first);

    // In the next process: the net is built before the restore, or after it.
    for is_built in [true, false] {
        let (next, adam) = (net(), Adam::new(0.01));
        if is_built {
            next.forward(&x()).unwrap();
        }
        let checkpoint = Checkpoint::new().track("net", &next).track("optimizer", &adam);
        let status = checkpoint.restore(&path).unwrap();
        next.freeze("_layers/0").unwrap();
        train(&next, &adam, 2);
        next.thaw("").unwrap();
        train(&next, &adam, 2);
        assert_eq!(bits(&next), want, "built before: {is_built}");
        status.assert_consumed().unwrap();
    }
}

#[test]
fn an_optimizer_that_met_its_parameters_in_another_order_gets_each_slot_right() {
    let folder = Folder::new("order");
    let (first, adam) = (net(), Adam::new(0.01));
    train(&first, &adam, 3);
    let path = save(&first, &adam, &folder);
    train(&first, &adam, 2);

    let (other, reversed) = (net(), Adam::new(0.01));
    other.forward(&x()).unwrap();
    let mut params = other.trainable_variables().unwrap();
    params.reverse();
    let zeros = params.iter().map(|p| Some(Tensor::zeros(p.shape(), p.dtype()).unwrap().into()));
    reversed.apply(&zeros.collect::<Vec<_>>(), &params).unwrap();
    let checkpoint = Checkpoint::new().track("net", &other).track("optimizer", &reversed);
    checkpoint.restore(&path).unwrap().assert_consumed().unwrap();
    train(&other, &reversed, 2);
    assert_eq!(bits(&other), bits(&first));

    // Saved again, it says whom its slots belong to now.
    let again = save(&other, &reversed, &folder);
    let (last, adam) = (net(), Adam::new(0.01));
    Checkpoint::new().track("net", &last).track("optimizer", &adam).restore(again).unwrap().expect_partial();
    for (net, optimizer) in [(&other, &reversed), (&last, &adam)] {
        train(net, optimizer, 2);
    }
    assert_eq!(bits(&last), bits(&other));
}

#[test]
fn what_waits_for_the_first_step_can_be_saved_again() {
    let folder = Folder::new("waiting");
    let (first, adam) = (net(), Adam::new(0.01));
    train(&first, &adam, 3);
    let path = save(&first, &adam, &folder);
    train(&first, &adam, 2);

    let (idle, idle_adam) = (net(), Adam::new(0.01));
    let checkpoint = Checkpoint::new().track("net", &idle).track("optimizer", &idle_adam);
    checkpoint.restore(path).unwrap().expect_partial();
    let path = checkpoint.save(folder.0.join("again")).unwrap();
    let (next, adam) = (net(), Adam::new(0.01));
    let checkpoint = Checkpoint::new().track("net", &next).track("optimizer", &adam);
    let status = checkpoint.restore(path).unwrap();
    train(&next, &adam, 2);
    assert_eq!(bits(&next), bits(&first));
    status.assert_consumed().unwrap();
}

#[derive(Module)]
struct Dense {
    scope: Scope,
    kernel: Variable,
    bias: Variable,
}

#[derive(Module)]
struct Net {
    scope: Scope,
    l1: Dense,
}

/// Keras keeps slots with their variables: `net/l1/bias/.OPTIMIZER_SLOT/optimizer/m`.
#[test]
fn slots_of_keras_are_found() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tf_checkpoints/toy_adam/ckpt-5");
    let zeros =
        |name: &str, shape: &[usize]| Variable::from_tensor(name, Tensor::zeros(shape, DType::F32).unwrap());
    let l1 =
        Dense { scope: Scope::of::<Dense>(), kernel: zeros("kernel", &[1, 5]), bias: zeros("bias", &[5]) };
    let net = Net { scope: Scope::of::<Net>(), l1 };
    let adam = Adam::new(0.1);
    let step = Variable::from_tensor("step", Tensor::from(0i32));
    let checkpoint = Checkpoint::new().track("net", &net).track("optimizer", &adam).track("step", &step);
    checkpoint.restore(&path).unwrap().expect_partial().assert_existing_objects_matched().unwrap();
    assert_eq!(step.value().item::<i32>().unwrap(), 51);
    let folder = Folder::new("keras");
    // The first step makes the slots; a gradient of zero only lets them decay.
    let params = [net.l1.kernel.clone(), net.l1.bias.clone()];
    let zeros = params.iter().map(|p| Some(Tensor::zeros(p.shape(), p.dtype()).unwrap().into()));
    adam.apply(&zeros.collect::<Vec<_>>(), &params).unwrap();
    let saved = checkpoint.write(folder.0.join("ours")).unwrap();
    let (theirs, ours) = (CheckpointReader::open(path).unwrap(), CheckpointReader::open(saved).unwrap());
    let value = |reader: &CheckpointReader, key: &str| match reader.get(key).unwrap() {
        Stored::Tensor(x) => x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap(),
        other => panic!("{other:?}"),
    };
    for (place, of) in [(0, "kernel"), (1, "bias")] {
        for (slot, decay) in [("m", 0.9), ("v", 0.999)] {
            let want = value(&theirs, &format!("net/l1/{of}/.OPTIMIZER_SLOT/optimizer/{slot}"));
            let got = value(&ours, &format!("optimizer/{slot}/{place}"));
            let near = |(got, want): (&f64, &f64)| (got - decay * want).abs() <= 1e-6 * want.abs();
            assert!(got.iter().zip(&want).all(near), "{slot} of {of}: {got:?} {want:?}");
        }
    }
    assert_eq!(value(&ours, "optimizer/step"), [51.0], "50 steps there and one here");
}
