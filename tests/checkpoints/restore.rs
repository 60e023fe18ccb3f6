//! What a restore gives to whom, at once and later, and that it gives nothing where something does not fit.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;

use couplet::checkpoint::{Checkpoint, Format};
use couplet::data::Dataset;
use couplet::init::Initializer;
use couplet::optim::Adam;
use couplet::prelude::*;
use couplet::{Deferred, Visit};

use crate::support::{Dense, Folder, values, var};

fn x() -> Tensor {
    Tensor::ones([2, 3], DType::F32).unwrap()
}

/// Fails when it is asked for a value.
#[derive(Debug)]
struct Never;

impl Initializer for Never {
    fn init(&self, _: &Shape, _: DType) -> Result<Tensor> {
        panic!("an initialiser ran although a value waits")
    }
}

fn saved(folder: &Folder, name: &str, objects: &[(&str, &dyn Visit)]) -> PathBuf {
    let checkpoint = objects.iter().fold(Checkpoint::new(), |c, (name, object)| c.track(*name, *object));
    checkpoint.save(folder.path(name)).unwrap()
}

#[test]
fn layers_made_later_take_their_values_without_initialiser_or_draw() {
    let folder = Folder::new();
    let made = Linear::new(4);
    let y = made.forward(&x()).unwrap();
    let path = saved(&folder, "ckpt", &[("net", &made)]);
    let generator = Generator::seed(3);
    random::with(&generator, || {
        let later = Linear::new(4).w_init(Never).b_init(Never);
        let checkpoint = Checkpoint::new().track("net", &later);
        let status = checkpoint.restore(&path).unwrap();
        assert_eq!(status.report().waiting, ["net/b", "net/w"]);
        assert_eq!(later.forward(&x()).unwrap().to_vec::<f32>().unwrap(), y.to_vec::<f32>().unwrap());
        status.assert_consumed().unwrap();
    });
    assert_eq!(generator.state(), Generator::seed(3).state());
}

#[test]
fn whole_sub_modules_made_later_draw_nothing() {
    let folder = Folder::new();
    let build = || Deferred::new(|| MLP::new([5, 4]));
    let made = build();
    let y = made.forward(&x()).unwrap();
    let path = saved(&folder, "ckpt", &[("net", &made)]);
    let generator = Generator::seed(4);
    let later = build();
    let checkpoint = Checkpoint::new().track("net", &later);
    let status = checkpoint.restore(&path).unwrap();
    let z = random::with(&generator, || later.forward(&x()).unwrap());
    assert_eq!(z.to_vec::<f32>().unwrap(), y.to_vec::<f32>().unwrap());
    assert_eq!(generator.state(), Generator::seed(4).state());
    status.assert_consumed().unwrap();
}

#[test]
fn a_value_that_waits_and_does_not_fit_is_refused_when_the_layer_is_made() {
    let folder = Folder::new();
    let made = Linear::new(4);
    made.forward(&x()).unwrap();
    let path = saved(&folder, "ckpt", &[("net", &made)]);
    let other = Linear::new(4);
    let checkpoint = Checkpoint::new().track("net", &other);
    let status = checkpoint.restore(&path).unwrap();
    let e = other.forward(&Tensor::ones([2, 7], DType::F32).unwrap()).unwrap_err().to_string();
    assert!(e.contains("[3, 4]") && e.contains("[7, 4]"), "both sides are named: {e}");
    // It still waits for an input that fits.
    other.forward(&x()).unwrap();
    status.assert_consumed().unwrap();
}

#[test]
fn the_list_of_the_guide_takes_its_value_when_it_is_given_an_item() {
    let folder = Folder::new();
    let mapped: BTreeMap<String, Variable> =
        [("one".to_owned(), var(&[1.0])), ("two".to_owned(), var(&[2.0]))].into();
    let listed = List::from_iter([var(&[3.0]), var(&[4.0])]);
    let path = saved(&folder, "ckpt", &[("mapped", &mapped), ("listed", &listed)]);
    let few: BTreeMap<String, Variable> = [("two".to_owned(), var(&[0.0]))].into();
    let growing = List::new();
    let checkpoint = Checkpoint::new().track("mapped", &few).track("listed", &growing);
    let status = checkpoint.restore(&path).unwrap();
    status.expect_partial().assert_existing_objects_matched().unwrap();
    assert_eq!(values(&few["two"]), [2.0]);
    growing.push(var(&[0.0])).unwrap();
    assert_eq!(values(&growing[0]), [3.0]);
    let report = status.report();
    assert_eq!((report.waiting, report.unused), (vec!["listed/1".to_owned()], vec!["mapped/one".to_owned()]));
    let e = growing.push(var(&[0.0, 0.0])).unwrap_err().to_string();
    assert!(e.contains("[1]") && e.contains("[2]"), "{e}");
    growing.push(var(&[0.0])).unwrap();
    growing.push(var(&[9.0])).unwrap();
    assert_eq!([&growing[1], &growing[2]].map(|v| values(v)[0]), [4.0, 9.0], "one value each, and no more");
}

#[test]
fn a_bias_alone_is_restored_through_objects_made_for_it() {
    let folder = Folder::new();
    let (net, adam) = (Dense::new(&[1.0, 2.0], &[3.0]), Adam::new(0.1));
    let step = Variable::from_tensor("step", Tensor::from(7i32));
    let l1: BTreeMap<String, &Dense> = [].into();
    assert!(l1.is_empty());
    let real: BTreeMap<String, Arc<Dense>> = [("l1".to_owned(), Arc::new(net))].into();
    let path = saved(&folder, "ckpt", &[("net", &real), ("optimizer", &adam), ("step", &step)]);
    let bias = var(&[0.0]);
    let fake: BTreeMap<String, BTreeMap<String, Variable>> =
        [("l1".to_owned(), [("bias".to_owned(), bias.clone())].into())].into();
    let checkpoint = Checkpoint::new().track("net", &fake);
    let status = checkpoint.restore(&path).unwrap();
    assert_eq!(values(&bias), [3.0]);
    status.assert_existing_objects_matched().unwrap().assert_nontrivial_match().unwrap();
    let e = status.assert_consumed().unwrap_err().to_string();
    assert!(["net/l1/kernel", "optimizer/step", "step"].iter().all(|path| e.contains(path)), "{e}");
    assert!(e.contains("expect_partial"), "{e}");
}

#[test]
fn slots_wait_for_the_first_step_and_need_no_initialiser() {
    let folder = Folder::new();
    let train = |net: &Dense, adam: &Adam| {
        let parameters = [net.kernel.clone(), net.bias.clone()];
        let ones = parameters.iter().map(|p| Some(Tensor::ones(p.shape(), p.dtype()).unwrap().into()));
        adam.apply(&ones.collect::<Vec<_>>(), &parameters).unwrap();
    };
    let (net, adam) = (Dense::new(&[1.0, 2.0], &[3.0]), Adam::new(0.1));
    (0..3).for_each(|_| train(&net, &adam));
    let path = saved(&folder, "ckpt", &[("net", &net), ("adam", &adam)]);
    train(&net, &adam);
    let (other, fresh) = (Dense::new(&[0.0, 0.0], &[0.0]), Adam::new(0.1));
    let checkpoint = Checkpoint::new().track("net", &other).track("adam", &fresh);
    let status = checkpoint.restore(&path).unwrap();
    assert_eq!(status.report().waiting, ["adam/m/0", "adam/m/1", "adam/v/0", "adam/v/1"]);
    train(&other, &fresh);
    status.assert_consumed().unwrap();
    assert_eq!((values(&other.kernel), values(&other.bias)), (values(&net.kernel), values(&net.bias)));
}

#[test]
fn of_two_restores_the_later_comes_first_and_the_earlier_fills_what_it_lacks() {
    let folder = Folder::new();
    let both = List::from_iter([var(&[1.0]), var(&[2.0])]);
    let (p1, one) = (saved(&folder, "both", &[("list", &both)]), List::from_iter([var(&[3.0])]));
    let p3 = saved(&folder, "one", &[("list", &one)]);
    for (first, second, want) in [(&p1, &p3, [3.0, 2.0]), (&p3, &p1, [1.0, 2.0])] {
        let list = List::new();
        let checkpoint = Checkpoint::new().track("list", &list);
        checkpoint.restore(first).unwrap().expect_partial();
        checkpoint.restore(second).unwrap().expect_partial();
        list.push(var(&[0.0])).unwrap();
        list.push(var(&[0.0])).unwrap();
        assert_eq!([values(&list[0])[0], values(&list[1])[0]], want);
    }
}

#[test]
fn a_later_restore_of_what_exists_overwrites_and_the_earlier_status_still_passes() {
    let folder = Folder::new();
    let v = var(&[1.0]);
    let checkpoint = Checkpoint::new().track("v", &v);
    let first = checkpoint.save(folder.path("ckpt")).unwrap();
    v.assign(&Tensor::from(vec![2.0f32])).unwrap();
    let second = checkpoint.save(folder.path("ckpt")).unwrap();
    let earlier = checkpoint.restore(&second).unwrap();
    checkpoint.restore(&first).unwrap().assert_consumed().unwrap();
    assert_eq!(values(&v), [1.0]);
    earlier.assert_consumed().unwrap();
}

/// Everything that a restore could change.
struct Program {
    dense: Dense,
    unmade: Linear,
    list: List<Variable>,
    words: Words,
    generator: Generator,
    batches: couplet::data::Batches<Tensor>,
}

/// A module that keeps plain state.
#[derive(Module)]
struct Words {
    scope: Scope,
    #[module(state)]
    words: Mutex<Vec<String>>,
}

impl Words {
    fn new(words: &[&str]) -> Self {
        let words = Mutex::new(words.iter().map(|word| (*word).to_owned()).collect());
        Words { scope: Scope::of::<Self>(), words }
    }
}

impl Program {
    fn new(value: f32, seed: u64) -> Self {
        let batches = Dataset::new(Tensor::from([1i32, 2, 3, 4, 5])).unwrap().shuffle(seed).batches(2);
        Program {
            dense: Dense::new(&[value, value], &[value]),
            unmade: Linear::new(4),
            list: List::new(),
            words: Words::new(&[]),
            generator: Generator::seed(seed),
            batches,
        }
    }

    fn track<'a>(&'a self, checkpoint: Checkpoint<'a>) -> Checkpoint<'a> {
        let checkpoint = checkpoint.track("dense", &self.dense).track("unmade", &self.unmade);
        let checkpoint = checkpoint.track("list", &self.list).track("words", &self.words);
        checkpoint.track("generator", &self.generator).track("batches", &self.batches)
    }

    fn assert_untouched(&self, seed: u64) {
        assert_eq!((values(&self.dense.kernel), values(&self.dense.bias)), (vec![0.0, 0.0], vec![0.0]));
        assert!(self.words.words.lock().unwrap().is_empty());
        assert_eq!(self.generator.state(), Generator::seed(seed).state());
        let fresh = Program::new(0.0, seed);
        assert_eq!(self.batches.state(), fresh.batches.state());
        // Nothing waits: the layer draws what a fresh one draws, and the list takes what it is given.
        let draw = |linear: &Linear| {
            let y = random::with(&Generator::seed(8), || linear.forward(&x()).unwrap());
            y.to_vec::<f32>().unwrap()
        };
        assert_eq!(draw(&self.unmade), draw(&fresh.unmade));
        self.list.push(var(&[9.0])).unwrap();
        assert_eq!(values(&self.list[0]), [9.0]);
    }
}

fn trained() -> Program {
    let program = Program::new(5.0, 1);
    program.unmade.forward(&x()).unwrap();
    program.list.push(var(&[6.0])).unwrap();
    program.words.words.lock().unwrap().push("cat".into());
    let _ = program.generator.split();
    (&program.batches).into_iter().next().unwrap().unwrap();
    program
}

#[test]
fn all_that_does_not_fit_is_listed_and_nothing_is_changed() {
    let folder = Folder::new();
    let (first, wide, other) =
        (trained(), var(&[1.0, 2.0, 3.0]), Variable::from_tensor("n", Tensor::from([1i64])));
    let checkpoint = first.track(Checkpoint::new()).track("wide", &wide).track("zother", &other);
    let path = checkpoint.save(folder.path("ckpt")).unwrap();
    let program = Program::new(0.0, 2);
    let (narrow, scalar) = (var(&[0.0]), Variable::from_tensor("n", Tensor::from([0i32])));
    let checkpoint = program.track(Checkpoint::new()).track("wide", &narrow).track("zother", &scalar);
    let e = checkpoint.restore(&path).unwrap_err().to_string();
    assert!(e.contains("wide: the file holds f32[3], the variable v is f32[1]"), "{e}");
    assert!(e.contains("zother: the file holds i64[1], the variable n is i32[1]"), "{e}");
    assert!(e.contains("nothing was restored"), "{e}");
    program.assert_untouched(2);
    assert_eq!(values(&narrow), [0.0]);
    // What fits is restored by the same program without the two.
    let program = Program::new(0.0, 2);
    let checkpoint = program.track(Checkpoint::new());
    checkpoint.restore(&path).unwrap().expect_partial();
    assert_eq!(values(&program.dense.kernel), [5.0, 5.0]);
    assert_eq!(*program.words.words.lock().unwrap(), ["cat"]);
    assert_eq!(program.generator.state(), first.generator.state());
    assert_eq!(program.batches.state(), first.batches.state());
}

#[test]
fn no_value_is_broadcast_or_converted() {
    let folder = Folder::new();
    let scalar = Variable::from_tensor("s", Tensor::from(1.0f32));
    let path = saved(&folder, "ckpt", &[("v", &scalar)]);
    for other in
        [Tensor::zeros([2], DType::F32), Tensor::zeros([], DType::F64), Tensor::zeros([1], DType::F32)]
    {
        let v = Variable::from_tensor("v", other.unwrap());
        let e = Checkpoint::new().track("v", &v).restore(&path).unwrap_err().to_string();
        assert!(e.contains("v: the file holds f32[]"), "{e}");
    }
}

#[test]
fn modules_that_make_their_tables_without_an_input_are_checked_before_any_is_made() {
    let folder = Folder::new();
    let sizes =
        |sizes: [usize; 3]| sizes.map(|size| Embed::new(size).embed_dim(2)).into_iter().collect::<Vec<_>>();
    let first = sizes([3, 4, 5]);
    let v = var(&[1.0]);
    let path = saved(&folder, "ckpt", &[("embeds", &first), ("v", &v)]);
    let (other, w) = (sizes([3, 7, 8]), var(&[0.0]));
    let e = Checkpoint::new().track("embeds", &other).track("v", &w).restore(&path).unwrap_err().to_string();
    assert!(e.contains("nothing was restored"), "{e}");
    for (place, got, want) in [("embeds/1", "[4, 2]", "[7, 2]"), ("embeds/2", "[5, 2]", "[8, 2]")] {
        assert!(e.contains(place) && e.contains(got) && e.contains(want), "{place}: {e}");
    }
    assert_eq!(values(&w), [0.0]);
    let fresh = Embed::new(3).embed_dim(2);
    let table = |embed: &Embed| random::with(&Generator::seed(1), || values(embed.table().unwrap()));
    assert_eq!(table(&other[0]), table(&fresh), "the one that fits was not made either");
    let right = sizes([3, 4, 5]);
    Checkpoint::new().track("embeds", &right).restore(&path).unwrap().expect_partial();
    assert_eq!(values(right[2].table().unwrap()), values(first[2].table().unwrap()));
}

#[test]
fn plain_state_and_a_variable_do_not_take_each_others_value() {
    let folder = Folder::new();
    let (words, v) = (Words::new(&["a"]), var(&[1.0]));
    let state: BTreeMap<String, Variable> = [("words".to_owned(), v)].into();
    let (from_state, from_variable) =
        (saved(&folder, "s", &[("x", &words)]), saved(&folder, "v", &[("x", &state)]));
    let e = Checkpoint::new().track("x", &state).restore(&from_state).unwrap_err().to_string();
    assert!(e.contains("x/words: the file holds plain state, the program has a variable"), "{e}");
    let e = Checkpoint::new().track("x", &words).restore(&from_variable).unwrap_err().to_string();
    assert!(e.contains("x/words: the file holds a variable, the program has plain state"), "{e}");
    assert_eq!(*words.words.lock().unwrap(), ["a"]);
}

#[test]
fn plain_state_that_refuses_its_bytes_undoes_the_rest() {
    let folder = Folder::new();
    let batches =
        |rows: i32| Dataset::new(Tensor::from((0..rows).collect::<Vec<_>>())).unwrap().shuffle(1).batches(2);
    let (seven, generator, v) = (batches(7), Generator::seed(1), var(&[1.0]));
    let path = saved(&folder, "ckpt", &[("a", &generator), ("b", &seven), ("v", &v)]);
    let (nine, other, w) = (batches(9), Generator::seed(2), var(&[0.0]));
    let checkpoint = Checkpoint::new().track("a", &other).track("b", &nine).track("v", &w);
    let e = checkpoint.restore(&path).unwrap_err().to_string();
    assert!(e.contains("in b: ") && e.contains("7 rows") && e.contains("9 rows"), "{e}");
    assert_eq!((other.state(), values(&w)), (Generator::seed(2).state(), vec![0.0]));
}

#[test]
fn a_variable_where_the_file_has_only_parts_is_reported() {
    let folder = Folder::new();
    let (dense, v) = (Dense::new(&[1.0], &[2.0]), var(&[3.0]));
    let from_dense = saved(&folder, "dense", &[("x", &dense)]);
    let from_variable = saved(&folder, "v", &[("x", &v)]);
    let checkpoint = Checkpoint::new().track("x", &v);
    let status = checkpoint.restore(&from_dense).unwrap();
    assert_eq!((values(&v), status.report().missing), (vec![3.0], vec!["x".to_owned()]));
    status.assert_existing_objects_matched().unwrap_err();
    let checkpoint = Checkpoint::new().track("x", &dense);
    let status = checkpoint.restore(&from_variable).unwrap();
    assert_eq!(status.report().unused, ["x"]);
    let e = status.assert_consumed().unwrap_err().to_string();
    assert!(e.contains("x/bias") && e.contains("x/kernel"), "{e}");
}

#[test]
fn what_was_one_object_and_is_two_goes_to_the_first() {
    let folder = Folder::new();
    let one = var(&[1.0]);
    let path = saved(&folder, "one", &[("a", &one), ("b", &one)]);
    let (a, b) = (var(&[8.0]), var(&[9.0]));
    let checkpoint = Checkpoint::new().track("a", &a).track("b", &b);
    let status = checkpoint.restore(&path).unwrap();
    assert_eq!((values(&a), values(&b)), (vec![1.0], vec![9.0]));
    let e = status.assert_existing_objects_matched().unwrap_err().to_string();
    assert!(e.contains("only in the program: b"), "{e}");
}

#[test]
fn what_was_two_objects_and_is_one_takes_the_value_of_the_first() {
    let folder = Folder::new();
    let (a, b) = (var(&[1.0]), var(&[2.0]));
    let path = saved(&folder, "two", &[("a", &a), ("b", &b)]);
    let one = var(&[0.0]);
    let checkpoint = Checkpoint::new().track("a", &one).track("b", &one);
    checkpoint.restore(&path).unwrap().assert_consumed().unwrap();
    assert_eq!(values(&one), [1.0]);
}

#[test]
fn what_waits_is_saved_again_although_its_layer_was_never_made() {
    let folder = Folder::new();
    let made = MLP::new([3, 2]);
    let y = made.forward(&x()).unwrap();
    let path = saved(&folder, "ckpt", &[("net", &made)]);
    let idle = MLP::new([3, 2]);
    let checkpoint = Checkpoint::new().track("net", &idle);
    checkpoint.restore(path).unwrap().expect_partial();
    let again = checkpoint.write(folder.path("again")).unwrap();
    let last = MLP::new([3, 2]);
    let checkpoint = Checkpoint::new().track("net", &last);
    let status = checkpoint.restore(again).unwrap();
    assert_eq!(last.forward(&x()).unwrap().to_vec::<f32>().unwrap(), y.to_vec::<f32>().unwrap());
    status.assert_consumed().unwrap();
}

#[test]
fn a_damaged_value_leaves_every_variable_as_it_was() {
    let folder = Folder::new();
    for format in [Format::Native, Format::TensorFlow] {
        let (a, b) = (var(&[1.0; 64]), var(&[2.0; 64]));
        let path =
            Checkpoint::new().track("a", &a).track("b", &b).format(format).write(folder.path("x")).unwrap();
        let data = match format {
            Format::Native => path.with_extension("couplet"),
            _ => folder.path("x.data-00000-of-00001"),
        };
        let mut bytes = std::fs::read(&data).unwrap();
        let at = bytes.windows(8).rposition(|window| window == [0, 0, 0, 0x40, 0, 0, 0, 0x40]).unwrap();
        bytes[at] ^= 1;
        std::fs::write(&data, bytes).unwrap();
        let (c, d) = (var(&[0.0; 64]), var(&[0.0; 64]));
        let e = Checkpoint::new().track("a", &c).track("b", &d).read(&path).unwrap_err();
        let text = e.to_string();
        assert!(text.contains("x.") && text.contains("b/.ATTRIBUTES") && text.contains("checksum"), "{text}");
        assert_eq!((values(&c), values(&d)), (vec![0.0; 64], vec![0.0; 64]));
        std::fs::remove_file(data).unwrap();
        let _ = std::fs::remove_file(folder.path("x.index"));
    }
}
