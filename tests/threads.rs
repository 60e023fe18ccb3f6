//! Many models on many threads: every one gets its own bits, its own names and all of its gradients.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use couplet::prelude::*;
use couplet::random;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

/// What training leaves behind: losses and weights to the last bit, and the names of the variables.
#[derive(Debug, PartialEq)]
struct Trained {
    losses: Vec<u32>,
    weights: Vec<u32>,
    names: Vec<String>,
}

fn bits(x: &Tensor) -> Vec<u32> {
    x.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

/// Trains a model of its own. Each seed has another width; one in sixteen is large enough for parallel kernels.
fn train(seed: u64) -> Trained {
    random::with(&Generator::seed(seed), || {
        let (batch, width) = if seed.is_multiple_of(16) { (256, 384) } else { (8, 4 + seed as usize % 5) };
        let draw = |columns| random::current().normal([batch, columns], 0.0, 1.0, DType::F32).unwrap();
        let (x, y) = (draw(width), draw(2));
        let model = Sequential::new()
            .push(Linear::new(width))
            .push(Tensor::tanh)
            .push(MLP::new([width, 2]).dropout_rate(0.25));
        let optimizer = optim::Momentum::new(0.05, 0.9);
        let mut losses = Vec::new();
        for _ in 0..6 {
            let tape = GradientTape::new();
            let predicted = model.forward_t(&x, true).unwrap();
            let loss = losses::mean_squared_error(&predicted, &y).unwrap().mean().unwrap();
            let parameters = model.trainable_variables().unwrap();
            let gradients = tape.gradient(&loss, &parameters).unwrap();
            assert!(gradients.iter().all(Option::is_some), "{:?} have no gradient", tape.without_gradient());
            optimizer.apply(&gradients, &parameters).unwrap();
            losses.extend(bits(&loss));
        }
        let variables = model.variables().unwrap();
        Trained {
            losses,
            weights: variables.iter().flat_map(|variable| bits(&variable.value())).collect(),
            names: variables.iter().map(|variable| variable.name().to_owned()).collect(),
        }
    })
}

/// The same, one after another.
fn alone(seeds: impl Iterator<Item = u64>) -> Vec<Trained> {
    seeds.map(train).collect()
}

/// Fails if `f` is not done in time: it hangs.
fn in_time<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, wait) = channel();
    let worker = std::thread::spawn(move || {
        let result = f();
        done.send(()).ok();
        result
    });
    // A panic drops the sender, which ends the wait too.
    if let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = wait.recv_timeout(Duration::from_secs(300)) {
        panic!("no end after five minutes");
    }
    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn assert_same(together: &[Trained], alone: &[Trained]) {
    for (seed, (got, want)) in together.iter().zip(alone).enumerate() {
        assert_eq!(got, want, "the model of seed {seed}");
    }
    let names =
        ["linear/b", "linear/w", "mlp/linear_0/b", "mlp/linear_0/w", "mlp/linear_1/b", "mlp/linear_1/w"];
    assert!(together.iter().all(|model| model.names == names));
}

#[test]
fn two_hundred_models_in_a_parallel_loop_train_as_they_do_one_after_another() {
    in_time(|| {
        let want = alone(0..200);
        // The pool that every rayon program has, and one with more threads than processors.
        let got: Vec<Trained> = (0..200).into_par_iter().map(train).collect();
        assert_same(&got, &want);
        let pool = ThreadPoolBuilder::new().num_threads(8).build().unwrap();
        let got: Vec<Trained> = pool.install(|| (0..200).into_par_iter().map(train).collect());
        assert_same(&got, &want);
    });
}

#[test]
fn models_trained_inside_nested_parallel_loops_keep_apart() {
    in_time(|| {
        let want = alone(0..48);
        let got: Vec<Trained> = (0..6u64)
            .into_par_iter()
            .flat_map_iter(|group| {
                let seeds = group * 8..group * 8 + 8;
                seeds.into_par_iter().map(train).collect::<Vec<_>>()
            })
            .collect();
        assert_same(&got, &want);
    });
}

/// Makes tapes of all kinds and drops them in every order, halfway through and after use.
fn make_and_drop_tapes(round: usize) {
    let x = Tensor::from([1.5f32, -2.0, 0.25]);
    let v = Variable::from_tensor("v", Tensor::from([3.0f32, 1.0, -1.0]));
    let outer = GradientTape::persistent();
    outer.watch(&x);
    let inner = GradientTape::new();
    inner.watch(&x);
    let y = (((&x * &x).unwrap() * &v).unwrap().tanh().unwrap()).sum().unwrap();
    match round % 4 {
        0 => drop(outer),
        1 => drop(inner),
        2 => {
            let dx = inner.gradient(&y, &[&x]).unwrap().remove(0).unwrap().to_dense().unwrap();
            let second = outer.gradient(&dx.sum().unwrap(), &[&x]).unwrap();
            assert!(second[0].is_some());
            drop(outer);
        }
        _ => {
            let lost = GradientTape::new();
            lost.watch(&y);
            drop((&y * 2.0).unwrap());
            drop(lost);
            assert!(inner.gradient(&y, &[&v]).unwrap()[0].is_some());
        }
    }
}

#[test]
fn six_threads_train_beside_six_that_make_and_drop_tapes() {
    in_time(|| {
        let want = alone(0..24);
        let (stop, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
        let got = std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        make_and_drop_tapes(rounds.fetch_add(1, Ordering::Relaxed));
                    }
                });
            }
            let trainers: Vec<_> = (0..6u64).map(|i| scope.spawn(move || alone(i * 4..i * 4 + 4))).collect();
            let results: Vec<_> = trainers.into_iter().map(|trainer| trainer.join()).collect();
            stop.store(true, Ordering::Relaxed);
            results.into_iter().flat_map(Result::unwrap).collect::<Vec<_>>()
        });
        assert_same(&got, &want);
        assert!(rounds.into_inner() > 24);
    });
}

#[test]
fn sixty_four_threads_train_at_once() {
    in_time(|| {
        let want = alone(0..64);
        let got: Vec<Trained> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..64).map(|seed| scope.spawn(move || train(seed))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_same(&got, &want);
    });
}

#[test]
fn threads_that_call_one_model_first_at_the_same_time_share_its_variables() {
    in_time(|| {
        for round in 0..20 {
            let model = MLP::new([8, 3]);
            let x = random::with(&Generator::seed(round), || {
                random::current().normal([4, 5], 0.0, 1.0, DType::F32).unwrap()
            });
            let outputs: Vec<Vec<u32>> = std::thread::scope(|scope| {
                let call = || bits(&model.forward(&x).unwrap());
                let threads: Vec<_> = (0..16).map(|_| scope.spawn(call)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(model.variables().unwrap().len(), 4);
            assert!(outputs.iter().all(|output| *output == outputs[0]));
        }
    });
}

#[test]
fn a_model_moves_between_threads_while_a_tape_holds_what_it_computed() {
    let model = Linear::new(2);
    let x = Tensor::ones([3, 4], DType::F32).unwrap();
    let tape = GradientTape::new();
    let y = model.forward(&x).unwrap().sum().unwrap();
    let parameters = model.trainable_variables().unwrap();
    std::thread::spawn(move || {
        model.forward(&Tensor::ones([1, 4], DType::F32).unwrap()).unwrap();
        drop(model);
    })
    .join()
    .unwrap();
    // d(sum over 3 rows of x w + b) / db = 3, and / dw = 3 as x is 1.
    for gradient in tape.gradient(&y, &parameters).unwrap() {
        assert!(gradient.unwrap().dense().unwrap().to_vec::<f32>().unwrap().iter().all(|&g| g == 3.0));
    }
}
