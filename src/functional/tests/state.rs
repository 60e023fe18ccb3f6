//! What is not trained travels beside the parameters.

use super::*;
use crate::functional;

#[test]
fn moving_averages_and_tables_of_a_quantiser_move_as_in_the_module() {
    let net = || (BatchNorm::new(true, true), VectorQuantizerEMA::new(2, 3, 0.25, 0.9));
    type Net = (BatchNorm, VectorQuantizerEMA);
    let call = |(norm, quantizer): &Net, x: &Tensor| {
        Ok(quantizer.forward_t(&norm.forward_t(x, true)?, true)?.quantize)
    };
    let direct = net();
    let f = functional::transform_with_state(&net(), call);
    let batch = |i| normal(i, &[5, 2], DType::F32);
    let run = || -> Result<_> { (0..4).map(|i| call(&direct, &batch(i))).collect::<Result<Vec<_>>>() };
    let want = random::with(&Generator::seed(3), run).unwrap();
    let (params, start) = f.init(&Generator::seed(3), &batch(0)).unwrap();
    assert!(params.keys().all(|path| path.starts_with("0/")), "{params:?}");
    let (mut state, mut found) = (start.clone(), Vec::new());
    for i in 0..4 {
        let y;
        (y, state) = f.apply(&params, &state, &batch(i)).unwrap();
        found.push(y);
    }
    let all = |ys: &[Tensor]| ys.iter().map(bits).collect::<Vec<_>>();
    assert_eq!(all(&found), all(&want));
    assert_ne!(bits_of(&state), bits_of(&start));
    // A state is a value: an older one gives again what it gave.
    let (y, _) = f.apply(&params, &start, &batch(0)).unwrap();
    assert_eq!(bits(&y), bits(&want[0]));
    // Both go back into a module.
    let other = net();
    functional::assign(&other, &params).unwrap();
    functional::assign(&other, &state).unwrap();
    assert_eq!(bits(&call(&other, &batch(9)).unwrap()), bits(&call(&direct, &batch(9)).unwrap()));
}

#[test]
fn a_generator_of_a_layer_s_own_is_part_of_the_state() {
    let dropout = Dropout::new(0.5).seed(7);
    let f = functional::transform_with_state(&dropout, |dropout, x: &Tensor| dropout.forward_t(x, true));
    let x = ones(&[16]);
    let (params, first) = f.init(&Generator::seed(1), &x).unwrap();
    assert_eq!((params.len(), first.len()), (0, 1));
    let (y1, second) = f.apply(&params, &first, &x).unwrap();
    let (y2, third) = f.apply(&params, &second, &x).unwrap();
    assert_ne!(bits(&y1), bits(&y2));
    assert_eq!(bits(&f.apply(&params, &second, &x).unwrap().0), bits(&y2));
    let direct = || bits(&dropout.forward_t(&x, true).unwrap());
    assert_eq!((direct(), direct()), (bits(&y1), bits(&y2)), "nothing moved the layer's own generator");
    let y3 = bits(&f.apply(&params, &third, &x).unwrap().0);
    let fresh = Dropout::new(0.5).seed(7);
    functional::assign(&fresh, &third).unwrap();
    assert_eq!(bits(&fresh.forward_t(&x, true).unwrap()), y3);
    let broken = with(&first, first.keys().next().unwrap(), Some(Tensor::from([1u8, 2])));
    assert!(f.apply(&params, &broken, &x).is_err());
    assert!(functional::assign(&fresh, &broken).is_err());
}

#[test]
fn the_thread_s_generator_decides_what_apply_draws() {
    let f = functional::transform(&Linear::new(3), |linear, x: &Tensor| {
        Dropout::new(0.5).forward_t(&linear.forward(x)?, true)
    });
    let x = ones(&[4, 2]);
    let params = f.init(&Generator::seed(1), &x).unwrap();
    let generator = Generator::seed(2);
    let call = |f: &dyn Fn() -> Result<Tensor>| bits(&random::with(&generator, f).unwrap());
    let first = call(&|| f.apply(&params, &x));
    assert_ne!(call(&|| f.apply(&params, &x)), first);
    // A function that must first make its variables draws no more than one that has them.
    let fresh = functional::transform(&Linear::new(3), |linear, x: &Tensor| {
        Dropout::new(0.5).forward_t(&linear.forward(x)?, true)
    });
    generator.restore(Generator::seed(2).state());
    assert_eq!(call(&|| fresh.apply(&params, &x)), first);
}

#[test]
fn recurrent_cores_take_their_state_as_part_of_the_input() {
    let core = LSTM::new(4);
    let f = functional::transform(&core, |core, (x, state): &(Tensor, Nest)| core.step(x, state));
    let start = LSTM::new(4).initial_state(2).unwrap();
    let x = |i| normal(i, &[2, 3], DType::F32);
    let params = f.init(&Generator::seed(1), &(x(0), start.clone())).unwrap();
    assert_eq!(params.len(), 3);
    let direct = LSTM::new(4);
    functional::assign(&direct, &params).unwrap();
    let (mut mine, mut theirs) = (start.clone(), start);
    for i in 0..3 {
        let (y, next) = f.apply(&params, &(x(i), mine)).unwrap();
        let (want, want_next) = direct.step(&x(i), &theirs).unwrap();
        assert_eq!(bits(&y), bits(&want));
        (mine, theirs) = (next, want_next);
    }
}

#[test]
fn frozen_variables_are_state_and_a_built_module_gives_its_values() {
    let net = MLP::new([3, 1]);
    let x = ones(&[2, 4]);
    net.forward(&x).unwrap();
    net.freeze("_layers/0").unwrap();
    let f = functional::transform_with_state(&net, |net, x: &Tensor| net.forward(x)?.mean());
    let (params, state) = f.init(&Generator::seed(99), &x).unwrap();
    assert_eq!(params.keys().collect::<Vec<_>>(), ["_layers/1/b", "_layers/1/w"]);
    assert_eq!(state.keys().collect::<Vec<_>>(), ["_layers/0/b", "_layers/0/w"]);
    assert_eq!(all_bits(&params, &state), bits_of_module(&net));
    let ((_, after), grads) =
        functional::value_and_grad_with_aux(|params| f.apply(params, &state, &x), &params).unwrap();
    assert_eq!(grads.keys().collect::<Vec<_>>(), ["_layers/1/b", "_layers/1/w"]);
    assert_eq!(bits_of(&after), bits_of(&state));
    // What is asked for is differentiated, frozen or not.
    let grads = functional::grad(|state| Ok(f.apply(&params, state, &x)?.0), &state).unwrap();
    assert!(grads.contains_key("_layers/0/w"));
}

#[test]
fn a_shared_variable_has_one_path_and_one_gradient() {
    let shared = std::sync::Arc::new(Linear::new(2).with_bias(false));
    let f = functional::transform(&(shared.clone(), shared), |(a, b), x: &Tensor| {
        b.forward(&a.forward(x)?)?.sum()
    });
    let x = Tensor::from([[1.0f32, 0.0]]);
    let params = f.init(&Generator::seed(1), &x).unwrap();
    assert_eq!(params.keys().collect::<Vec<_>>(), ["0/w"]);
    let params = Params::from([("0/w".to_owned(), Tensor::from([[2.0f32, 0.0], [0.0, 2.0]]))]);
    let grads = functional::grad(|params| f.apply(params, &x), &params).unwrap();
    // sum(x w w) at x = (1, 0) and w = 2 I: d/dw = (w^T x^T) 1^T + x^T (1^T w^T).
    assert_eq!(grads["0/w"].dense().unwrap().to_vec::<f32>().unwrap(), [4.0, 4.0, 0.0, 0.0]);
}
