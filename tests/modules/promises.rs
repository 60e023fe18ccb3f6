//! What every module promises.

use std::collections::BTreeSet;

use couplet::prelude::*;
use couplet::{mixed_precision, summary, with_threads};

use super::list::{Subject, bits, bits_of_all, every_module, seeded, x};

#[test]
fn the_same_seed_gives_the_same_bits_on_any_number_of_threads() {
    for make in every_module() {
        let run = |threads| {
            let subject = make(DType::F32);
            let y = with_threads(threads, || seeded(3, || subject.call())).unwrap();
            (bits(&y), bits_of_all(subject.module()))
        };
        assert_eq!(run(1), run(2), "{}", make(DType::F32).module().kind());
    }
}

#[test]
fn a_copy_computes_the_same_and_shares_nothing() {
    for make in every_module() {
        let original = make(DType::F32);
        seeded(3, || original.call()).unwrap();
        let before = bits_of_all(original.module());
        let copy = original.duplicate();
        let kind = original.module().kind();
        assert_eq!(format!("{:?}", copy.module()), format!("{:?}", original.module()));
        assert_eq!(bits_of_all(copy.module()), before, "{kind}");
        assert_eq!(copy.module().to_bytes().unwrap(), original.module().to_bytes().unwrap(), "{kind}");
        let (of, and) =
            (original.module().named_variables().unwrap(), copy.module().named_variables().unwrap());
        let flags = |v: &Variable| (v.name().to_owned(), v.trainable(), v.is_frozen());
        assert!(
            of.iter().zip(&and).all(|((_, a), (_, b))| a.id() != b.id() && flags(a) == flags(b)),
            "{kind}"
        );
        let y = seeded(4, || copy.call()).unwrap();
        assert_eq!(bits_of_all(original.module()), before, "{kind}");
        assert_eq!(bits(&seeded(4, || original.call()).unwrap()), bits(&y), "{kind}");
    }
}

#[test]
fn names_begin_with_the_scope_and_variables_are_made_once() {
    for make in every_module() {
        let subject = make(DType::F32);
        subject.call().unwrap();
        let ids =
            || subject.module().named_variables().unwrap().iter().map(|(_, v)| v.id()).collect::<Vec<_>>();
        let first = ids();
        subject.call().unwrap();
        assert_eq!(ids(), first, "{}", subject.module().kind());
        let inside = subject.module().scope().path() + "/";
        // These hold modules that were made before them.
        let passed_in =
            ["sequential/", "deferred/", "batch_apply/", "base_batch_norm/", "cross_replica_batch_norm/"]
                .contains(&inside.as_str())
                || ["deep_rnn", "_residual/", "_dropout/"].iter().any(|part| inside.contains(part));
        for (_, variable) in subject.module().named_variables().unwrap() {
            assert!(passed_in || variable.name().starts_with(&inside), "{} in {inside}", variable.name());
        }
    }
}

#[test]
fn a_wrong_rank_is_refused_in_the_name_of_the_module_and_makes_nothing() {
    for make in every_module() {
        let subject = make(DType::F32);
        if !subject.takes_batches() {
            continue;
        }
        let before = bits_of_all(subject.module());
        let kind = subject.module().kind();
        match subject.call_with(&Tensor::from(1.0f32)) {
            Ok(_) => assert!(["Dropout", "Embed"].contains(&kind), "{kind} is not defined for a scalar"),
            // What only passes its input on is not at fault: it is silent, or says where below it the fault is.
            Err(e) if kind == "Deferred" => assert!(e.to_string().contains("linear"), "{kind}: {e}"),
            Err(e) => assert!(e.to_string().contains(&subject.module().scope().path()), "{kind}: {e}"),
        }
        assert_eq!(bits_of_all(subject.module()), before, "{kind}");
        subject.call().unwrap();
    }
}

#[test]
fn an_empty_batch_gives_an_empty_output_and_makes_the_same_variables() {
    for make in every_module() {
        let (subject, other) = (make(DType::F32), make(DType::F32));
        let (Some(layer), shape) = (subject.layer(), subject.shape()) else { continue };
        let kind = subject.module().kind();
        let empty = Tensor::zeros([&[0], &shape[1..]].concat(), DType::F32).unwrap();
        for is_training in [true, false] {
            let y = layer.forward_t(&empty, is_training).unwrap_or_else(|e| panic!("{kind}: {e}"));
            assert_eq!((y.size(), y.dim(0).unwrap()), (0, 0), "{kind}");
        }
        let averages = bits_of_all(subject.module());
        subject.call().unwrap();
        let full = other.call().unwrap();
        let shapes = |subject: &dyn Subject| -> Vec<(String, Shape)> {
            let named = subject.module().named_variables().unwrap().into_iter();
            named.map(|(path, variable)| (path, variable.shape().clone())).collect()
        };
        assert_eq!(shapes(&*subject), shapes(&*other), "{kind}");
        assert_eq!(averages.len(), shapes(&*subject).len(), "{kind}");
        assert!(full.to_vec::<f32>().unwrap().iter().all(|y| y.is_finite()), "{kind}");
    }
}

#[test]
fn another_batch_size_uses_the_same_variables() {
    for make in every_module() {
        let subject = make(DType::F32);
        if !subject.takes_batches() {
            continue;
        }
        let kind = subject.module().kind();
        subject.call().unwrap();
        let ids =
            || subject.module().named_variables().unwrap().iter().map(|(_, v)| v.id()).collect::<Vec<_>>();
        let first = ids();
        let is_whole = subject.call().unwrap().dim(0).ok() == Some(subject.shape()[0]);
        for batch in [1, 2] {
            let y = subject.call_with(&x(&[&[batch], &subject.shape()[1..]].concat()));
            let y = y.unwrap_or_else(|e| panic!("{kind}: {e}"));
            assert!(!is_whole || y.dim(0).unwrap() == batch || subject.layer().is_none(), "{kind}");
        }
        assert_eq!(ids(), first, "{kind}");
    }
}

#[test]
fn doubles_stay_doubles() {
    for make in every_module() {
        let subject = make(DType::F64);
        let kind = subject.module().kind();
        let y = subject.call_with(&x(subject.shape()).cast(DType::F64).unwrap());
        let y = y.unwrap_or_else(|e| panic!("{kind}: {e}"));
        let counts = ["Accuracy", "TopK", "ConfusionMatrix"].contains(&kind);
        assert!(counts || y.dtype() == DType::F64 || kind == "TrainableState", "{kind}: {}", y.dtype());
        let named = subject.module().named_variables().unwrap();
        for (path, variable) in &named {
            let dtype = variable.dtype();
            let fits = [DType::F64, DType::I64].contains(&dtype) || kind == "TrainableState";
            assert!(fits, "{kind}: {path} is {dtype}");
        }
        if subject.layer().is_some() && named.iter().any(|(_, variable)| variable.trainable()) {
            assert!(subject.call().is_err(), "{kind} mixes dtypes");
        }
    }
}

#[test]
fn every_layer_runs_in_half_precision() {
    for make in every_module() {
        let subject = make(DType::F32);
        let (Some(layer), shape) = (subject.layer(), subject.shape()) else { continue };
        let kind = subject.module().kind();
        let modes = mixed_precision::Modes::new([DType::F16]);
        let call = || seeded(3, || modes.run(x(shape), |x| layer.forward_t(&x, true)));
        let numbers = |y: Result<Tensor>| y.unwrap().to_vec::<f32>().unwrap();
        numbers(mixed_precision::scope(DType::F16, call)); // draws for the variables too
        let full = numbers(call());
        let half = numbers(mixed_precision::scope(DType::F16, call));
        let largest = full.iter().fold(0.0f32, |largest, y| largest.max(y.abs()));
        let error = full.iter().zip(&half).fold(0.0f32, |worst, (a, b)| worst.max((a - b).abs()));
        assert!(error <= 1e-2 * largest, "{kind}: {error} beside {largest}");
        let named = subject.module().named_variables().unwrap();
        assert!(named.iter().all(|(_, variable)| variable.dtype() != DType::F16), "{kind}");
    }
}

/// The gradients of a call, by path of the variables that get one.
fn reached(subject: &dyn Subject) -> BTreeSet<String> {
    let tape = GradientTape::new();
    let y = subject.call().unwrap();
    let named = subject.module().named_variables().unwrap();
    let variables: Vec<&Variable> = named.iter().map(|(_, variable)| variable).collect();
    // The sum of a normalised batch does not depend on the scale; its product with unequal numbers does.
    let weights = x(y.shape());
    let gradients = tape.gradient_with_seed(&y, &weights, &variables).unwrap();
    let with = named.iter().zip(gradients).filter(|(_, gradient)| gradient.is_some());
    with.map(|((path, _), _)| path.clone()).collect()
}

#[test]
fn gradients_reach_every_trainable_variable_and_no_other() {
    for make in every_module() {
        let subject = make(DType::F32);
        subject.call().unwrap();
        let named = subject.module().named_variables().unwrap().into_iter();
        let want: BTreeSet<String> =
            named.filter(|(_, variable)| variable.trainable()).map(|(path, _)| path).collect();
        if want.is_empty() {
            continue; // a metric's value may have no gradient at all
        }
        let mut got = reached(&*subject);
        let kind = subject.module().kind();
        if kind == "TrainableState" {
            got.insert("_template/hidden".to_owned()); // the call looks at the cell alone
        }
        assert_eq!(got, want, "{kind}");
    }
}

#[test]
fn what_is_frozen_before_or_after_the_first_call_gets_no_gradient_until_it_is_thawed() {
    for make in every_module() {
        let (before, after) = (make(DType::F32), make(DType::F32));
        let kind = before.module().kind();
        if before.layer().is_none() {
            continue;
        }
        before.module().freeze("").unwrap();
        after.call().unwrap();
        after.module().freeze("").unwrap();
        for subject in [before, after] {
            assert!(reached(&*subject).is_empty(), "{kind}");
            let named = subject.module().named_variables().unwrap();
            assert!(named.iter().all(|(_, variable)| variable.is_frozen()), "{kind}");
            subject.module().thaw("").unwrap();
            let trainable = named.iter().filter(|(_, variable)| variable.trainable()).count();
            assert_eq!(reached(&*subject).len(), trainable, "{kind}");
        }
    }
}

#[test]
fn the_printed_form_begins_with_the_type_and_tables_can_be_made() {
    for make in every_module() {
        let subject = make(DType::F32);
        let kind = subject.module().kind();
        assert!(format!("{:?}", subject.module()).starts_with(&format!("{kind}(")), "{:?}", subject.module());
    }
    // 28 * 28 outputs of 9 products for each of 32 channels; then of 9 * 32; then 25,088 products for each of 10.
    let cnn = Sequential::new()
        .push(Conv2D::new(32, 3))
        .push(Tensor::relu)
        .push(Conv2D::new(32, 3))
        .push(Tensor::relu)
        .push(Flatten::new())
        .push(Linear::new(10));
    let expected = "\
| Module     | Type       | Output               | Parameters   | Multiply-adds   | Bytes     |
|------------+------------+----------------------+--------------+-----------------+-----------|
| sequential | Sequential | f32[None,10]         | 0            | 0               | 0         |
| _layers/0  | Conv2D     | f32[None,28,28,32]   | 320          | 225,792         | 1,280     |
| _layers/2  | Conv2D     | f32[None,28,28,32]   | 9,248        | 7,225,344       | 36,992    |
| _layers/4  | Flatten    | f32[None,25088]      | 0            | 0               | 0         |
| _layers/5  | Linear     | f32[None,10]         | 250,890      | 250,880         | 1,003,560 |
| total      |            | f32[None,10]         | 260,458      | 7,702,016       | 1,041,832 |
260,458 of 260,458 parameters are trained";
    let printed = summary(&cnn, [None, Some(28), Some(28), Some(1)]).unwrap().to_string();
    let squeeze = |text: &str| text.replace('-', "").split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeeze(&printed), squeeze(expected), "{printed}");
}
