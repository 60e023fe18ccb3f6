//! What a checkpoint promises: values by path, all or none, before or after things are made, and runs that go on as if they had
//! never been stopped.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use couplet::checkpoint::{CheckpointReader, Format, latest_checkpoint};
use couplet::data::Dataset;
use couplet::optim::Adam;
use couplet::prelude::*;

/// A folder of its own for each test, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Folder(std::env::temp_dir().join(format!("couplet-restoring-{name}-{}", std::process::id())))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let list = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = list.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // it may not exist
    }
}

fn number(value: f32) -> Variable {
    Variable::from_tensor("v", Tensor::from(value))
}

fn value(v: &Variable) -> f32 {
    v.value().item::<f32>().unwrap()
}

fn all_values(module: &dyn Module) -> Vec<(String, Vec<f32>)> {
    let named = module.named_variables().unwrap().into_iter();
    named.map(|(path, v)| (path, v.value().cast(DType::F32).unwrap().to_vec::<f32>().unwrap())).collect()
}

const FORMATS: [Format; 3] = [Format::Native, Format::TensorFlow, Format::Safetensors];

/// A network with everything that has a state: weights, averages, and a generator of its own.
#[derive(Module)]
struct Net {
    scope: Scope,
    layers: Sequential,
    dropout: Dropout,
    noise: Generator,
    head: Linear,
}

impl Net {
    fn new() -> Self {
        let scope = Scope::of::<Self>();
        let _in = scope.enter();
        let layers =
            Sequential::new().push(Linear::new(6)).push(BatchNorm::new(true, true)).push(Tensor::relu);
        let dropout = Dropout::new(0.4);
        Net { layers, dropout, noise: Generator::seed(4), head: Linear::new(2), scope }
    }
}

#[scoped]
impl Forward for Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_t(x, true)
    }

    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        let x = (x + self.noise.normal(x.shape(), 0.0, 0.1, x.dtype())?)?;
        let y = self.layers.forward_t(&x, is_training)?;
        self.head.forward(&self.dropout.forward_t(&y, is_training)?)
    }
}

/// Everything that a run is made of.
struct Run {
    net: Net,
    opt: Adam,
    draws: Generator,
    batches: data::Batches<(Tensor, Tensor)>,
    step: Variable,
}

impl Run {
    fn new() -> Self {
        let x = Generator::seed(1).normal([20, 3], 0.0, 1.0, DType::F32).unwrap();
        let y = x.sum_axes(-1, true).unwrap();
        let batches = Dataset::new((x, y)).unwrap().shuffle(3).batches(6);
        let step = Variable::from_tensor("step", Tensor::from(0i64));
        Run { net: Net::new(), opt: Adam::new(0.05), draws: Generator::seed(8), batches, step }
    }

    fn checkpoint(&self) -> Checkpoint<'_> {
        Checkpoint::new()
            .track("net", &self.net)
            .track("optimizer", &self.opt)
            .track("draws", &self.draws)
            .track("iterator", &self.batches)
            .track("step", &self.step)
    }

    fn train(&self, steps: usize) -> Vec<u32> {
        let mut losses = Vec::new();
        random::with(&self.draws, || {
            while losses.len() < steps {
                for batch in &self.batches {
                    let (x, y) = batch.unwrap();
                    let tape = GradientTape::new();
                    let loss = (self.net.forward(&x).unwrap() - y).unwrap().square().unwrap().mean().unwrap();
                    let params = self.net.trainable_variables().unwrap();
                    self.opt.apply(&tape.gradient(&loss, &params).unwrap(), &params).unwrap();
                    self.step.assign_add(&Tensor::from(1i64)).unwrap();
                    losses.push(loss.item::<f32>().unwrap().to_bits());
                    if losses.len() == steps {
                        break;
                    }
                }
            }
        });
        losses
    }
}

#[test]
fn a_resumed_run_repeats_the_uninterrupted_one_bit_for_bit() {
    for format in FORMATS {
        let folder = Folder::new(&format!("resumed-{format:?}"));
        let whole = Run::new();
        whole.train(7); // in the middle of an epoch
        let path = whole.checkpoint().format(format).save(folder.path("ckpt")).unwrap();
        let want = whole.train(9);

        let resumed = Run::new();
        let checkpoint = resumed.checkpoint();
        let status = checkpoint.restore(&path).unwrap();
        assert_eq!(resumed.train(9), want, "{format:?}");
        assert_eq!(all_values(&resumed.net), all_values(&whole.net));
        assert_eq!(resumed.step.value().item::<i64>().unwrap(), 16);
        assert_eq!(
            (resumed.draws.state(), resumed.batches.state()),
            (whole.draws.state(), whole.batches.state())
        );
        status.assert_consumed().unwrap();
    }
}

#[test]
fn the_number_in_the_name_is_the_count_and_a_failed_save_counts_nothing() {
    let folder = Folder::new("count");
    let v = number(1.0);
    let checkpoint = Checkpoint::new().track("v", &v);
    assert_eq!(checkpoint.save(folder.path("ckpt")).unwrap(), folder.path("ckpt-1"));
    assert_eq!(checkpoint.save(folder.path("ckpt")).unwrap(), folder.path("ckpt-2"));
    std::fs::write(folder.path("file"), "").unwrap();
    let e = checkpoint.save(folder.path("file/ckpt")).unwrap_err().to_string();
    assert!(e.contains("file"), "{e}");
    assert_eq!(checkpoint.save(folder.path("ckpt")).unwrap(), folder.path("ckpt-3"));
    let other = number(0.0);
    let restored = Checkpoint::new().track("v", &other);
    restored.restore(folder.path("ckpt-3")).unwrap().assert_consumed().unwrap();
    assert_eq!(restored.save_counter().unwrap().value().item::<i64>().unwrap(), 3);
    assert_eq!(folder.names(), ["checkpoint", "ckpt-1.couplet", "ckpt-2.couplet", "ckpt-3.couplet", "file"]);
    assert_eq!(latest_checkpoint(&folder.0).unwrap(), Some(folder.path("ckpt-3")));

    // `write` counts nothing, and `read` expects no count.
    Checkpoint::new().track("v", &v).write(folder.path("plain")).unwrap();
    Checkpoint::new().track("v", &other).read(folder.path("plain")).unwrap().assert_consumed().unwrap();
    let e = Checkpoint::new()
        .track("v", &other)
        .restore(folder.path("plain"))
        .unwrap()
        .assert_consumed()
        .unwrap_err()
        .to_string();
    assert!(e.contains("only in the program: save_counter"), "{e}");
}

#[test]
fn a_value_that_does_not_fit_changes_nothing_and_all_are_listed() {
    let folder = Folder::new("misfit");
    let x = Tensor::ones([2, 3], DType::F32).unwrap();
    let saved = MLP::new([4, 2]);
    saved.forward(&x).unwrap();
    let path = Checkpoint::new().track("net", &saved).save(folder.path("ckpt")).unwrap();
    for format in FORMATS {
        let path = match format {
            Format::Native => path.clone(),
            format => {
                let to = folder.path(&format!("as-{format:?}"));
                CheckpointReader::open(&path).unwrap().convert(&to, format).unwrap();
                to
            }
        };
        let other = MLP::new([5, 2]);
        other.forward(&x).unwrap();
        let before = all_values(&other);
        let checkpoint = Checkpoint::new().track("net", &other);
        let e = checkpoint.restore(&path).unwrap_err().to_string();
        for part in [
            "nothing was restored",
            "net/_layers/0/b: the file holds f32[4], the variable mlp/linear_0/b is f32[5]",
            "_layers/1/w",
        ] {
            assert!(e.contains(part), "{format:?}: {e}");
        }
        assert_eq!(all_values(&other), before);
        // A dtype is another matter than a shape, and is never converted.
        let doubles = MLP::new([4, 2]);
        doubles.forward(&x.cast(DType::F64).unwrap()).unwrap();
        let e = Checkpoint::new().track("net", &doubles).restore(&path).unwrap_err().to_string();
        assert!(e.contains("is f64[4]"), "{e}");
        // Tables that are made without an input do not fit either.
        let embed = Embed::new(7).embed_dim(2);
        let saved = Embed::new(5).embed_dim(2);
        let name = format!("embed-{format:?}");
        let table =
            Checkpoint::new().track("embed", &saved).format(format).write(folder.path(&name)).unwrap();
        let checkpoint = Checkpoint::new().track("embed", &embed);
        let e = checkpoint.read(&table).unwrap_err().to_string();
        assert!(e.contains("embed") && e.contains('5') && e.contains('7'), "{e}");
        assert_eq!(embed.forward(&Tensor::from([6i64])).unwrap().shape(), &[1, 2]);
    }
}

#[test]
fn what_is_made_later_takes_its_value_and_draws_nothing() {
    let folder = Folder::new("later");
    let x = Tensor::ones([2, 3], DType::F32).unwrap();
    let saved = MLP::new([4, 4, 2]);
    let y = saved.forward(&x).unwrap().to_vec::<f32>().unwrap();
    let path = Checkpoint::new().track("net", &saved).save(folder.path("ckpt")).unwrap();
    let net = MLP::new([4, 4, 2]);
    let checkpoint = Checkpoint::new().track("net", &net);
    let status = checkpoint.restore(&path).unwrap();
    let report = status.report();
    assert_eq!((report.waiting.len(), report.restored.as_slice()), (6, &["save_counter".to_owned()][..]));
    let e = status.assert_consumed().unwrap_err().to_string();
    assert!(e.contains("waiting for what is not made yet: net/_layers/0/b, net/_layers/0/w"), "{e}");
    let generator = Generator::seed(5);
    let got = random::with(&generator, || net.forward(&x)).unwrap();
    assert_eq!((got.to_vec::<f32>().unwrap(), generator.state()), (y, Generator::seed(5).state()));
    status.assert_consumed().unwrap();
}

#[test]
fn items_that_are_pushed_later_take_theirs() {
    let folder = Folder::new("pushed");
    let saved: List<Variable> = (0..4).map(|i| number(i as f32)).collect();
    let path = Checkpoint::new().track("list", &saved).save(folder.path("ckpt")).unwrap();
    let list: List<Variable> = [number(9.0)].into_iter().collect();
    let checkpoint = Checkpoint::new().track("list", &list);
    let status = checkpoint.restore(&path).unwrap();
    assert_eq!(value(&list[0]), 0.0);
    for i in 1..4 {
        list.push(number(9.0)).unwrap();
        assert_eq!(value(&list[i]), i as f32);
    }
    status.assert_consumed().unwrap();
    let e = list.push(number(9.0)).err();
    assert!(e.is_none() && value(&list[4]) == 9.0, "the file has four");
    let e = status.assert_existing_objects_matched().unwrap_err().to_string();
    assert!(e.contains("only in the program: list/4"), "{e}");
}

#[test]
fn of_two_pending_restores_the_later_wins_and_the_earlier_fills_the_rest() {
    let folder = Folder::new("pending");
    let (a, b) = (number(1.0), number(2.0));
    let both = [a.clone(), b.clone()];
    let first = Checkpoint::new().track("l", &both).write(folder.path("both")).unwrap();
    a.assign(&Tensor::from(10.0f32)).unwrap();
    let one = [a];
    let second = Checkpoint::new().track("l", &one).write(folder.path("one")).unwrap();
    for (order, want) in [([&first, &second], [10.0, 2.0]), ([&second, &first], [1.0, 2.0])] {
        let list: List<Variable> = List::new();
        let checkpoint = Checkpoint::new().track("l", &list);
        for path in order {
            checkpoint.read(path).unwrap().expect_partial();
        }
        (0..2).for_each(|_| list.push(number(9.0)).unwrap());
        assert_eq!([value(&list[0]), value(&list[1])], want);
    }
}

#[test]
fn shared_objects_and_cycles_are_saved_once() {
    #[derive(Module)]
    struct Tied {
        scope: Scope,
        left: Arc<Linear>,
        right: Arc<Linear>,
    }
    let folder = Folder::new("shared");
    let shared = Arc::new(Linear::new(3));
    let tied = Tied { scope: Scope::of::<Tied>(), left: shared.clone(), right: shared };
    tied.left.forward(&Tensor::ones([1, 3], DType::F32).unwrap()).unwrap();
    let path =
        Checkpoint::new().track("net", &tied).track("again", &tied).write(folder.path("ckpt")).unwrap();
    let reader = CheckpointReader::open(&path).unwrap();
    assert_eq!(
        reader.paths().keys().collect::<Vec<_>>(),
        ["again/left/b", "again/left/w"],
        "the first shortest path"
    );
    Checkpoint::new()
        .track("net", &tied)
        .track("again", &tied)
        .read(&path)
        .unwrap()
        .assert_consumed()
        .unwrap();
}

#[test]
fn a_part_is_restored_and_the_rest_is_told() {
    let folder = Folder::new("part");
    let x = Tensor::ones([2, 3], DType::F32).unwrap();
    let saved = MLP::new([4, 2]).b_init(init::RandomNormal::new(1.0));
    saved.forward(&x).unwrap();
    let path =
        Checkpoint::new().track("net", &saved).track("step", &number(3.0)).save(folder.path("ckpt")).unwrap();

    let bias = Variable::from_tensor("b", Tensor::zeros([4], DType::F32).unwrap());
    let layer = std::collections::BTreeMap::from([("b".to_owned(), bias.clone())]);
    let layers = [layer];
    let net = std::collections::BTreeMap::from([("_layers".to_owned(), layers)]);
    let checkpoint = Checkpoint::new().track("net", &net);
    let status = checkpoint.restore(&path).unwrap();
    assert!(all_values(&saved).contains(&("_layers/0/b".into(), bias.value().to_vec::<f32>().unwrap())));
    assert_ne!(value(&number(0.0)), bias.value().sum().unwrap().item::<f32>().unwrap());
    status.assert_existing_objects_matched().unwrap().assert_nontrivial_match().unwrap();
    let e = status.assert_consumed().unwrap_err().to_string();
    for path in ["net/_layers/0/w", "net/_layers/1/b", "net/_layers/1/w", "step"] {
        assert!(e.contains(path), "{e}");
    }
    // A name that is nearly right is pointed out.
    let misspelt = Checkpoint::new().track("nett", &saved);
    let status = misspelt.restore(&path).unwrap();
    let e = status.assert_nontrivial_match().unwrap_err().to_string();
    assert!(e.contains("net/_layers/0/b (near nett/_layers/0/b)"), "{e}");
}

#[test]
fn a_path_that_leads_to_no_checkpoint_says_what_would() {
    let folder = Folder::new("paths");
    let v = number(1.0);
    let checkpoint = Checkpoint::new().track("v", &v);
    checkpoint.save(folder.path("ckpt")).unwrap();
    Checkpoint::new().track("v", &v).format(Format::TensorFlow).write(folder.path("tf")).unwrap();
    let refused = |path: &Path| Checkpoint::new().track("v", &v).restore(path).unwrap_err().to_string();
    for (path, says) in [
        (folder.path("ckpt"), "these begin alike: ckpt-1"),
        (folder.path("other"), "there is no checkpoint of this name"),
        (folder.0.clone(), "latest_checkpoint"),
        (folder.path("tf.index"), "give its prefix"),
        (folder.path("tf.data-00000-of-00001"), "give its prefix"),
        (folder.path("checkpoint"), "no format of checkpoints"),
        (PathBuf::new(), "the path is empty"),
    ] {
        let e = refused(&path);
        assert!(e.contains(says), "{e}");
    }
    let e = Checkpoint::new().track("v", &v).track("v", &v).save(folder.path("x")).unwrap_err().to_string();
    assert!(e.contains("\"v\" twice"), "{e}");
    assert_eq!(value(&v), 1.0);
}

#[test]
fn a_damaged_latest_checkpoint_is_passed_over_and_named() {
    let folder = Folder::new("damaged");
    let v = number(0.0);
    let manager = CheckpointManager::new(Checkpoint::new().track("v", &v), &folder.0).unwrap();
    for i in 1..=3 {
        v.assign(&Tensor::from(i as f32)).unwrap();
        manager.save().unwrap();
    }
    drop(manager);
    // One bit of the value itself.
    let file = folder.path("ckpt-3.couplet");
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.len() - 8 - 64; // the count comes last, in the 64 bytes after the value
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    std::fs::write(folder.path("ckpt-2.couplet"), "CPLTCKPT").unwrap();

    let other = number(9.0);
    let manager = CheckpointManager::new(Checkpoint::new().track("v", &other), &folder.0).unwrap();
    let resumed = manager.restore_or_initialize().unwrap().unwrap();
    assert_eq!((resumed.path.clone(), value(&other)), (folder.path("ckpt-1"), 1.0));
    let told = resumed.to_string();
    assert!(
        told.contains("ckpt-1") && told.contains("ckpt-3 was passed over") && told.contains("ckpt-2"),
        "{told}"
    );
    drop(resumed);
    assert_eq!(manager.save().unwrap(), Some(folder.path("ckpt-4")), "no number is used twice");
    // When nothing is whole, it is not taken for a new start.
    for i in [1, 4] {
        std::fs::write(folder.path(&format!("ckpt-{i}.couplet")), "").unwrap();
    }
    let manager = CheckpointManager::new(Checkpoint::new().track("v", &other), &folder.0).unwrap();
    let e = manager.restore_or_initialize().unwrap_err().to_string();
    assert!(e.contains("none of 4 checkpoints can be restored") && e.contains("truncated"), "{e}");
}

#[test]
fn a_save_in_the_background_holds_the_values_of_its_call() {
    let folder = Folder::new("background");
    let large = Variable::from_tensor("large", Tensor::zeros([1 << 20], DType::F32).unwrap());
    let checkpoint = Checkpoint::new().track("large", &large);
    for i in 0..5 {
        let path = checkpoint.save_async(folder.path("ckpt")).unwrap();
        large.assign_add(&Tensor::ones([1 << 20], DType::F32).unwrap()).unwrap();
        checkpoint.sync().unwrap();
        let other = Variable::from_tensor("large", Tensor::zeros([1 << 20], DType::F32).unwrap());
        Checkpoint::new().track("large", &other).restore(path).unwrap().assert_consumed().unwrap();
        assert!(other.value().to_vec::<f32>().unwrap().iter().all(|&x| x == i as f32));
    }
    // What cannot be written is told by the next call.
    std::fs::write(folder.path("file"), "").unwrap();
    checkpoint.save_async(folder.path("file/ckpt")).unwrap();
    assert!(checkpoint.save(folder.path("ckpt")).is_err());
    checkpoint.save(folder.path("ckpt")).unwrap();
}

#[test]
fn a_manager_keeps_the_newest_and_survives_a_moved_folder() {
    let folder = Folder::new("moved");
    let v = number(0.0);
    let step = Variable::from_tensor("step", Tensor::from(0i64));
    let odd = folder.path("a [b] *c\\ 'd\" ü");
    let checkpoint = Checkpoint::new().track("v", &v).track("step", &step);
    let manager = CheckpointManager::new(checkpoint, &odd).unwrap().max_to_keep(2).step_interval(&step, 5);
    let mut saved = Vec::new();
    for i in 0..12 {
        step.assign(&Tensor::from(i as i64)).unwrap();
        saved.extend(manager.save().unwrap().map(|_| i));
    }
    assert_eq!(saved, [0, 5, 10]);
    assert_eq!(manager.checkpoints(), [odd.join("ckpt-2"), odd.join("ckpt-3")]);
    drop(manager);
    let moved = folder.path("moved");
    std::fs::rename(&odd, &moved).unwrap();
    let checkpoint = Checkpoint::new().track("v", &v).track("step", &step);
    let manager = CheckpointManager::new(checkpoint, &moved).unwrap().max_to_keep(1);
    assert_eq!(manager.restore_or_initialize().unwrap().unwrap().path, moved.join("ckpt-3"));
    assert_eq!(step.value().item::<i64>().unwrap(), 10);
    // A file whose name only begins alike is not touched.
    std::fs::write(moved.join("ckpt-2.couplet.bak"), "").unwrap();
    manager.save().unwrap();
    let names = Folder(moved.clone()).names();
    assert_eq!(names, ["checkpoint", "ckpt-2.couplet.bak", "ckpt-4.couplet"]);
}
