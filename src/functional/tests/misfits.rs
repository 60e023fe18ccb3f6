//! Maps that are not those of the module.

use super::*;
use crate::functional::{self, Gradients};

fn net() -> MLP {
    MLP::new([3, 1])
}

/// What `apply` says of these parameters, from a function that has not seen the right ones, one that has, and one of a
/// module that was built.
fn messages(change: impl Fn(&Params) -> Params) -> [String; 3] {
    let x = ones(&[2, 4]);
    let call = |net: &MLP, x: &Tensor| net.forward(x);
    let seen = functional::transform(&net(), call);
    let params = seen.init(&Generator::seed(1), &x).unwrap();
    let wrong = change(&params);
    let built = net();
    built.forward(&x).unwrap();
    let built = functional::transform(&built, call);
    let fresh = functional::transform(&net(), call);
    [fresh, seen, built].map(|f| {
        let message = f.apply(&wrong, &x).unwrap_err().to_string();
        assert!(f.apply(&params, &x).is_ok(), "the error leaves the function as it was");
        message
    })
}

#[test]
fn all_differences_are_listed_by_path() {
    let change = |params: &Params| {
        let params = with(params, "_layers/0/w", Some(ones(&[5, 3])));
        let params = with(&params, "_layers/0/b", None);
        let params = with(&params, "_layers/1/b", Some(Tensor::zeros([1], DType::F64).unwrap()));
        with(&params, "_layers/2/w", Some(ones(&[1, 1])))
    };
    for message in messages(change) {
        let parts = [
            "the value for _layers/0/w is f32[5, 3], expected f32[4, 3]",
            "there is no value for _layers/0/b",
            "the value for _layers/1/b is f64[1], expected f32[1]",
            "nothing takes the value for _layers/2/w",
        ];
        for part in parts {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}

#[test]
fn a_single_difference_of_each_kind() {
    for message in messages(|params| with(params, "_layers/1/w", None)) {
        assert!(message.contains("no value for _layers/1/w"), "{message}");
    }
    for message in messages(|params| with(params, "more", Some(ones(&[1])))) {
        assert!(message.contains("nothing takes the value for more"), "{message}");
    }
    for message in messages(|params| with(params, "_layers/0/w/deeper", Some(ones(&[1])))) {
        assert!(message.contains("_layers/0/w"), "{message}");
    }
    for message in messages(|_| Params::new()) {
        assert!(message.contains("_layers/0/b") && message.contains("_layers/1/w"), "{message}");
    }
}

#[test]
fn an_error_of_the_function_itself_stays_what_it_is() {
    let f = functional::transform(&net(), |net, x: &Tensor| net.forward(x));
    let params = f.init(&Generator::seed(1), &ones(&[2, 4])).unwrap();
    let message = f.apply(&params, &ones(&[2, 5])).unwrap_err().to_string();
    assert!(message.contains("[2, 5]"), "{message}");
    assert!(f.apply(&params, &ones(&[3, 4])).is_ok());
}

#[test]
fn parameters_and_state_share_no_path_and_both_are_needed() {
    let f = functional::transform_with_state(&BatchNorm::new(true, true), |norm, x: &Tensor| {
        norm.forward_t(x, true)
    });
    let x = normal(1, &[4, 2], DType::F32);
    let (params, state) = f.init(&Generator::seed(1), &x).unwrap();
    let message = f.apply(&params, &State::new(), &x).unwrap_err().to_string();
    for path in state.keys() {
        assert!(message.contains(&format!("there is no value for {path}")), "{message}");
    }
    let path = params.keys().next().unwrap();
    let both = with(&state, path, Some(params[path].clone()));
    let message = f.apply(&params, &both, &x).unwrap_err().to_string();
    assert!(message.contains("both among the parameters and in the state"), "{message}");
    let stateless =
        functional::transform(&BatchNorm::new(true, true), |norm, x: &Tensor| norm.forward_t(x, true));
    let message = stateless.init(&Generator::seed(1), &x).unwrap_err().to_string();
    assert!(message.contains("transform_with_state") && message.contains("others"), "{message}");
}

#[test]
fn an_optimiser_names_what_does_not_fit() {
    let updater = functional::adam(0.1);
    let params = Params::from([("w".to_owned(), ones(&[2]))]);
    let state = updater.init(&params).unwrap();
    let grads = |path: &str, shape: &[usize]| Gradients::from([(path.to_owned(), ones(shape).into())]);
    let step = |state: &State, grads: &Gradients, params: &Params| {
        updater.apply(state.clone(), grads, params.clone()).unwrap_err().to_string()
    };
    assert!(step(&state, &grads("v", &[2]), &params).contains("a gradient for v"));
    assert!(step(&state, &grads("w", &[3]), &params).contains("[3]"));
    assert!(step(&state, &Gradients::new(), &params).contains("update"));
    let message = step(&with(&state, "m/0", None), &grads("w", &[2]), &params);
    assert!(message.contains("there is no value for m/0"), "{message}");
    let wider = Params::from([("w".to_owned(), ones(&[4]))]);
    let message = step(&state, &grads("w", &[4]), &wider);
    assert!(message.contains("m/0") && message.contains("v/0"), "{message}");
    assert!(updater.init(&Params::new()).is_err());
    assert!(updater.init(&Params::from([("n".to_owned(), Tensor::from([1i64]))])).is_err());
    assert!(updater.apply(state, &grads("w", &[2]), params).is_ok());
}

#[test]
fn assign_lists_what_does_not_fit_and_changes_nothing() {
    let (net, x) = (net(), ones(&[2, 4]));
    let f = functional::transform(&net, |net, x: &Tensor| net.forward(x));
    let params = f.init(&Generator::seed(1), &x).unwrap();
    net.forward(&x).unwrap();
    let before = bits_of_module(&net);
    let wrong = with(&with(&params, "_layers/0/w", Some(ones(&[1]))), "_layers/7/w", Some(ones(&[1])));
    let message = functional::assign(&net, &wrong).unwrap_err().to_string();
    assert!(message.contains("_layers/0/w") && message.contains("_layers/7/w"), "{message}");
    assert_eq!(bits_of_module(&net), before);
    functional::assign(&net, &params).unwrap();
    assert_eq!(bits_of_module(&net), bits_of(&params));
}
