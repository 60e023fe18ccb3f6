//! Gradients with respect to parameters, of any order.

use super::*;
use crate::autodiff::recompute;
use crate::functional;

fn mlp_loss() -> functional::Transformed<MLP, impl Fn(&MLP, &Tensor) -> Result<Tensor>> {
    functional::transform(&MLP::new([6, 1]).activation(Tensor::tanh), |net, x: &Tensor| {
        net.forward(x)?.square()?.mean()
    })
}

fn dense(grads: &functional::Gradients) -> Params {
    grads.iter().map(|(path, g)| (path.clone(), g.to_dense().unwrap())).collect()
}

#[test]
fn gradients_match_finite_differences_in_f64() {
    let (f, x) = (mlp_loss(), normal(1, &[4, 3], DType::F64));
    let params = f.init(&Generator::seed(1), &x).unwrap();
    let grads = dense(&functional::grad(|params| f.apply(params, &x), &params).unwrap());
    assert_eq!(grads.keys().collect::<Vec<_>>(), params.keys().collect::<Vec<_>>());
    for (path, value) in &params {
        for i in 0..value.size() {
            let moved = |by: f64| {
                let mut numbers = value.to_vec::<f64>().unwrap();
                numbers[i] += by;
                let value = Tensor::from_vec(numbers, value.shape().clone()).unwrap();
                item(&f.apply(&with(&params, path, Some(value)), &x).unwrap())
            };
            let want = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            let got = grads[path].to_vec::<f64>().unwrap()[i];
            assert!((got - want).abs() < 1e-8, "{path}[{i}]: {got} {want}");
        }
    }
}

#[test]
fn second_derivatives_go_through_apply() {
    // loss = sum((x w)^2): the Hessian with respect to w is 2 x^T x.
    let f = functional::transform(&Linear::new(1).with_bias(false), |linear, x: &Tensor| {
        linear.forward(x)?.square()?.sum()
    });
    let x = Tensor::from([[1.0f64, 2.0], [3.0, -1.0]]);
    let params = f.init(&Generator::seed(1), &x).unwrap();
    for (i, want) in [[20.0, -2.0], [-2.0, 10.0]].into_iter().enumerate() {
        let component = |params: &Params| {
            let grads = functional::grad(|params| f.apply(params, &x), params)?;
            grads["w"].to_dense()?.reshape([2])?.index(i as isize)
        };
        let row = functional::grad(component, &params).unwrap();
        assert_eq!(row["w"].to_dense().unwrap().to_vec::<f64>().unwrap(), want);
    }
}

#[test]
fn a_step_of_descent_can_be_differentiated_through() {
    // One parameter: loss(w) = w^2, w' = w - a 2 w, so d loss(w') / dw = 2 w (1 - 2 a)^2, and by a: -4 w^2 (1 - 2 a).
    let f = functional::transform(&Linear::new(1).with_bias(false), |linear, x: &Tensor| {
        linear.forward(x)?.square()?.sum()
    });
    let (x, a) = (Tensor::from([[1.0f64]]), Tensor::from(0.25f64));
    let params = Params::from([("w".to_owned(), Tensor::from([[3.0f64]]))]);
    let after = |(params, a): &(Params, Tensor)| {
        let grads = functional::grad(|params| f.apply(params, &x), params)?;
        let w = (&params["w"] - (a * &grads["w"].to_dense()?)?)?;
        f.apply(&Params::from([("w".to_owned(), w)]), &x)
    };
    let (y, (dw, da)) = functional::value_and_grad(after, &(params, a)).unwrap();
    assert_eq!(item(&y), 2.25);
    assert_eq!(item(&dw["w"].to_dense().unwrap()), 1.5);
    assert_eq!(item(&da.unwrap().to_dense().unwrap()), -18.0);
}

#[test]
fn an_imperative_tape_differentiates_apply_too() {
    let (f, x) = (mlp_loss(), normal(1, &[4, 3], DType::F32));
    let params = f.init(&Generator::seed(1), &x).unwrap();
    let tape = GradientTape::new();
    params.values().for_each(|value| tape.watch(value));
    let y = f.apply(&params, &x).unwrap();
    let found = tape.gradient(&y, &params.values().collect::<Vec<_>>()).unwrap();
    let want = dense(&functional::grad(|params| f.apply(params, &x), &params).unwrap());
    for (found, want) in found.into_iter().zip(want.values()) {
        assert_eq!(bits(&found.unwrap().to_dense().unwrap()), bits(want));
    }
}

#[test]
fn a_tape_inside_the_function_takes_gradients_by_variables() {
    // loss = (x w)^2, and the penalty is the square of its gradient by w: (2 w x^2)^2.
    let f = functional::transform(&Linear::new(1).with_bias(false), |linear, x: &Tensor| {
        let tape = GradientTape::new();
        let loss = linear.forward(x)?.square()?.sum()?;
        let grad = tape.gradient(&loss, &linear.trainable_variables()?)?.remove(0);
        grad.expect("the loss depends on w").to_dense()?.square()?.sum()
    });
    let x = Tensor::from([[2.0f64]]);
    let params = f.init(&Generator::seed(1), &x).unwrap();
    let params = with(&params, "w", Some(Tensor::from([[3.0f64]])));
    let (y, grads) = functional::value_and_grad(|params| f.apply(params, &x), &params).unwrap();
    assert_eq!(item(&y), 576.0);
    assert_eq!(item(&grads["w"].to_dense().unwrap()), 384.0); // 8 w x^4
}

#[test]
fn recomputation_gives_the_same_gradients_inside_and_outside() {
    let (f, x) = (mlp_loss(), normal(1, &[4, 3], DType::F32));
    let params = f.init(&Generator::seed(1), &x).unwrap();
    let want = bits_of(&dense(&functional::grad(|params| f.apply(params, &x), &params).unwrap()));
    let outside = functional::grad(|params| recompute(|| f.apply(params, &x)), &params).unwrap();
    assert_eq!(bits_of(&dense(&outside)), want);
    let inside = functional::transform(&MLP::new([6, 1]).activation(Tensor::tanh), |net, x: &Tensor| {
        recompute(|| net.forward(x))?.square()?.mean()
    });
    for _ in 0..2 {
        // The first call makes the variables.
        let grads = functional::grad(|params| inside.apply(params, &x), &params).unwrap();
        assert_eq!(bits_of(&dense(&grads)), want);
    }
}

#[test]
fn a_first_apply_records_what_a_later_one_does() {
    let x = normal(1, &[4, 3], DType::F32);
    let params = mlp_loss().init(&Generator::seed(1), &x).unwrap();
    let f = mlp_loss();
    let count = || {
        let tape = GradientTape::new().watch_accessed_variables(false);
        params.values().for_each(|value| tape.watch(value));
        f.apply(&params, &x).unwrap();
        crate::ops::record::with_recorder(|r| r.records.len()).unwrap()
    };
    assert_eq!(count(), count());
}

#[test]
fn trees_nest_and_what_does_not_matter_has_no_gradient() {
    let at = (
        vec![Tensor::from(2.0f64), Tensor::from(3.0f64)],
        Params::from([("a".to_owned(), Tensor::from(5.0f64)), ("b".to_owned(), Tensor::from(7.0f64))]),
        Tensor::from(4i64),
    );
    let f = |(list, params, _): &(Vec<Tensor>, Params, Tensor)| &list[0] * &params["b"];
    let (y, (list, params, count)) = functional::value_and_grad(f, &at).unwrap();
    assert_eq!(item(&y), 14.0);
    assert_eq!(item(&list[0].as_ref().unwrap().to_dense().unwrap()), 7.0);
    assert!(list[1].is_none() && count.is_none());
    assert_eq!(params.keys().collect::<Vec<_>>(), ["b"]);
    assert!(functional::grad(|x| x * 2.0, &ones(&[3])).is_err(), "not a scalar");
    assert!(functional::grad(|_| Ok(Tensor::from(1i64)), &ones(&[3])).is_err(), "not a float");
}

#[test]
fn what_is_not_given_is_constant() {
    let w = Variable::from_tensor("w", Tensor::from(3.0f64));
    let x = Tensor::from(2.0f64);
    // d/dx (w x + x0 x) = w + x0, where x0 is the original of x.
    let dx = functional::grad(|at| (at * &w)? + (at * &x)?, &x).unwrap().unwrap();
    assert_eq!(item(&dx.to_dense().unwrap()), 5.0);
    // An imperative tape around sees both.
    let tape = GradientTape::new();
    let y = functional::value_and_grad(|at| at * &w, &x).unwrap().0;
    assert_eq!(item(&tape.gradient(&y, &[&w]).unwrap().remove(0).unwrap().to_dense().unwrap()), 2.0);
}
