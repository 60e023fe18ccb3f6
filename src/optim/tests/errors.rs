//! What is refused, and that nothing changes then.

use super::*;

/// Applies updates that must be refused; the message holds all parts, and neither parameters nor optimiser change.
fn refuse(optimizer: &dyn Optimizer, updates: &[Option<Gradient>], parameters: &[Variable], parts: &[&str]) {
    let before = (bits(parameters), bits(&state(optimizer)));
    let message = optimizer.apply(updates, parameters).unwrap_err().to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
    assert!(message.starts_with(&format!("in {}: apply: ", optimizer.scope().path())), "{message}");
    assert_eq!((bits(parameters), bits(&state(optimizer))), before, "{message}");
}

/// For each optimiser, before its first step and after it.
fn each(test: impl Fn(&dyn Optimizer)) {
    for subject in subjects() {
        let optimizer = (subject.make)();
        test(&*optimizer);
        optimizer.apply(&[dense([1.0f32])], &[variable("first", [1.0f32])]).unwrap();
        test(&*optimizer);
    }
}

#[test]
fn lists_must_match_and_hold_something() {
    each(|optimizer| {
        let (a, b) = (variable("net/a", [1.0f32]), variable("net/b", [2.0f32]));
        let g = || dense([1.0f32]);
        refuse(optimizer, &[g()], &[a.clone(), b.clone()], &["1 updates", "2 parameters"]);
        refuse(optimizer, &[g(), g()], std::slice::from_ref(&a), &["2 updates", "1 parameters"]);
        refuse(optimizer, &[], &[], &["no parameters", "at least one"]);
        refuse(optimizer, &[None, None], &[a.clone(), b.clone()], &["no parameter has an update", "net/a"]);
        refuse(optimizer, &[g(), g(), g()], &[a.clone(), b, a], &["net/a came twice"]);
    });
}

#[test]
fn updates_must_fit_their_parameter() {
    each(|optimizer| {
        let (a, b) = (variable("net/a", [1.0f32]), variable("net/b", [[2.0f32], [3.0]]));
        let all = [a.clone(), b.clone()];
        let g = || dense([1.0f32]);
        let refuse = |update, parts: &[&str]| refuse(optimizer, &[g(), update], &all, parts);
        refuse(dense([[1.0f64], [1.0]]), &["net/b", "f64", "f32"]);
        refuse(dense([[1i32], [1]]), &["net/b", "i32", "f32"]);
        refuse(dense([1.0f32, 1.0]), &["net/b", "[2]", "[2, 1]"]);
        refuse(dense(1.0f32), &["net/b", "[2, 1]"]);
        refuse(rows([[1.0f32]], &[2], &b), &["net/b", "2", "0 to 1"]);
        refuse(rows([[1.0f32]], &[-1], &b), &["net/b", "-1"]);
        refuse(rows([[1.0f32]], &[0, 1], &b), &["net/b"]);
        refuse(rows([[1.0f32, 2.0]], &[0], &b), &["net/b"]);
        refuse(rows([1.0f32], &[0], &a), &["net/b", "[1]"]);
        let fractions = IndexedSlices {
            values: Tensor::from([[1.0f32]]),
            indices: Tensor::from([0.5f32]),
            dims: b.shape().clone(),
        };
        refuse(Some(fractions.into()), &["integer"]);
    });
}

#[test]
fn integers_are_not_trained() {
    each(|optimizer| {
        let (a, count) = (variable("net/a", [1.0f32]), variable("net/count", [1i64]));
        refuse(optimizer, &[dense([1.0f32]), dense([1i64])], &[a, count], &["net/count", "i64", "float"]);
    });
}

#[test]
fn frozen_parameters_are_checked_too() {
    each(|optimizer| {
        let a = variable("net/a", [1.0f32]);
        a.set_frozen(true);
        refuse(optimizer, &[dense([1.0f64])], &[a], &["net/a", "f64"]);
    });
}

#[test]
fn hyper_parameters_must_be_finite_and_in_range() {
    let bad = variable("rate", f32::NAN);
    let optimizers: Vec<(Box<dyn Optimizer>, &[&str])> = vec![
        (Box::new(SGD::new(f64::NAN)), &["learning_rate is NaN", "finite"]),
        (Box::new(SGD::new(f64::INFINITY)), &["learning_rate is inf"]),
        (Box::new(SGD::new(&bad)), &["learning_rate is NaN (Variable(rate) at step 0)"]),
        (Box::new(SGD::new(|_: u64| f64::NEG_INFINITY)), &["learning_rate is -inf (<closure> at step 0)"]),
        (Box::new(Momentum::new(0.1, f64::NAN)), &["momentum is NaN"]),
        (Box::new(RMSProp::new(f64::NAN)), &["learning_rate is NaN"]),
        (Box::new(RMSProp::new(0.1).decay(1.5)), &["decay is 1.5", "0 to 1"]),
        (Box::new(RMSProp::new(0.1).momentum(f64::NAN)), &["momentum is NaN"]),
        (Box::new(RMSProp::new(0.1).epsilon(-1.0)), &["epsilon is -1", "0 or more"]),
        (Box::new(Adam::new(f64::NAN)), &["learning_rate is NaN"]),
        (Box::new(Adam::new(0.1).beta1(1.0)), &["beta1 is 1", "at least 0 and below 1"]),
        (Box::new(Adam::new(0.1).beta2(-0.1)), &["beta2 is -0.1"]),
        (Box::new(Adam::new(0.1).epsilon(f64::INFINITY)), &["epsilon is inf"]),
        (Box::new(AdamW::new(f64::NAN, 0.1)), &["learning_rate is NaN"]),
        (Box::new(AdamW::new(0.1, -0.1)), &["weight_decay is -0.1"]),
    ];
    for (optimizer, parts) in optimizers {
        refuse(&*optimizer, &[dense([1.0f32])], &[variable("a", [1.0f32])], parts);
    }
}
