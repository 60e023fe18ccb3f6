//! Parts that are made by the first call.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use super::*;
use crate::{Deferred, List};

#[test]
fn a_first_call_that_fails_leaves_the_module_as_it_was() {
    let linear = Linear::new(2);
    assert!(linear.forward(&full(&[3], 0.0)).is_err());
    assert!(linear.w.get().is_none());
    linear.forward(&x(3)).unwrap();
    let before = linear.variables().unwrap();
    linear.forward(&x(3)).unwrap();
    let ids = |variables: &[Variable]| variables.iter().map(Variable::id).collect::<Vec<_>>();
    assert_eq!(ids(&before), ids(&linear.variables().unwrap()));
}

#[test]
fn a_part_is_made_once_by_one_of_many_threads() {
    let (made, part, start) = (AtomicUsize::new(0), Once::new(), Barrier::new(8));
    let slow = || {
        start.wait();
        let value = part.get_or_init(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            Ok(made.fetch_add(1, Ordering::SeqCst))
        });
        *value.unwrap()
    };
    let values: Vec<usize> = std::thread::scope(|s| {
        let threads: Vec<_> = (0..8).map(|_| s.spawn(slow)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!((values, made.load(Ordering::SeqCst)), (vec![0; 8], 1));
}

#[test]
fn a_waiting_thread_tries_itself_when_the_first_one_fails_or_panics() {
    for panics in [false, true] {
        let (part, entered) = (Once::new(), Barrier::new(2));
        let first = || {
            part.get_or_init(|| {
                entered.wait();
                std::thread::sleep(std::time::Duration::from_millis(20));
                assert!(!panics, "a panic of this test");
                Err(Error::usage("init", "it failed", "try again"))
            })
            .is_err()
        };
        let second = || {
            entered.wait();
            *part.get_or_init(|| Ok(2)).unwrap()
        };
        std::thread::scope(|s| {
            let (first, second) = (s.spawn(first), s.spawn(second));
            assert!(first.join().map_or(panics, |failed| failed));
            assert_eq!(second.join().unwrap(), 2);
        });
    }
}

#[test]
fn a_part_that_asks_for_itself_gets_an_error() {
    let part: Once<usize> = Once::new();
    let error = part.get_or_init(|| part.get_or_init(|| Ok(1)).copied()).unwrap_err();
    assert!(error.to_string().contains("while it was being made"), "{error}");
    assert_eq!(*part.get_or_init(|| Ok(3)).unwrap(), 3);
}

#[test]
fn a_list_grows_while_others_read_it() {
    let list: List<usize> = List::new();
    assert!(list.is_empty() && list.get(0).is_none());
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..250 {
                    list.push(list.len()).unwrap();
                    assert!(list.iter().count() <= list.len());
                }
            });
        }
    });
    assert_eq!(list.len(), 1000);
    assert_eq!(*list.get_or_push_with(1000, || Ok(7)).unwrap(), 7);
    assert_eq!(*list.get_or_push_with(1000, || Ok(8)).unwrap(), 7);
    assert!(list.get_or_push_with(1002, || Ok(9)).is_err());
}

#[test]
fn a_deferred_module_is_built_when_it_is_needed() {
    let encoder = Arc::new(Linear::new(64));
    let source = encoder.clone();
    let decoder = Deferred::new(move || match source.w.get() {
        Some(w) => Ok(Linear::new(w.shape()[0])),
        None => Err(Error::usage("decoder", "the encoder was not called", "call it first")),
    });
    assert!(decoder.target().is_err() && decoder.variables().is_err());
    assert_eq!(format!("{decoder:?}"), "Deferred()");
    let y = decoder.forward(&encoder.forward(&x(32)).unwrap()).unwrap();
    assert_eq!(y.shape(), &[2, 32]);
    assert_eq!(decoder.target().unwrap().output_size, 32);
    assert_eq!(format!("{decoder:?}"), "Deferred(Linear(output_size=32))");
    assert_eq!(decoder.named_variables().unwrap()[0].0, "_target/w");
}

#[test]
fn a_deferred_module_is_built_in_the_scope_of_its_caller() {
    #[derive(Module)]
    struct Parent {
        scope: Scope,
        deferred: Deferred<Linear>,
    }
    #[scoped]
    impl Forward for Parent {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            self.deferred.forward(x)
        }
    }
    let parent = Parent { scope: Scope::new("p"), deferred: Deferred::new(|| Linear::new(3)) };
    parent.forward(&x(1)).unwrap();
    assert_eq!(names(&parent.variables().unwrap()), ["p/linear/b", "p/linear/w"]);
}
