//! What a step computes.

use super::*;
use crate::kernels::parallel::with_threads;

#[test]
fn a_hundred_steps_agree_with_the_formula() {
    for subject in subjects() {
        for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 2e-4)] {
            let optimizer = (subject.make)();
            let generator = Generator::seed(28);
            let shapes: [&[usize]; 4] = [&[3, 5, 2], &[17], &[], &[0, 3]];
            let parameters: Vec<Variable> = shapes
                .iter()
                .enumerate()
                .map(|(i, shape)| variable(&format!("p{i}"), normal(&generator, shape, dtype)))
                .collect();
            let mut expected: Vec<Vec<(f64, [f64; 3])>> = parameters
                .iter()
                .map(|p| floats(&p.value()).into_iter().map(|p| (p, [0.0; 3])).collect())
                .collect();
            for t in 1..=100 {
                let gradients: Vec<Tensor> =
                    shapes.iter().map(|shape| normal(&generator, shape, dtype)).collect();
                let updates: Vec<_> = gradients.iter().map(dense).collect();
                optimizer.apply(&updates, &parameters).unwrap();
                for (numbers, gradient) in expected.iter_mut().zip(&gradients) {
                    for ((p, slots), g) in numbers.iter_mut().zip(floats(gradient)) {
                        (subject.formula)(t, g, p, slots);
                    }
                }
            }
            for (parameter, numbers) in parameters.iter().zip(&expected) {
                for (got, (want, _)) in floats(&parameter.value()).iter().zip(numbers) {
                    assert!((got - want).abs() <= tolerance, "{optimizer:?} {dtype}: {got} and not {want}");
                }
            }
        }
    }
}

/// Values observed in the reference for a parameter of 1, updates 0.5, -0.25, 1 and learning rate 0.1.
#[test]
fn three_steps_give_the_numbers_of_the_reference() {
    let cases: Vec<(Box<dyn Optimizer>, [f64; 3])> = vec![
        (Box::new(SGD::new(0.1)), [0.95, 0.975, 0.875]),
        (Box::new(Momentum::new(0.1, 0.9)), [0.95, 0.93, 0.812]),
        (Box::new(Momentum::new(0.1, 0.9).use_nesterov(true)), [0.905, 0.912, 0.7058]),
        (Box::new(RMSProp::new(0.1)), [0.6837723, 0.8312142, 0.5493563]),
        (Box::new(RMSProp::new(0.1).momentum(0.5)), [0.6837723, 0.6731003, 0.3859065]),
        (Box::new(RMSProp::new(0.1).centered(true)), [0.6666667, 0.8151452, 0.5162726]),
        (Box::new(RMSProp::new(0.1).momentum(0.5).centered(true)), [0.6666667, 0.6484785, 0.3405119]),
        (Box::new(Adam::new(0.1)), [0.9, 0.8733663, 0.8075551]),
        (Box::new(Adam::new(0.1).epsilon(0.5)), [0.95, 0.9382417, 0.9007577]),
        (Box::new(Adam::new(0.1).beta1(0.0)), [0.9, 0.963255, 0.8121125]),
    ];
    for (optimizer, expected) in cases {
        let p = variable("p", 1.0f64);
        for (update, expected) in [0.5, -0.25, 1.0f64].into_iter().zip(expected) {
            optimizer.apply(&[dense(update)], std::slice::from_ref(&p)).unwrap();
            let got = p.value().item::<f64>().unwrap();
            // 0.999 is rounded to f32 in the reference, which shows in the sixth digit of Adam.
            assert!((got - expected).abs() < 2e-6, "{optimizer:?}: {got} and not {expected}");
        }
    }
}

/// Values observed in the reference for rows 0 and 2, the former twice, and then row 1.
#[test]
fn sparse_updates_touch_their_rows_only() {
    let cases: Vec<(Box<dyn Optimizer>, [f64; 3], [f64; 3])> = vec![
        (Box::new(SGD::new(0.1)), [0.925, 2.0, 2.9], [0.925, 1.9, 2.9]),
        (Box::new(Momentum::new(0.1, 0.9)), [0.925, 2.0, 2.9], [0.925, 1.9, 2.9]),
        (Box::new(Momentum::new(0.1, 0.9).use_nesterov(true)), [0.8575, 2.0, 2.81], [0.8575, 1.81, 2.81]),
        (Box::new(RMSProp::new(0.1)), [0.6837723, 2.0, 2.6837723], [0.6837723, 1.6837722, 2.6837723]),
        (Box::new(Adam::new(0.1)), [0.9, 2.0, 2.9], [0.9, 1.9255866, 2.9]),
    ];
    for (optimizer, first, second) in cases {
        let p = variable("p", [[1.0f64], [2.0], [3.0]]);
        let updates = [rows([[0.5f64], [1.0], [0.25]], &[0, 2, 0], &p), rows([[1.0f64]], &[1], &p)];
        for (update, expected) in updates.into_iter().zip([first, second]) {
            optimizer.apply(&[update], std::slice::from_ref(&p)).unwrap();
            for (got, want) in floats(&p.value()).iter().zip(expected) {
                assert!((got - want).abs() < 2e-6, "{optimizer:?}: {got} and not {want}");
            }
        }
    }
}

#[test]
fn an_empty_sparse_update_changes_nothing_but_the_count() {
    for subject in subjects() {
        let optimizer = (subject.make)();
        let p = variable("p", [[1.0f32, 2.0], [3.0, 4.0]]);
        let none = rows(Tensor::zeros([0, 2], DType::F32).unwrap(), &[], &p);
        optimizer.apply(&[none], std::slice::from_ref(&p)).unwrap();
        assert_eq!(floats(&p.value()), [1.0, 2.0, 3.0, 4.0]);
    }
}

#[test]
fn decay_falls_on_chosen_parameters_only() {
    let (w, b) = (variable("w", [[1.0f64]]), variable("b", [1.0f64]));
    let optimizer = AdamW::new(0.5, 0.1).decays(|p: &Variable| p.shape().rank() > 1);
    let zero = |v: &Variable| dense(Tensor::zeros(v.shape().clone(), DType::F64).unwrap());
    optimizer.apply(&[zero(&w), zero(&b)], &[w.clone(), b.clone()]).unwrap();
    // The moments of a gradient of 0 are 0: what is left is 1 - 0.5 * 0.1.
    assert_eq!((floats(&w.value()), floats(&b.value())), (vec![0.95], vec![1.0]));
}

#[test]
fn half_floats_are_trained_without_nan() {
    for subject in subjects() {
        for dtype in [DType::F16, DType::BF16] {
            let optimizer = (subject.make)();
            let p = variable("p", Tensor::ones([20], dtype).unwrap());
            for _ in 0..5 {
                let g = Tensor::full([20], 0.5, dtype).unwrap();
                optimizer.apply(&[dense(g)], std::slice::from_ref(&p)).unwrap();
            }
            let p = floats(&p.value());
            assert!(p.iter().all(|&p| p.is_finite() && p < 1.0), "{optimizer:?}: {p:?}");
        }
    }
}

#[test]
fn results_do_not_depend_on_threads_or_on_the_layout_of_updates() {
    for subject in subjects() {
        let run = |transposed: bool| {
            let optimizer = (subject.make)();
            let generator = Generator::seed(1);
            let p = variable("p", normal(&generator, &[150, 300], DType::F32));
            for _ in 0..3 {
                let g = normal(&generator, &[150, 300], DType::F32);
                let g = if transposed {
                    let copy = g.transpose(&[1, 0]).unwrap();
                    let data = copy.to_vec::<f32>().unwrap();
                    Tensor::from_vec(data, [300, 150]).unwrap().transpose(&[1, 0]).unwrap()
                } else {
                    g
                };
                optimizer.apply(&[dense(g)], std::slice::from_ref(&p)).unwrap();
            }
            bits(&[p])
        };
        let expected = run(false);
        assert!(with_threads(1, || run(false)) == expected && run(true) == expected);
    }
}

#[test]
fn hyper_parameters_may_be_variables_and_schedules() {
    let (p, rate) = (variable("p", 1.0f64), variable("learning_rate", 0.5f32));
    let optimizer = SGD::new(&rate);
    let step =
        |optimizer: &dyn Optimizer| optimizer.apply(&[dense(1.0f64)], std::slice::from_ref(&p)).unwrap();
    step(&optimizer);
    rate.assign(&Tensor::from(0.25f32)).unwrap();
    step(&optimizer);
    assert_eq!(p.value().item::<f64>().unwrap(), 0.25);
    assert_eq!(optimizer.named_variables().unwrap()[0].0, "learning_rate");
    let optimizer = SGD::new(|step: u64| [1.0, 2.0, 4.0][step as usize]);
    (0..3).for_each(|_| step(&optimizer));
    assert_eq!(p.value().item::<f64>().unwrap(), 0.25 - 7.0);
    let (path, count) = optimizer.named_variables().unwrap().remove(0);
    assert_eq!((path.as_str(), count.name(), count.value().item::<i64>().unwrap()), ("step", "sgd/t", 3));
    assert!(SGD::new(0.1).variables().is_err());
}

#[test]
fn clipping_keeps_the_direction_and_small_norms() {
    let p = variable("p", [[0.0f64], [0.0]]);
    // Rows add up to (3, 0); the dense one is 4: the norm is 5.
    let sparse = rows([[1.0f64], [2.0]], &[0, 0], &p);
    let gradients = [sparse, None, dense(4.0f64)];
    assert_eq!(global_norm(&gradients).unwrap().item::<f64>().unwrap(), 5.0);
    let (clipped, norm) = clip_by_global_norm(&gradients, 2.5).unwrap();
    assert_eq!(norm.item::<f64>().unwrap(), 5.0);
    let sparse = clipped[0].as_ref().unwrap().to_dense().unwrap();
    assert_eq!((floats(&sparse), clipped[1].is_none()), (vec![1.5, 0.0], true));
    assert_eq!(floats(clipped[2].as_ref().unwrap().dense().unwrap()), [2.0]);
    let (kept, _) = clip_by_global_norm(&gradients, 5.0).unwrap();
    assert_eq!(floats(kept[2].as_ref().unwrap().dense().unwrap()), [4.0]);
    let cut = clip_by_value(&gradients, -1.0, 2.0).unwrap();
    assert_eq!(floats(&cut[0].as_ref().unwrap().to_dense().unwrap()), [2.0, 0.0]);
    assert_eq!(floats(cut[2].as_ref().unwrap().dense().unwrap()), [2.0]);
    let (none, norm) = clip_by_global_norm(&[None], 1.0).unwrap();
    assert_eq!((none.len(), norm.item::<f32>().unwrap()), (1, 0.0));
    let (zero, _) = clip_by_global_norm(&[dense(0.0f32)], 1.0).unwrap();
    assert_eq!(floats(zero[0].as_ref().unwrap().dense().unwrap()), [0.0]);
}

#[test]
fn bad_norms_are_refused_and_placed() {
    let gradients = [None, dense(1.0f32), dense([1.0f32, f32::NAN])];
    let message = clip_by_global_norm(&gradients, 1.0).unwrap_err().to_string();
    assert!(message.contains("NaN, at gradient 2"), "{message}");
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(clip_by_global_norm(&[dense(1.0f32)], bad).is_err());
    }
    assert!(global_norm(&[dense(1i32)]).is_err() && clip_by_value(&[dense(1.0f32)], 1.0, 0.0).is_err());
}

/// `clipped = g / |g|` with `|g| = 5`: its sum has the gradient `(1 - g (sum g) / 25) / 5`.
#[test]
fn clipped_gradients_can_be_differentiated() {
    let g = Tensor::from([3.0f64, 4.0]);
    let tape = crate::GradientTape::new();
    tape.watch(&g);
    let (clipped, _) = clip_by_global_norm(&[dense(&g)], 1.0).unwrap();
    let total = clipped[0].as_ref().unwrap().dense().unwrap().sum().unwrap();
    let dg = tape.gradient(&total, &[&g]).unwrap().remove(0).unwrap();
    for (dg, g) in floats(dg.dense().unwrap()).iter().zip([3.0, 4.0]) {
        assert!((dg - (1.0 - g * 7.0 / 25.0) / 5.0).abs() < 1e-15, "{dg}");
    }
}
