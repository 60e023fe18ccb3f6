//! Calls leave nothing behind and do not meet.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::functional;
use crate::variable::overlay;

#[test]
fn what_the_function_assigns_changes_neither_the_module_nor_the_parameters() {
    let linear = Linear::new(1);
    let x = ones(&[1, 2]);
    linear.forward(&x).unwrap();
    let before = bits_of_module(&linear);
    let f = functional::transform(&linear, |linear, x: &Tensor| {
        let y = linear.forward(x)?;
        for variable in linear.variables()? {
            variable.assign_add(&variable.value())?;
        }
        Ok((y, linear.forward(x)?))
    });
    let params = f.init(&Generator::seed(1), &x).unwrap();
    let kept = bits_of(&params);
    for _ in 0..2 {
        let (once, twice) = f.apply(&params, &x).unwrap();
        assert_eq!(item(&twice), 2.0 * item(&once));
    }
    assert_eq!(bits_of(&params), kept);
    assert_eq!(bits_of_module(&linear), before);
}

#[test]
fn errors_and_panics_leave_nothing() {
    let net = Sequential::new().push(BatchNorm::new(true, true)).push(Linear::new(1));
    let f = functional::transform_with_state(&net, |net, (x, end): &(Tensor, u8)| {
        let y = net.forward_t(x, true)?;
        match end {
            0 => Ok(y),
            1 => Err(Error::usage("test", "an error", "none")),
            _ => panic!("a panic of this test"),
        }
    });
    let x = normal(1, &[4, 2], DType::F32);
    let panics = |f: &mut dyn FnMut()| assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
    assert!(f.init(&Generator::seed(1), &(x.clone(), 1)).is_err());
    panics(&mut || drop(f.init(&Generator::seed(1), &(x.clone(), 2))));
    let (params, state) = f.init(&Generator::seed(1), &(x.clone(), 0)).unwrap();
    let kept = all_bits(&params, &state);
    let want = f.apply(&params, &state, &(x.clone(), 0)).unwrap();
    let again = functional::transform_with_state(&net, |net, x: &Tensor| net.forward_t(x, true));
    for _ in 0..2 {
        assert!(f.apply(&params, &state, &(x.clone(), 1)).is_err());
        panics(&mut || drop(f.apply(&params, &state, &(x.clone(), 2))));
        assert!(!overlay::is_on());
        let (y, after) = f.apply(&params, &state, &(x.clone(), 0)).unwrap();
        assert_eq!((bits(&y), bits_of(&after)), (bits(&want.0), bits_of(&want.1)));
        // The tape of a derivative that did not come about is gone too.
        let failed = functional::grad(|p| Ok(f.apply(p, &state, &(x.clone(), 1))?.0), &params);
        assert!(failed.is_err());
        panics(&mut || drop(functional::grad(|p| Ok(f.apply(p, &state, &(x.clone(), 2))?.0), &params)));
        assert!(!crate::ops::record::is_recording());
    }
    assert_eq!(all_bits(&params, &state), kept);
    assert_eq!(bits(&again.apply(&params, &state, &x).unwrap().0), bits(&want.0));
}

#[test]
fn variables_elsewhere_and_new_ones_are_refused_by_name() {
    let counter = Variable::from_tensor("counter", Tensor::from(0.0f32));
    let inside = counter.clone();
    let f = functional::transform(&Linear::new(1), move |linear, x: &Tensor| {
        inside.assign_add(&Tensor::from(1.0f32))?;
        linear.forward(x)
    });
    let x = ones(&[1, 1]);
    let message = f.init(&Generator::seed(1), &x).unwrap_err().to_string();
    assert!(message.contains("counter"), "{message}");
    let params = Params::from([("w".into(), ones(&[1, 1])), ("b".into(), ones(&[1]))]);
    let message = f.apply(&params, &x).unwrap_err().to_string();
    assert!(message.contains("counter"), "{message}");
    assert_eq!(item(&counter.value()), 0.0);

    let late = functional::transform(&Linear::new(1), |linear, (x, more): &(Tensor, bool)| {
        let y = linear.forward(x)?;
        if *more { Linear::new(1).forward(&y) } else { Ok(y) }
    });
    let params = late.init(&Generator::seed(1), &(x.clone(), false)).unwrap();
    let message = late.apply(&params, &(x.clone(), true)).unwrap_err().to_string();
    assert!(message.contains("new variable, linear/"), "{message}");
}

#[test]
fn threads_apply_the_same_function_to_their_own_parameters() {
    let net = Sequential::new().push(Linear::new(8)).push(BatchNorm::new(true, true)).push(Linear::new(2));
    let f =
        functional::transform_with_state(&net, |net, x: &Tensor| net.forward_t(x, true)?.square()?.mean());
    let updater = functional::adam(0.01);
    let x = normal(3, &[16, 4], DType::F32);
    let train = |seed: u64| {
        let (mut params, mut state) = f.init(&Generator::seed(seed), &x).unwrap();
        let mut opt = updater.init(&params).unwrap();
        for _ in 0..20 {
            let step = |params: &Params| f.apply(params, &state, &x);
            let ((_, next), grads) = functional::value_and_grad_with_aux(step, &params).unwrap();
            (params, opt) = updater.apply(opt, &grads, params).unwrap();
            state = next;
        }
        all_bits(&params, &state)
    };
    let alone: Vec<_> = (0..4).map(train).collect();
    let together: Vec<_> = std::thread::scope(|s| {
        let threads: Vec<_> = (0..4).map(|seed| s.spawn(move || train(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(together, alone);
    assert_ne!(alone[0], alone[1]);
}

#[test]
fn a_function_serves_modules_of_several_sizes_in_turn() {
    let f = functional::transform(&Linear::new(2), |linear, x: &Tensor| linear.forward(x));
    let narrow = f.init(&Generator::seed(1), &ones(&[1, 3])).unwrap();
    let wide = f.init(&Generator::seed(1), &ones(&[1, 5])).unwrap();
    let double = f.init(&Generator::seed(1), &Tensor::ones([1, 3], DType::F64).unwrap()).unwrap();
    for _ in 0..2 {
        assert_eq!(f.apply(&narrow, &ones(&[1, 3])).unwrap().dtype(), DType::F32);
        assert!(f.apply(&wide, &ones(&[1, 5])).is_ok());
        let y = f.apply(&double, &Tensor::ones([1, 3], DType::F64).unwrap()).unwrap();
        assert_eq!(y.dtype(), DType::F64);
        assert!(f.apply(&narrow, &ones(&[1, 5])).is_err());
    }
}

#[test]
fn a_call_holds_on_to_no_values() {
    let f = functional::transform(&Linear::new(1), |linear, x: &Tensor| linear.forward(x)?.sum());
    let x = ones(&[1, 64]);
    let mut params = f.init(&Generator::seed(1), &x).unwrap();
    let at = |x: &Tensor| x.array::<f32>().unwrap().as_ptr();
    let mut w = params.remove("w").unwrap();
    let place = at(&w);
    for _ in 0..5 {
        params.insert("w".into(), w);
        functional::grad(|params| f.apply(params, &x), &params).unwrap();
        w = params.remove("w").unwrap();
        w.make_mut::<f32>().unwrap()[0] += 1.0; // copies if anybody else holds the values
        assert_eq!(at(&w), place);
    }
}
