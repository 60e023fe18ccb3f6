use super::*;
use crate::kernels::parallel::with_threads;
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// Positions of `x` under each result of one item, by the definition.
fn windows(g: &PoolGeometry) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    for n in 0..g.y_positions() {
        let o = [n / g.output[2] / g.output[1], n / g.output[2] % g.output[1], n % g.output[2]];
        let inside = |d: usize, i: usize| {
            let from = (o[d] * g.stride[d]) as isize - g.before[d];
            (from..from + g.window[d] as isize).contains(&(i as isize))
        };
        let place = |at: usize| [at / g.input[2] / g.input[1], at / g.input[2] % g.input[1], at % g.input[2]];
        all.push((0..g.x_positions()).filter(|&at| (0..3).all(|d| inside(d, place(at)[d]))).collect());
    }
    all
}

fn check<T: Real>(g: &PoolGeometry, rng: &mut StdRng) {
    let (inputs, outputs, channels) = (g.x_positions(), g.y_positions(), g.channels);
    // Few different values, so that there are ties.
    let x: Vec<T> =
        (0..g.batch * inputs * channels).map(|_| T::from(rng.random_range(-3..3)).unwrap()).collect();
    let dy: Vec<T> =
        (0..g.batch * outputs * channels).map(|_| T::from(rng.random_range(-9..9)).unwrap()).collect();
    let (mut largest, mut places) = (vec![T::neg_infinity(); dy.len()], vec![u32::MAX; dy.len()]);
    let (mut mean, mut selected) = (vec![T::zero(); dy.len()], vec![T::zero(); dy.len()]);
    let (mut dx_max, mut dx_mean) = (vec![T::zero(); x.len()], vec![T::zero(); x.len()]);
    for b in 0..g.batch {
        for (o, window) in windows(g).iter().enumerate() {
            for c in 0..channels {
                let (n, x_at) =
                    ((b * outputs + o) * channels + c, |at: usize| (b * inputs + at) * channels + c);
                let count = T::from(window.len().max(1)).unwrap();
                for &at in window {
                    if x[x_at(at)] > largest[n] {
                        (largest[n], places[n]) = (x[x_at(at)], at as u32);
                    }
                    mean[n] = mean[n] + x[x_at(at)];
                    dx_mean[x_at(at)] = dx_mean[x_at(at)] + dy[n] / count;
                }
                mean[n] = mean[n] / count;
                if places[n] != u32::MAX {
                    let at = x_at(places[n] as usize);
                    dx_max[at] = dx_max[at] + dy[n];
                    selected[n] = x[at];
                }
            }
        }
    }
    for threads in [1, 2] {
        with_threads(threads, || {
            let (mut y, mut argmax) = (vec![T::nan(); dy.len()], vec![7; dy.len()]);
            max_pool(g, &x, &mut y, &mut argmax);
            assert_eq!((&y, &argmax), (&largest, &places), "{g:?}");
            max_pool_select(g, &x, &argmax, &mut y);
            assert_eq!(y, selected, "{g:?}");
            average_pool(g, &x, &mut y);
            assert_eq!(y, mean, "{g:?}");
            let mut dx = vec![T::nan(); x.len()];
            max_pool_gradient(g, &dy, &argmax, &mut dx);
            assert_eq!(dx, dx_max, "{g:?}");
            average_pool_gradient(g, &dy, &mut dx);
            assert_eq!(dx, dx_mean, "{g:?}");
        });
    }
}

#[test]
fn random_geometries_match_the_definition() {
    let mut rng = StdRng::seed_from_u64(1);
    for round in 0..300 {
        let mut g = PoolGeometry {
            batch: rng.random_range(0..4),
            input: [1; 3],
            channels: [1, 2, 3, 16, 35, 70][rng.random_range(0..6)],
            window: [1; 3],
            output: [1; 3],
            stride: [1; 3],
            before: [0; 3],
        };
        for d in rng.random_range(0..3)..3 {
            g.input[d] = rng.random_range(1..9);
            g.window[d] = rng.random_range(1..5);
            g.stride[d] = rng.random_range(1..4);
            g.before[d] = rng.random_range(-1..=g.window[d] as i64) as isize;
            g.output[d] = rng.random_range(0..6);
        }
        if round % 2 == 0 { check::<f32>(&g, &mut rng) } else { check::<f64>(&g, &mut rng) }
    }
}

#[test]
fn images_large_enough_for_threads_match_the_definition() {
    let mut g = PoolGeometry {
        batch: 2,
        input: [1, 40, 30],
        channels: 40,
        window: [1, 3, 3],
        output: [1, 20, 15],
        stride: [1, 2, 2],
        before: [0, 0, 1],
    };
    check::<f32>(&g, &mut StdRng::seed_from_u64(2));
    g.batch = 1;
    check::<f64>(&g, &mut StdRng::seed_from_u64(3));
}

#[test]
fn a_nan_is_the_largest() {
    let g = PoolGeometry {
        batch: 1,
        input: [1, 1, 3],
        channels: 1,
        window: [1, 1, 3],
        output: [1, 1, 1],
        stride: [1; 3],
        before: [0; 3],
    };
    let (mut y, mut argmax) = ([0.0], [0]);
    max_pool(&g, &[1.0_f32, f32::NAN, 2.0], &mut y, &mut argmax);
    assert!(y[0].is_nan());
    assert_eq!(argmax, [1]);
    max_pool(&g, &[f32::NEG_INFINITY; 3], &mut y, &mut argmax);
    assert_eq!((y, argmax), ([f32::NEG_INFINITY], [0]));
}

#[test]
fn windows_in_the_padding_alone_have_no_largest_value_and_mean_zero() {
    let g = PoolGeometry {
        batch: 1,
        input: [1, 1, 0],
        channels: 18,
        window: [1, 1, 2],
        output: [1, 1, 1],
        stride: [1; 3],
        before: [0, 0, 1],
    };
    let (mut y, mut argmax) = ([0.0_f32; 18], [0; 18]);
    max_pool(&g, &[], &mut y, &mut argmax);
    assert_eq!((y, argmax), ([f32::NEG_INFINITY; 18], [u32::MAX; 18]));
    average_pool(&g, &[], &mut y);
    assert_eq!(y, [0.0; 18]);
}
