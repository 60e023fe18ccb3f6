//! Values given before the parts that take them exist.

use std::sync::Mutex;

use super::*;
use crate::module::fill::{Plan, tree};
use crate::{Deferred, List, Node, Waiting, random};

#[derive(Module)]
struct Net {
    scope: Scope,
    first: Linear,
    #[module(name = "_layers")]
    layers: List<Linear>,
    late: Once<Linear>,
    deferred: Deferred<Linear>,
    eager: Once<Vec<Variable>>,
    #[module(state)]
    words: Mutex<Vec<String>>,
}

fn net() -> Net {
    Net {
        scope: Scope::of::<Net>(),
        first: Linear::new(2),
        layers: List::new(),
        late: Once::new(),
        deferred: Deferred::new(|| Linear::new(2)),
        eager: Once::new(),
        words: Mutex::default(),
    }
}

fn call(net: &Net) -> Result<()> {
    net.first.forward(&x(3))?;
    net.layers.get_or_push_with(0, || Ok(Linear::new(2)))?.forward(&x(3))?;
    if net.layers.len() < 2 {
        net.layers.push(Linear::new(2))?;
    }
    net.layers[1].forward(&x(3))?;
    net.late.get_or_init(|| Ok(Linear::new(2)))?.forward(&x(3))?;
    net.deferred.forward(&x(3))?;
    net.eager.get_or_init(|| Ok(vec![variable("e", &[2])?, variable("e", &[2])?]))?;
    Ok(())
}

const PATHS: [(&str, &[usize]); 12] = [
    ("first/w", &[3, 2]),
    ("first/b", &[2]),
    ("_layers/0/w", &[3, 2]),
    ("_layers/0/b", &[2]),
    ("_layers/1/w", &[3, 2]),
    ("_layers/1/b", &[2]),
    ("late/w", &[3, 2]),
    ("late/b", &[2]),
    ("deferred/_target/w", &[3, 2]),
    ("deferred/_target/b", &[2]),
    ("eager/0", &[2]),
    ("eager/1", &[2]),
];

fn values(paths: &[(&str, &[usize])]) -> Waiting {
    let values = paths
        .iter()
        .enumerate()
        .map(|(i, (path, shape))| (path.to_string(), Waiting::Value(full(shape, 10.0 + i as f64))));
    tree("restore", values).unwrap()
}

fn assert_restored(net: &Net) {
    let named = net.named_variables().unwrap();
    assert_eq!(named.len(), PATHS.len());
    for (i, (path, _)) in PATHS.iter().enumerate() {
        let (_, variable) = named.iter().find(|(name, _)| name == path).unwrap();
        assert!(value(variable).iter().all(|&v| v == 10.0 + i as f32), "{path}");
    }
}

#[test]
fn values_wait_for_parts_of_every_kind() {
    let net = net();
    let plan = Plan::new(Node::Module(&net), values(&PATHS));
    assert_eq!((plan.waiting.len(), plan.taken.len(), plan.unused.len()), (12, 0, 0));
    plan.apply("restore").unwrap();
    call(&net).unwrap();
    assert_restored(&net);
}

#[test]
fn values_go_into_parts_that_exist() {
    let net = net();
    call(&net).unwrap();
    let plan = Plan::new(Node::Module(&net), values(&PATHS));
    assert_eq!((plan.waiting.len(), plan.taken.len(), plan.unused.len()), (0, 12, 0));
    assert!(plan.missing(&net).is_empty());
    plan.apply("restore").unwrap();
    assert_restored(&net);
}

#[test]
fn a_copy_takes_what_waits_along() {
    let net = net();
    Plan::new(Node::Module(&net), values(&PATHS)).apply("restore").unwrap();
    let copy = net.duplicate().unwrap();
    call(&copy).unwrap();
    assert_restored(&copy);
}

#[test]
fn two_restores_of_different_parts_both_count() {
    let net = net();
    Plan::new(Node::Module(&net), values(&PATHS)).apply("restore").unwrap();
    let late = [("late/w".to_owned(), Waiting::Value(full(&[3, 2], 99.0)))];
    Plan::new(Node::Module(&net), tree("restore", late).unwrap()).apply("restore").unwrap();
    call(&net).unwrap();
    let late = net.late.get().unwrap();
    assert_eq!((value(late.w.get().unwrap())[0], value(late.b.get().unwrap())[0]), (99.0, 17.0));
}

#[test]
fn the_initialiser_does_not_run_for_a_value_that_waits() {
    let once: Once<Variable> = Once::new();
    let holder = tree("restore", [("v".to_owned(), Waiting::Value(full(&[2], 5.0)))]).unwrap();
    let mut edges = crate::Edges::new();
    edges.add("v", &once);
    Plan::new(Node::Group(edges), holder).apply("restore").unwrap();
    let never = || -> Result<Tensor> { panic!("the initialiser ran") };
    let made =
        once.get_or_init(|| Variable::create("v", &Shape::from([2]), DType::F32, true, never)).unwrap();
    assert_eq!(value(made), [5.0, 5.0]);
}

#[test]
fn a_value_of_another_shape_is_refused_when_its_part_is_made_and_waits_on() {
    let linear = Linear::new(2);
    let w = [("w".to_owned(), Waiting::Value(full(&[5, 2], 3.0)))];
    Plan::new(Node::Module(&linear), tree("restore", w).unwrap()).apply("restore").unwrap();
    let message = linear.forward(&x(3)).unwrap_err().to_string();
    assert!(message.contains("linear/w has shape [5, 2], expected [3, 2]"), "{message}");
    linear.forward(&x(5)).unwrap();
    assert_eq!(value(linear.w.get().unwrap()), [3.0; 10]);
}

#[test]
fn a_restore_that_does_not_fit_changes_nothing_and_lists_all_it_knows() {
    let net = net();
    net.first.forward(&x(3)).unwrap();
    let wrong: [(&str, &[usize]); 4] =
        [("first/w", &[3, 3]), ("first/b", &[3]), ("late/w", &[3, 2]), ("nowhere/w", &[1])];
    let plan = Plan::new(Node::Module(&net), values(&wrong));
    assert_eq!(plan.unused, ["nowhere/w"]);
    let message = plan.apply("restore").unwrap_err().to_string();
    assert!(message.contains("first/w: the value is f32[3, 3]") && message.contains("first/b"), "{message}");
    call(&net).unwrap();
    assert!(net.variables().unwrap().iter().all(|variable| value(variable)[0] == 1.0));
}

#[test]
fn plain_state_is_restored_or_left_as_it_was() {
    let net = net();
    *net.words.lock().unwrap() = vec!["the".into()];
    let bytes = crate::State::save(&net.words).unwrap();
    net.words.lock().unwrap().clear();
    let state = |bytes| tree("restore", [("words".to_owned(), Waiting::State(bytes))]).unwrap();
    assert!(Plan::new(Node::Module(&net), state(vec![255; 3])).apply("restore").is_err());
    assert!(net.words.lock().unwrap().is_empty());
    Plan::new(Node::Module(&net), state(bytes)).apply("restore").unwrap();
    assert_eq!(*net.words.lock().unwrap(), ["the"]);
}

/// A variable whose initialiser draws.
fn drawn(name: &str) -> Result<Variable> {
    let shape = Shape::from([3]);
    let draw = || random::current().normal(shape.clone(), 0.0, 1.0, DType::F32);
    Variable::create(name, &shape, DType::F32, true, draw)
}

#[derive(Module)]
struct Noisy {
    scope: Scope,
    lazy: Once<Variable>,
    eager: Once<(Variable, Variable)>,
    list: List<Variable>,
}

#[scoped]
impl Noisy {
    fn call(&self) -> Result<()> {
        self.lazy.get_or_init(|| drawn("lazy"))?;
        self.eager.get_or_init(|| Ok((drawn("a")?, drawn("b")?)))?;
        self.list.get_or_push_with(0, || drawn("l")).map(drop)
    }
}

fn noisy() -> Noisy {
    Noisy { scope: Scope::new("noisy"), lazy: Once::new(), eager: Once::new(), list: List::new() }
}

#[test]
fn nothing_is_drawn_for_values_that_wait() {
    let generator = random::Generator::seed(3);
    random::with(&generator, || {
        let net = noisy();
        let paths: [(&str, &[usize]); 4] =
            [("lazy", &[3]), ("eager/0", &[3]), ("eager/1", &[3]), ("list/0", &[3])];
        Plan::new(Node::Module(&net), values(&paths)).apply("restore").unwrap();
        let before = generator.state();
        net.call().unwrap();
        assert_eq!(generator.state(), before);
        assert!(net.variables().unwrap().iter().all(|variable| value(variable)[0] >= 10.0));
    });
}

#[test]
fn a_part_restored_in_part_draws_the_rest() {
    let fresh = random::with(&random::Generator::seed(3), || {
        let net = noisy();
        net.call().unwrap();
        net
    });
    let generator = random::Generator::seed(3);
    random::with(&generator, || {
        let net = noisy();
        Plan::new(Node::Module(&net), values(&[("eager/0", &[3])])).apply("restore").unwrap();
        net.call().unwrap();
        assert_eq!(value(&net.eager.get().unwrap().0), [10.0; 3]);
        for (restored, fresh) in net.variables().unwrap().iter().zip(fresh.variables().unwrap()).skip(1) {
            assert_eq!(value(restored), value(&fresh));
        }
    });
}
