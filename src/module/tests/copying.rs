//! Deep copies, and values that go from one module to another.

use std::sync::Arc;

use super::*;
use crate::{List, Visit};

#[derive(Module)]
struct Pair {
    scope: Scope,
    first: Arc<Linear>,
    second: Arc<dyn Forward>,
    third: Box<dyn Forward>,
    function: Arc<dyn Forward>,
    tied: Once<Variable>,
    #[module(skip)]
    label: &'static str,
}

fn pair() -> Pair {
    let scope = Scope::of::<Pair>();
    let _in = scope.enter();
    let shared = Arc::new(Linear::new(2));
    shared.forward(&x(3)).unwrap();
    let tied = Once::from(shared.w.get().unwrap().clone());
    Pair {
        first: shared.clone(),
        second: shared,
        third: Box::new(Linear::new(4).name("third")),
        function: Arc::new(|x: &Tensor| x + 1.0),
        tied,
        label: "label",
        scope,
    }
}

#[test]
fn a_copy_has_variables_of_its_own_with_the_same_names_and_values() {
    let original = pair();
    original.first.w.get().unwrap().assign(&full(&[3, 2], 7.0)).unwrap();
    let copy = original.duplicate().unwrap();
    let (from, to) = (original.variables().unwrap(), copy.variables().unwrap());
    assert_eq!(names(&from), names(&to));
    assert!(from.iter().zip(&to).all(|(a, b)| a.id() != b.id() && value(a) == value(b)));
    from[0].assign(&full(&[3, 2], 9.0)).unwrap();
    assert_eq!(value(&to[0]), [7.0; 6]);
    assert_eq!(format!("{original:?}"), format!("{copy:?}"));
    assert_eq!(copy.label, "label");
}

#[test]
fn what_is_shared_stays_shared_within_the_copy() {
    let copy = pair().duplicate().unwrap();
    assert_eq!(copy.variables().unwrap().len(), 2);
    assert_eq!(copy.tied.get().unwrap().id(), copy.first.w.get().unwrap().id());
    assert!(std::ptr::addr_eq(Arc::as_ptr(&copy.first), Arc::as_ptr(&copy.second)));
}

#[test]
fn children_of_a_copy_lie_in_its_scope() {
    let copy = pair().duplicate().unwrap().name("target");
    copy.third.forward(&x(3)).unwrap();
    let variables = copy.variables().unwrap();
    assert_eq!(names(&variables), ["pair/linear/w", "pair/linear/b", "target/third/b", "target/third/w"]);
}

#[test]
fn a_copy_of_an_unused_module_makes_its_own_variables() {
    let original = Linear::new(2);
    let copy = original.duplicate().unwrap();
    original.forward(&x(3)).unwrap();
    assert!(copy.variables().is_err());
    copy.forward(&x(5)).unwrap();
    assert_eq!(copy.w.get().unwrap().shape(), &[5, 2]);
}

#[test]
fn copies_of_boxed_and_listed_modules_are_deep() {
    let boxed: Box<dyn Module> = Box::new(Linear::new(1));
    let list = List::from_iter([Linear::new(1)]);
    list[0].forward(&x(1)).unwrap();
    let mut copies = crate::Copies::default();
    assert!(boxed.copy(&mut copies).scope().id() != boxed.scope().id());
    assert!(list.copy(&mut copies)[0].w.get().unwrap().id() != list[0].w.get().unwrap().id());
}

#[test]
fn weights_go_from_one_module_to_another_by_path() {
    let (online, target) = (Linear::new(2).name("online"), Linear::new(2).name("target"));
    online.forward(&x(3)).unwrap();
    target.forward(&x(3)).unwrap();
    online.w.get().unwrap().assign(&full(&[3, 2], 5.0)).unwrap();
    target.copy_weights_from(&online).unwrap();
    assert_eq!(value(target.w.get().unwrap()), [5.0; 6]);
    online.w.get().unwrap().assign(&full(&[3, 2], 6.0)).unwrap();
    assert_eq!(value(target.w.get().unwrap()), [5.0; 6]);
}

#[test]
fn weights_wait_for_a_target_that_was_not_called_yet() {
    let (online, target) = (Linear::new(2), Linear::new(2));
    online.forward(&x(3)).unwrap();
    online.b.get().unwrap().assign(&full(&[2], 5.0)).unwrap();
    target.copy_weights_from(&online).unwrap();
    target.forward(&x(3)).unwrap();
    assert_eq!(value(target.b.get().unwrap()), [5.0; 2]);
}

#[test]
fn weights_of_another_structure_are_refused_as_a_whole() {
    let (online, target) = (Linear::new(2).with_bias(false), Linear::new(3));
    online.forward(&x(3)).unwrap();
    target.forward(&x(3)).unwrap();
    let message = target.copy_weights_from(&online).unwrap_err().to_string();
    assert!(
        message.contains("w: the value is f32[3, 2]") && message.contains("b: only the target"),
        "{message}"
    );
    assert_eq!(value(target.w.get().unwrap()), [1.0; 9]);
    let message = online.copy_weights_from(&target).unwrap_err().to_string();
    assert!(message.contains("w: the value"), "{message}");
}

#[test]
fn a_moving_average_goes_towards_the_other_module() {
    let online = Linear::new(2);
    online.forward(&x(3)).unwrap();
    let target = online.duplicate().unwrap();
    online.w.get().unwrap().assign(&full(&[3, 2], 5.0)).unwrap();
    target.moving_average_of(&online, 0.75).unwrap();
    assert_eq!(value(target.w.get().unwrap()), [2.0; 6]); // 0.75 * 1 + 0.25 * 5
    assert_eq!(value(target.b.get().unwrap()), [1.0; 2]);
    assert_eq!(value(online.w.get().unwrap()), [5.0; 6]);
    assert!(target.moving_average_of(&online, 1.5).unwrap_err().to_string().contains("1.5"));
    let message = Linear::new(2).moving_average_of(&online, 0.5).unwrap_err().to_string();
    assert!(message.contains("w: only the other") && message.contains("b: only the other"), "{message}");
}

#[test]
fn a_moving_average_copies_integers() {
    #[derive(Module)]
    struct Counter {
        scope: Scope,
        count: Variable,
    }
    let new =
        |n: i64| Counter { scope: Scope::new("counter"), count: Variable::from_tensor("n", Tensor::from(n)) };
    let (a, b) = (new(1), new(4));
    a.moving_average_of(&b, 0.5).unwrap();
    assert_eq!(a.count.value().item::<i64>().unwrap(), 4);
}
