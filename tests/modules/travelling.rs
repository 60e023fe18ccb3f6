//! Modules that are sent to other threads or dropped while a tape lives, over the list of all modules.

use couplet::{DType, Gradient, GradientTape, Variable};

use super::list::{Subject, bits, bits_of_all, every_module, seeded, x};

#[test]
fn a_module_works_alike_on_the_thread_it_is_sent_to() {
    for make in every_module() {
        let (at_home, sent) = (make(DType::F32), make(DType::F32));
        let kind = at_home.module().kind();
        // Made here, called first on another thread, called again here.
        let run = |subject: Box<dyn Subject>| {
            let y = seeded(3, || subject.call()).unwrap();
            (subject, bits(&y))
        };
        let (at_home, y) = run(at_home);
        let (back, y_there) = std::thread::scope(|s| s.spawn(|| run(sent)).join().unwrap());
        assert_eq!(y_there, y, "{kind}");
        assert_eq!(bits_of_all(back.module()), bits_of_all(at_home.module()), "{kind}");
        let again = |subject: &dyn Subject| bits(&seeded(4, || subject.call()).unwrap());
        assert_eq!(again(&*back), again(&*at_home), "{kind}");
        // Dropped elsewhere than it was made and used.
        std::thread::spawn(move || drop(back)).join().unwrap();
    }
}

/// The gradients of a call, in the order of the variables; `before` is done between the call and the walk back.
fn gradients(subject: Box<dyn Subject>, before: impl FnOnce(Box<dyn Subject>)) -> Vec<Option<Vec<u64>>> {
    let variables: Vec<Variable> =
        subject.module().named_variables().unwrap().into_iter().map(|(_, variable)| variable).collect();
    let tape = GradientTape::new();
    let y = seeded(5, || subject.call()).unwrap();
    before(subject);
    let found = tape.gradient_with_seed(&y, &x(y.shape()), &variables).unwrap();
    let numbers = |gradient: Gradient| bits(&gradient.to_dense().unwrap());
    found.into_iter().map(|gradient| gradient.map(numbers)).collect()
}

#[test]
fn a_tape_outlives_the_module_it_watched() {
    for make in every_module() {
        let subject = make(DType::F32);
        let kind = subject.module().kind();
        if subject.layer().is_none() {
            continue; // a metric's value has no gradient
        }
        seeded(3, || subject.call()).unwrap();
        let (kept, dropped) = (subject.duplicate(), subject);
        let mut alive = None;
        let want = gradients(kept, |subject| alive = Some(subject));
        assert_eq!(gradients(dropped, drop), want, "{kind}");
    }
}

#[test]
fn a_tape_is_dropped_after_the_module_and_its_variables() {
    for make in every_module() {
        let subject = make(DType::F32);
        let tape = GradientTape::persistent();
        let y = subject.call().unwrap();
        drop(subject);
        drop(y);
        drop(tape);
    }
}
