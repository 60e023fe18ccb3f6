//! Functions within scopes that change how variables are read, and modules as bytes within functions.

use super::*;
use crate::mixed_precision::{self, Modes};
use crate::{custom_variable_getter, functional};

#[test]
fn a_mode_holds_for_every_apply_alike() {
    let layer = || Modes::new([DType::F16]).of(Linear::new(1).with_bias(false));
    let f = functional::transform(&layer(), |layer, x: &Tensor| {
        Ok((layer.forward(x)?, layer.layer().forward(x)?))
    });
    let x = Tensor::from([[3.3f32]]);
    let init = f.init(&Generator::seed(1), &x).unwrap();
    assert_eq!(init["w"].dtype(), DType::F32);
    let params = Params::from([("w".to_owned(), Tensor::from([[0.1f32]]))]);
    let fresh = functional::transform(&layer(), |layer, x: &Tensor| {
        Ok((layer.forward(x)?, layer.layer().forward(x)?))
    });
    for f in [f.apply(&params, &x), fresh.apply(&params, &x)] {
        assert_eq!(item(&f.unwrap().0), f64::from(3.3f32 * 0.1));
    }
    mixed_precision::scope(DType::F16, || {
        for _ in 0..2 {
            // In halves 3.3 * 0.1 is 0.330078125; what is not wrapped stays in f32.
            assert_eq!(item(&f.apply(&params, &x)?.0), 0.330078125);
            assert_eq!(item(&f.apply(&params, &x)?.1), f64::from(3.3f32 * 0.1));
            let grads = functional::grad(|params| f.apply(params, &x)?.0.sum(), &params)?;
            assert_eq!(grads["w"].to_dense()?.dtype(), DType::F32);
        }
        let fresh = functional::transform(&layer(), |layer, x: &Tensor| layer.forward(x));
        for _ in 0..2 {
            assert_eq!(item(&fresh.apply(&params, &x)?), 0.330078125);
        }
        let started = functional::transform(&layer(), |layer, x: &Tensor| layer.forward(x));
        assert_eq!(bits_of(&started.init(&Generator::seed(1), &x)?), bits_of(&init));
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_getter_around_or_inside_sees_the_values_given() {
    let f = functional::transform(&Linear::new(1), |linear, x: &Tensor| linear.forward(x)?.sum());
    let x = Tensor::from([[1.0f32]]);
    let params = Params::from([("w".into(), Tensor::from([[2.0f32]])), ("b".into(), Tensor::from([5.0f32]))]);
    let tripled = || custom_variable_getter(|v| v * 3.0);
    // The first call makes the variables within the getter.
    for _ in 0..2 {
        assert_eq!(item(&tripled().run(|| f.apply(&params, &x)).unwrap()), 21.0);
        assert_eq!(item(&f.apply(&params, &x).unwrap()), 7.0);
    }
    let (y, grads) =
        functional::value_and_grad(|params| tripled().run(|| f.apply(params, &x)), &params).unwrap();
    assert_eq!((item(&y), item(&grads["w"].to_dense().unwrap())), (21.0, 3.0));
    let inside = functional::transform(&Linear::new(1), |linear, x: &Tensor| {
        custom_variable_getter(|v| v * 3.0).instances([linear]).run(|| linear.forward(x))?.sum()
    });
    let (y, grads) = functional::value_and_grad(|params| inside.apply(params, &x), &params).unwrap();
    assert_eq!((item(&y), item(&grads["b"].to_dense().unwrap())), (21.0, 3.0));
    let stopped = functional::transform(&Linear::new(1), |linear, x: &Tensor| {
        custom_variable_getter(|v| Ok(v.value().stop_gradient())).run(|| linear.forward(x))?.sum()
    });
    assert!(functional::grad(|params| stopped.apply(params, &x), &params).unwrap().is_empty());
    let initial = tripled().run(|| f.init(&Generator::seed(1), &x)).unwrap();
    assert_eq!(bits_of(&initial), bits_of(&f.init(&Generator::seed(1), &x).unwrap()));
}

#[test]
fn bytes_and_copies_of_the_module_inside_hold_the_values_given() {
    let net = MLP::new([2, 1]);
    let x = ones(&[1, 3]);
    net.forward(&x).unwrap();
    let f = functional::transform(&net, |net, x: &Tensor| {
        Ok((net.to_bytes()?, net.duplicate()?, net.forward(x)?))
    });
    let params: Params =
        f.init(&Generator::seed(1), &x).unwrap().into_iter().map(|(p, v)| (p, (v + 1.0).unwrap())).collect();
    let (bytes, copy, y) = f.apply(&params, &x).unwrap();
    assert_eq!(bits_of_module(&copy), bits_of(&params));
    assert_eq!(bits(&copy.forward(&x).unwrap()), bits(&y));
    let fresh = MLP::new([2, 1]);
    fresh.load_bytes(&bytes).unwrap();
    assert_eq!(bits(&fresh.forward(&x).unwrap()), bits(&y));
    // Loaded inside, they hold for that call.
    let f = functional::transform(&net, move |net, x: &Tensor| {
        net.load_bytes(&bytes)?;
        net.forward(x)
    });
    let before = bits_of_module(&net);
    let params = f.init(&Generator::seed(1), &x).unwrap();
    assert_eq!(bits_of(&params), before);
    for _ in 0..2 {
        assert_eq!(bits(&f.apply(&params, &x).unwrap()), bits(&y));
    }
    assert_eq!(bits_of_module(&net), before);
}

#[test]
fn the_module_s_own_bytes_are_those_of_its_own_values() {
    let net = MLP::new([2, 1]);
    let x = ones(&[1, 3]);
    net.forward(&x).unwrap();
    let bytes = net.to_bytes().unwrap();
    let f = functional::transform(&net, |net, x: &Tensor| net.forward(x));
    let params = f.init(&Generator::seed(1), &x).unwrap();
    let doubled = params.iter().map(|(path, value)| (path.clone(), (value * 2.0).unwrap())).collect();
    f.apply(&doubled, &x).unwrap();
    assert_eq!(net.to_bytes().unwrap(), bytes);
    functional::assign(&net, &doubled).unwrap();
    assert_eq!(bits_of_module(&net), bits_of(&doubled));
}
