//! Modules through bytes and back.

use couplet::prelude::*;

use super::list::{Subject, bits, bits_of_all, every_module, seeded};

/// A generator that stays where it is while `f` runs.
fn without_drawing<R>(what: &str, f: impl FnOnce() -> R) -> R {
    let generator = Generator::seed(8);
    let result = random::with(&generator, f);
    assert_eq!(generator.state(), Generator::seed(8).state(), "{what} drew");
    result
}

/// A module that was called twice, so that counters differ from their first values.
fn used(make: &dyn Fn(DType) -> Box<dyn Subject>) -> Box<dyn Subject> {
    let subject = make(DType::F32);
    seeded(3, || subject.call().and_then(|_| subject.call())).unwrap();
    subject
}

#[test]
fn every_module_goes_through_bytes_into_a_fresh_one_without_a_draw() {
    for make in every_module() {
        let original = used(&make);
        let kind = original.module().kind();
        let bytes = original.module().to_bytes().unwrap();
        let restored = make(DType::F32);
        without_drawing(kind, || restored.module().load_bytes(&bytes)).unwrap();
        // What waits for its first call can be captured as well.
        let again = make(DType::F32);
        again.module().load_bytes(&restored.module().to_bytes().unwrap()).unwrap();
        let (a, b) = (Generator::seed(7), Generator::seed(7));
        let y = random::with(&a, || original.call()).unwrap();
        for subject in [restored, again] {
            b.restore(Generator::seed(7).state());
            assert_eq!(bits(&random::with(&b, || subject.call()).unwrap()), bits(&y), "{kind}");
            assert_eq!(a.state(), b.state(), "{kind}: an initialiser drew");
            assert_eq!(bits_of_all(subject.module()), bits_of_all(original.module()), "{kind}");
        }
    }
}

#[test]
fn every_module_takes_bytes_over_what_it_held() {
    for make in every_module() {
        let (original, other) = (used(&make), make(DType::F32));
        seeded(4, || other.call()).unwrap();
        other.module().load_bytes(&original.module().to_bytes().unwrap()).unwrap();
        assert_eq!(bits_of_all(other.module()), bits_of_all(original.module()));
        assert_eq!(other.module().to_bytes().unwrap(), original.module().to_bytes().unwrap());
    }
}
