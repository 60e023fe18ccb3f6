use super::*;
use crate::kernels::parallel::with_threads;
use rand::{RngExt, SeedableRng, rngs::StdRng};

fn numbers<T: Real>(len: usize, rng: &mut StdRng) -> Vec<T> {
    (0..len).map(|_| T::from(rng.random_range(-1.0..1.0)).unwrap()).collect()
}

/// Calls `f(index of x, of w, of y)`, each without channels, for every product in the formula of `ConvGeometry`.
fn each_product(g: &ConvGeometry, mut f: impl FnMut(usize, usize, usize)) {
    let flat = |at: [usize; 3], size: [usize; 3]| (at[0] * size[1] + at[1]) * size[2] + at[2];
    let places = |size: [usize; 3]| {
        (0..size[0]).flat_map(move |i| (0..size[1]).flat_map(move |j| (0..size[2]).map(move |k| [i, j, k])))
    };
    for b in 0..g.batch {
        for o in places(g.output) {
            for k in places(g.kernel) {
                let i = [0, 1, 2].map(|d| (o[d] * g.stride[d] + k[d] * g.rate[d]) as isize - g.before[d]);
                if (0..3).all(|d| (0..g.input[d] as isize).contains(&i[d])) {
                    let x = b * g.input.iter().product::<usize>() + flat(i.map(|i| i as usize), g.input);
                    f(x, flat(k, g.kernel), b * g.output.iter().product::<usize>() + flat(o, g.output));
                }
            }
        }
    }
}

fn assert_close<T: Real>(what: &str, g: &ConvGeometry, actual: &[T], expected: &[(f64, f64)]) {
    assert_eq!(actual.len(), expected.len());
    for (i, (actual, (sum, size))) in actual.iter().zip(expected).enumerate() {
        let error = (actual.to_f64().unwrap() - sum).abs();
        let bound = 1e-30 + T::epsilon().to_f64().unwrap() * size * 300.0;
        assert!(error <= bound, "{what} {i}: {actual:?} for {sum}, error over {bound}, {g:?}");
    }
}

fn check<T: Real>(g: &ConvGeometry, rng: &mut StdRng) {
    let (inputs, outputs) = (g.in_channels, g.out_channels);
    let x: Vec<T> = numbers(g.x_positions() * inputs, rng);
    let w: Vec<T> = numbers(g.taps() * inputs * outputs, rng);
    let bias: Vec<T> = numbers(outputs, rng);
    let dy: Vec<T> = numbers(g.y_positions() * outputs, rng);
    // Each expected number comes with the sum of the absolute values of its terms, which bounds the rounding.
    let value = |a: T| a.to_f64().unwrap();
    let add = |sum: &mut (f64, f64), term: f64| *sum = (sum.0 + term, sum.1 + term.abs());
    let mut y: Vec<_> = (0..dy.len()).map(|i| (value(bias[i % outputs]), 1.0)).collect();
    let (mut dx, mut dw, mut db) =
        (vec![(0.0, 0.0); x.len()], vec![(0.0, 0.0); w.len()], vec![(0.0, 0.0); outputs]);
    each_product(g, |at_x, at_w, at_y| {
        for ci in 0..inputs {
            for co in 0..outputs {
                let (i, k, o) =
                    (at_x * inputs + ci, (at_w * inputs + ci) * outputs + co, at_y * outputs + co);
                add(&mut y[o], value(x[i]) * value(w[k]));
                add(&mut dx[i], value(dy[o]) * value(w[k]));
                add(&mut dw[k], value(x[i]) * value(dy[o]));
            }
        }
    });
    dy.iter().enumerate().for_each(|(i, &dy)| add(&mut db[i % outputs], value(dy)));

    let run = |threads| {
        with_threads(threads, || {
            // What buffers hold beforehand must not matter.
            let buffer = |len| vec![T::nan(); len];
            let (mut y, mut plain, mut dx) = (buffer(dy.len()), buffer(dy.len()), buffer(x.len()));
            let (mut dw, mut alone, mut db) = (buffer(w.len()), buffer(w.len()), buffer(outputs));
            conv_forward(g, &x, &w, Some(&bias), &mut y);
            conv_forward(g, &x, &w, None, &mut plain);
            conv_input_gradient(g, &dy, &w, &mut dx);
            conv_filter_gradient(g, &x, &dy, &mut dw, Some(&mut db));
            conv_filter_gradient(g, &x, &dy, &mut alone, None);
            [y, plain, dx, dw, alone, db]
        })
    };
    let results = run(1);
    assert_eq!(results, run(2), "bits on one and two threads, {g:?}");
    let without_bias: Vec<_> =
        y.iter().enumerate().map(|(i, &(sum, size))| (sum - value(bias[i % outputs]), size)).collect();
    let expected = [&y, &without_bias, &dx, &dw, &dw, &db];
    let names = ["y", "y without bias", "dx", "dw", "dw without bias", "db"];
    for ((name, actual), expected) in names.iter().zip(&results).zip(expected) {
        assert_close(name, g, actual, expected);
    }
}

#[test]
fn random_geometries_match_the_formula() {
    let mut rng = StdRng::seed_from_u64(1);
    for round in 0..400 {
        let dims = rng.random_range(1..=3);
        let leading = rng.random_range(0..2) == 0;
        let mut g = ConvGeometry {
            batch: [0, 1, 2, 3][rng.random_range(0..4)],
            input: [1; 3],
            in_channels: [1, 1, 2, 3, 5, 17][rng.random_range(0..6)],
            kernel: [1; 3],
            out_channels: [1, 2, 3, 4, 8, 20, 35][rng.random_range(0..7)],
            output: [1; 3],
            stride: [1; 3],
            rate: [1; 3],
            before: [0; 3],
        };
        for d in 0..dims {
            // One and two dims may be given as the first or as the last axes.
            let d = if leading { d } else { 2 - d };
            g.input[d] = rng.random_range(1..=8);
            g.kernel[d] = rng.random_range(1..=5);
            g.stride[d] = [1, 1, 2, 3][rng.random_range(0..4)];
            g.rate[d] = [1, 1, 2, 3][rng.random_range(0..4)];
            let reach = (g.kernel[d] - 1) * g.rate[d] + 1;
            let after = rng.random_range(0..=reach as i64) as isize;
            g.before[d] = rng.random_range(-1..=reach as i64) as isize;
            // Any number of outputs is legal; those that reach past all padding see zeros.
            let room = g.input[d] as isize + g.before[d] + after - reach as isize;
            g.output[d] = if room < 0 { rng.random_range(0..2) } else { room as usize / g.stride[d] + 1 };
        }
        if round % 3 == 0 { check::<f64>(&g, &mut rng) } else { check::<f32>(&g, &mut rng) }
    }
}

fn plane(
    batch: usize,
    size: usize,
    inputs: usize,
    kernel: usize,
    outputs: usize,
    stride: usize,
) -> ConvGeometry {
    let output = size.div_ceil(stride);
    let total = ((output - 1) * stride + kernel).saturating_sub(size);
    ConvGeometry {
        batch,
        input: [1, size, size],
        in_channels: inputs,
        kernel: [1, kernel, kernel],
        out_channels: outputs,
        output: [1, output, output],
        stride: [1, stride, stride],
        rate: [1; 3],
        before: [0, (total / 2) as isize, (total / 2) as isize],
    }
}

#[test]
fn images_large_enough_for_many_tiles_match_the_formula() {
    let mut rng = StdRng::seed_from_u64(2);
    check::<f32>(&plane(3, 28, 1, 3, 32, 1), &mut rng);
    check::<f32>(&plane(2, 28, 32, 3, 32, 1), &mut rng);
    check::<f64>(&plane(1, 30, 16, 3, 24, 2), &mut rng);
    check::<f32>(&plane(1, 9, 300, 3, 70, 2), &mut rng);
    check::<f32>(&plane(2, 64, 3, 7, 16, 2), &mut rng);
    check::<f32>(&plane(4, 14, 24, 1, 40, 1), &mut rng);
    check::<f32>(&plane(4, 14, 24, 1, 40, 2), &mut rng);
}

#[test]
fn one_long_axis_is_cut_into_tiles() {
    let mut rng = StdRng::seed_from_u64(3);
    for rate in [1, 2] {
        let g = ConvGeometry {
            batch: 2,
            input: [3000, 1, 1],
            in_channels: 4,
            kernel: [3, 1, 1],
            out_channels: 6,
            output: [3000, 1, 1],
            stride: [1; 3],
            rate: [rate, 1, 1],
            before: [2 * rate as isize, 0, 0],
        };
        check::<f32>(&g, &mut rng);
    }
}

#[test]
fn volumes_match_the_formula() {
    let mut rng = StdRng::seed_from_u64(4);
    let g = ConvGeometry {
        batch: 1,
        input: [9, 17, 12],
        in_channels: 10,
        kernel: [3, 2, 3],
        out_channels: 18,
        output: [9, 9, 12],
        stride: [1, 2, 1],
        rate: [1; 3],
        before: [1, 0, 1],
    };
    check::<f32>(&g, &mut rng);
}

#[test]
#[should_panic(expected = "elements of x")]
fn a_wrong_length_is_refused() {
    conv_forward(&plane(1, 4, 1, 3, 1, 1), &[0.0; 15], &[0.0; 9], None, &mut [0.0; 16]);
}
