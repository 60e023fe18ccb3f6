//! Which objects are saved, and under which keys.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use couplet::checkpoint::{Checkpoint, CheckpointReader, Format, escape, unescape};
use couplet::data::Dataset;
use couplet::optim::Adam;
use couplet::prelude::*;
use proptest::prelude::*;

use crate::support::{Dense, Folder, keys, paths, values, var};

const VALUE: &str = "/.ATTRIBUTES/VARIABLE_VALUE";

#[derive(Module)]
struct Net {
    scope: Scope,
    l1: Dense,
}

fn net() -> Net {
    Net { scope: Scope::of::<Net>(), l1: Dense::new(&[1.0], &[2.0]) }
}

fn step_of(adam: &Adam, net: &Net) {
    let parameters = [net.l1.kernel.clone(), net.l1.bias.clone()];
    let ones = parameters.iter().map(|p| Some(Tensor::ones(p.shape(), p.dtype()).unwrap().into()));
    adam.apply(&ones.collect::<Vec<_>>(), &parameters).unwrap();
}

#[test]
fn the_toy_of_the_guide_has_these_keys() {
    let folder = Folder::new();
    let (net, adam, step) = (net(), Adam::new(0.1), Variable::from_tensor("step", Tensor::from(1i32)));
    let batches = Dataset::new(Tensor::from([1i32, 2, 3])).unwrap().shuffle(1).batches(2);
    step_of(&adam, &net);
    let checkpoint = Checkpoint::new().track("step", &step).track("optimizer", &adam).track("net", &net);
    let path = checkpoint.track("iterator", &batches).save(folder.path("ckpt")).unwrap();
    let mut want: Vec<String> = ["net/l1/bias", "net/l1/kernel", "save_counter", "step"]
        .into_iter()
        .chain(["optimizer/step", "optimizer/m/0", "optimizer/m/1", "optimizer/v/0", "optimizer/v/1"])
        .map(|path| format!("{path}{VALUE}"))
        .collect();
    want.push("iterator/.ATTRIBUTES/py_state".into());
    want.sort();
    assert_eq!(keys(&path), want);
    // The root names its parts in sorted order, the counter last.
    let reader = CheckpointReader::open(&path).unwrap();
    let root = &reader.graph().unwrap().nodes[0];
    let names: Vec<&str> = root.children.iter().map(|child| child.name.as_str()).collect();
    assert_eq!(names, ["iterator", "net", "optimizer", "step", "save_counter"]);
    assert!(reader.graph().unwrap().nodes.iter().all(|node| node.has_values.is_some()));
}

#[test]
fn slots_are_saved_with_the_optimizer_and_parameters_without_it_have_none() {
    let folder = Folder::new();
    let (net, adam) = (net(), Adam::new(0.1));
    step_of(&adam, &net);
    let alone = Checkpoint::new().track("net", &net).write(folder.path("net")).unwrap();
    assert_eq!(paths(&alone), ["net/l1/bias", "net/l1/kernel"]);
    let fresh = Adam::new(0.1);
    let unused = Checkpoint::new().track("optimizer", &fresh).write(folder.path("fresh")).unwrap();
    assert_eq!(paths(&unused), ["optimizer/step"]);
}

#[test]
fn names_are_escaped_as_the_contract_says() {
    let folder = Folder::new();
    let names = ["a/b", "x.y", "..S/", "", "ü 大", ".ATTRIBUTES"];
    let map: BTreeMap<String, Variable> =
        names.iter().map(|name| ((*name).to_owned(), var(&[1.0]))).collect();
    let path = Checkpoint::new().track("d", &map).track("o.A", &map["x.y"]).write(folder.path("x")).unwrap();
    let mut want: Vec<String> = ["d/a.Sb", "o..A", "d/....S.S", "d/", "d/ü 大", "d/..ATTRIBUTES"]
        .map(|path| format!("{path}{VALUE}"))
        .into();
    want.sort();
    assert_eq!(keys(&path), want, "x.y goes by its shorter path");
    for variable in map.values() {
        variable.assign(&Tensor::from(vec![0.0f32])).unwrap();
    }
    Checkpoint::new().track("d", &map).read(&path).unwrap().expect_partial();
    for (name, variable) in &map {
        // The one that was shared is in the file under both names, and here under one of them.
        assert_eq!(values(variable), [1.0], "{name:?}");
    }
}

proptest! {
    #[test]
    fn any_name_comes_back_from_its_escaped_form(name in ".*") {
        let part = escape(&name);
        prop_assert!(!part.contains('/'));
        prop_assert_ne!(part.as_str(), ".ATTRIBUTES");
        prop_assert_eq!(unescape(&part), Some(name));
    }

    #[test]
    fn two_names_never_share_a_form(a in "[./S]{0,6}", b in "[./S]{0,6}") {
        prop_assert_eq!(escape(&a) == escape(&b), a == b);
    }
}

#[test]
fn the_parts_of_one_object_may_be_the_root() {
    let folder = Folder::new();
    let dense = Dense::new(&[3.0], &[4.0]);
    let path = Checkpoint::of(&dense).write(folder.path("dense")).unwrap();
    assert_eq!(paths(&path), ["bias", "kernel"]);
    let (kernel, bias) = (var(&[0.0]), var(&[0.0]));
    let parts = Checkpoint::new().track("kernel", &kernel).track("bias", &bias);
    parts.read(&path).unwrap().assert_consumed().unwrap();
    assert_eq!((values(&kernel), values(&bias)), (vec![3.0], vec![4.0]), "only names matter");
    let root = var(&[5.0]);
    assert_eq!(keys(&Checkpoint::of(&root).write(folder.path("v")).unwrap()), [VALUE]);
}

#[test]
fn what_is_shared_is_saved_once_under_its_shortest_path() {
    let folder = Folder::new();
    let shared = Arc::new(Dense::new(&[1.0], &[2.0]));
    let (deep, list) =
        (vec![vec![shared.clone()]], vec![shared.clone(), Arc::new(Dense::new(&[3.0], &[4.0]))]);
    let checkpoint = Checkpoint::new().track("a", &deep).track("b", &list).track("z", &shared.kernel);
    let path = checkpoint.write(folder.path("x")).unwrap();
    assert_eq!(paths(&path), ["b/0/bias", "b/1/bias", "b/1/kernel", "z"]);
    // Of equally short paths the first counts.
    let path = Checkpoint::new().track("p", &shared).track("q", &shared).write(folder.path("y")).unwrap();
    assert_eq!(paths(&path), ["p/bias", "p/kernel"]);
    checkpoint.read(folder.path("x")).unwrap().assert_consumed().unwrap();
}

/// An object that may lead to others, itself included.
#[derive(Module)]
struct Link {
    scope: Scope,
    value: Option<Variable>,
    next: Once<Arc<Link>>,
    also: Once<Arc<Link>>,
}

fn link(value: Option<f32>) -> Arc<Link> {
    let value = value.map(|value| var(&[value]));
    Arc::new(Link { scope: Scope::of::<Link>(), value, next: Once::new(), also: Once::new() })
}

fn lead(from: &Arc<Link>, to: &Arc<Link>) {
    from.next.get_or_init(|| Ok(to.clone())).unwrap();
}

#[test]
fn cycles_end() {
    let folder = Folder::new();
    let ring = || {
        let (a, b) = (link(Some(1.0)), link(Some(2.0)));
        lead(&a, &b);
        lead(&b, &a);
        b.also.get_or_init(|| Ok(b.clone())).unwrap();
        (a, b)
    };
    let (a, b) = ring();
    let path = Checkpoint::new().track("a", &a).save(folder.path("ring")).unwrap();
    assert_eq!(paths(&path), ["a/next/value", "a/value", "save_counter"]);
    let (c, d) = ring();
    [&c, &d].iter().for_each(|l| l.value.as_ref().unwrap().assign(&Tensor::from(vec![0f32])).unwrap());
    Checkpoint::new().track("a", &c).restore(&path).unwrap().assert_consumed().unwrap();
    assert_eq!([&c, &d].map(|l| values(l.value.as_ref().unwrap())[0]), [1.0, 2.0]);
    drop((a, b));
}

/// A chain of so many objects, of which only the last holds a value.
fn chain(length: usize, last: f32) -> (Arc<Link>, Vec<Arc<Link>>) {
    let mut links: Vec<Arc<Link>> = (1..length).map(|_| link(None)).collect();
    links.push(link(Some(last)));
    links.windows(2).for_each(|pair| lead(&pair[0], &pair[1]));
    (links[0].clone(), links)
}

#[test]
fn a_deep_chain_needs_no_deep_stack() {
    let folder = Folder::new();
    let run = || {
        let (first, links) = chain(100_000, 7.0);
        let path = Checkpoint::new().track("chain", &first).save(folder.path("deep")).unwrap();
        let (second, others) = chain(100_000, 0.0);
        let checkpoint = Checkpoint::new().track("chain", &second);
        checkpoint.restore(&path).unwrap().assert_consumed().unwrap();
        assert_eq!(values(others[99_999].value.as_ref().unwrap()), [7.0]);
        drop(checkpoint);
        drop((first, second));
        // Dropped from the front, no link drops another: the rest of the list still holds it.
        links.into_iter().for_each(drop);
        others.into_iter().for_each(drop);
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        thread.spawn_scoped(scope, run).unwrap().join().unwrap();
    });
}

#[test]
fn a_long_list_costs_no_more_than_its_length() {
    let folder = Folder::new();
    let list = |value: f32| (0..30_000).map(|_| var(&[value])).collect::<Vec<_>>();
    let (full, empty) = (list(1.0), list(0.0));
    let start = std::time::Instant::now();
    let path = Checkpoint::new().track("list", &full).save(folder.path("long")).unwrap();
    Checkpoint::new().track("list", &empty).restore(path).unwrap().assert_consumed().unwrap();
    assert!(empty.iter().all(|variable| values(variable) == [1.0]));
    // Comparing each name with each other took minutes.
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

#[test]
fn lists_have_gaps_and_plain_values_leave_no_trace() {
    let folder = Folder::new();
    let list = (var(&[0.0]), var(&[1.0]), vec![var(&[2.0])], "text".to_owned(), 5i32, var(&[5.0]));
    let path = Checkpoint::new().track("list", &list).write(folder.path("gaps")).unwrap();
    assert_eq!(paths(&path), ["list/0", "list/1", "list/2/0", "list/5"]);
    let few: HashMap<String, Variable> = [("5".to_owned(), var(&[9.0]))].into();
    let checkpoint = Checkpoint::new().track("list", &few);
    checkpoint.read(&path).unwrap().expect_partial().assert_existing_objects_matched().unwrap();
    assert_eq!(values(&few["5"]), [5.0]);
}

#[test]
fn lists_tuples_and_maps_take_each_others_values() {
    let folder = Folder::new();
    let fresh = || (var(&[0.0]), var(&[0.0]));
    let list = vec![var(&[1.0]), var(&[2.0])];
    let from_list = Checkpoint::new().track("x", &list).write(folder.path("list")).unwrap();
    let map: BTreeMap<String, Variable> =
        [("0".to_owned(), var(&[3.0])), ("1".to_owned(), var(&[4.0]))].into();
    let from_map = Checkpoint::new().track("x", &map).write(folder.path("map")).unwrap();
    for (path, want) in [(&from_list, [1.0, 2.0]), (&from_map, [3.0, 4.0])] {
        let tuple = fresh();
        Checkpoint::new().track("x", &tuple).read(path).unwrap().assert_consumed().unwrap();
        assert_eq!([values(&tuple.0)[0], values(&tuple.1)[0]], want);
        let (a, b) = fresh();
        let growing = List::from_iter([a, b]);
        Checkpoint::new().track("x", &growing).read(path).unwrap().assert_consumed().unwrap();
        assert_eq!([values(&growing[0])[0], values(&growing[1])[0]], want);
        let (a, b) = fresh();
        let numbered: BTreeMap<String, Variable> = [("0".to_owned(), a), ("1".to_owned(), b)].into();
        Checkpoint::new().track("x", &numbered).read(path).unwrap().assert_consumed().unwrap();
        assert_eq!([values(&numbered["0"])[0], values(&numbered["1"])[0]], want);
    }
}

#[test]
fn empty_containers_pass_every_assertion() {
    let folder = Folder::new();
    let (list, map, growing, none) = (
        Vec::<Variable>::new(),
        BTreeMap::<String, Variable>::new(),
        List::<Variable>::new(),
        None::<Variable>,
    );
    let v = var(&[1.0]);
    let checkpoint = Checkpoint::new()
        .track("l", &list)
        .track("m", &map)
        .track("g", &growing)
        .track("n", &none)
        .track("v", &v);
    let path = checkpoint.save(folder.path("ckpt")).unwrap();
    let status = checkpoint.restore(path).unwrap();
    status.assert_consumed().unwrap().assert_existing_objects_matched().unwrap();
    status.assert_nontrivial_match().unwrap();
}

#[test]
fn names_are_given_once() {
    let folder = Folder::new();
    let v = var(&[1.0]);
    let e = Checkpoint::new().track("a", &v).track("a", &v).save(folder.path("x")).unwrap_err().to_string();
    assert!(e.contains("\"a\" twice"), "{e}");
    let e = Checkpoint::new().track("save_counter", &v).save(folder.path("x")).unwrap_err().to_string();
    assert!(e.contains("save_counter"), "{e}");
    assert!(folder.names().is_empty());
}

#[test]
fn saves_are_numbered_and_writes_are_not() {
    let folder = Folder::new();
    let v = var(&[1.0]);
    let checkpoint = Checkpoint::new().track("v", &v);
    let written = checkpoint.write(folder.path("made/on/the/way/w")).unwrap();
    assert_eq!((keys(&written), folder.names()), (vec![format!("v{VALUE}")], vec!["made".to_owned()]));
    for number in 1..=3i64 {
        let path = checkpoint.save(folder.path("ckpt")).unwrap();
        assert_eq!(path, folder.path(&format!("ckpt-{number}")));
        let fresh = Checkpoint::new().track("v", &v);
        fresh.restore(&path).unwrap().assert_consumed().unwrap();
        assert_eq!(fresh.save_counter().unwrap().value().item::<i64>().unwrap(), number);
    }
    let text = std::fs::read_to_string(folder.path("checkpoint")).unwrap();
    assert_eq!(text, "model_checkpoint_path: \"ckpt-3\"\nall_model_checkpoint_paths: \"ckpt-3\"\n");
    // After a restore of the first the second is written again.
    checkpoint.restore(folder.path("ckpt-1")).unwrap().assert_consumed().unwrap();
    assert_eq!(checkpoint.save(folder.path("ckpt")).unwrap(), folder.path("ckpt-2"));
}

#[test]
fn a_save_that_fails_leaves_the_count_and_nothing_else() {
    let folder = Folder::new();
    let v = var(&[1.0]);
    std::fs::write(folder.path("file"), "no folder").unwrap();
    for format in [Format::Native, Format::TensorFlow] {
        let checkpoint = Checkpoint::new().track("v", &v).format(format);
        let count = || checkpoint.save_counter().unwrap().value().item::<i64>().unwrap();
        let e = checkpoint.save(folder.path("file/ckpt")).unwrap_err().to_string();
        assert!(e.contains("file"), "{e}");
        assert_eq!((count(), folder.names()), (0, vec!["file".to_owned()]));
        // The state file cannot take its place.
        std::fs::create_dir_all(folder.path("run/checkpoint")).unwrap();
        checkpoint.save(folder.path("run/ckpt")).unwrap_err();
        let left = std::fs::read_dir(folder.path("run")).unwrap().count();
        assert_eq!((count(), left), (0, 1), "{format:?}: only the folder that was in the way");
        std::fs::remove_dir_all(folder.path("run")).unwrap();
    }
}
