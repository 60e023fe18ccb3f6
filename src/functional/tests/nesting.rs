//! Functions inside functions.

use super::*;
use crate::functional;

#[test]
fn a_function_applies_another_one() {
    let inner = functional::transform(&Linear::new(1), |linear, x: &Tensor| linear.forward(x));
    let outer = functional::transform(&Linear::new(2), move |linear, x: &Tensor| {
        // A network that makes the parameters of another one.
        let made = linear.forward(x)?;
        let params = Params::from([
            ("w".to_owned(), made.clone().reshape([2, 1])?),
            ("b".to_owned(), Tensor::zeros([1], DType::F32)?),
        ]);
        inner.apply(&params, &made)?.sum()
    });
    let x = Tensor::from([[1.0f32]]);
    let params = outer.init(&Generator::seed(1), &x).unwrap();
    let params = with(&params, "w", Some(Tensor::from([[2.0f32, 3.0]])));
    for _ in 0..2 {
        let (y, grads) = functional::value_and_grad(|params| outer.apply(params, &x), &params).unwrap();
        assert_eq!(item(&y), 13.0); // 2^2 + 3^2
        assert_eq!(grads["w"].to_dense().unwrap().to_vec::<f32>().unwrap(), [4.0, 6.0]);
    }
}

#[test]
fn a_function_initialises_and_trains_another_one() {
    let inner =
        functional::transform(&Linear::new(1), |linear, x: &Tensor| linear.forward(x)?.square()?.mean());
    let updater = functional::momentum(0.1, 0.9);
    let train = move |x: &Tensor| {
        let mut params = inner.init(&Generator::seed(4), x)?;
        let mut state = updater.init(&params)?;
        for _ in 0..3 {
            let grads = functional::grad(|params| inner.apply(params, x), &params)?;
            (params, state) = updater.apply(state, &grads, params)?;
        }
        inner.apply(&params, x)
    };
    let x = normal(1, &[4, 2], DType::F32);
    let want = train(&x).unwrap();
    let outer =
        functional::transform(&Linear::new(1), move |linear, x: &Tensor| Ok((train(x)?, linear.forward(x)?)));
    let params = outer.init(&Generator::seed(1), &x).unwrap();
    for _ in 0..2 {
        assert_eq!(bits(&outer.apply(&params, &x).unwrap().0), bits(&want));
    }
    let other = Params::from([("w".into(), ones(&[2, 1])), ("b".into(), ones(&[1]))]);
    assert_eq!(bits(&outer.apply(&other, &x).unwrap().0), bits(&want));
}

#[test]
fn an_imperative_optimiser_works_on_the_values_given() {
    let f = functional::transform(&Linear::new(1).with_bias(false), |linear, x: &Tensor| {
        let tape = GradientTape::new();
        let loss = linear.forward(x)?.square()?.sum()?;
        let params = linear.trainable_variables()?;
        optim::SGD::new(0.25).apply(&tape.gradient(&loss, &params)?, &params)?;
        linear.forward(x)
    });
    let x = Tensor::from([[1.0f32]]);
    let params = f.init(&Generator::seed(1), &x).unwrap();
    let params = with(&params, "w", Some(Tensor::from([[3.0f32]])));
    assert_eq!(item(&f.apply(&params, &x).unwrap()), 1.5); // w - 0.25 * 2 w
    assert_eq!(item(&params["w"]), 3.0);
}
