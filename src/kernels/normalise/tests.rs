use super::super::parallel::with_threads;
use super::*;

/// Numbers spread over `-2..2` around `middle`.
fn numbers(n: usize, seed: usize, middle: f64) -> Vec<f64> {
    (0..n).map(|i| middle + ((i * 7919 + seed * 104_729) % 4001) as f64 / 1000.0 - 2.0).collect()
}

/// Mean and population variance in two passes.
fn moments(x: impl Iterator<Item = f64> + Clone) -> [f64; 2] {
    let n = x.clone().count() as f64;
    let mean = x.clone().sum::<f64>() / n;
    [mean, x.map(|x| (x - mean) * (x - mean)).sum::<f64>() / n]
}

fn column(x: &[f64], columns: usize, c: usize) -> impl Iterator<Item = f64> + Clone {
    x.iter().copied().skip(c).step_by(columns)
}

fn assert_close(y: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(y.len(), expected.len());
    for (i, (y, e)) in y.iter().zip(expected).enumerate() {
        assert!((y - e).abs() <= tolerance * (1.0 + e.abs()), "element {i}: {y}, expected {e}");
    }
}

/// Rows and columns: narrow and wide, few and many, of one piece and of several.
const SHAPES: [(usize, usize); 9] =
    [(1, 1), (5, 3), (1, 300), (7, 256), (2, 40_000), (40_000, 2), (1001, 10), (3000, 33), (301, 517)];

#[test]
fn channel_moments_equal_two_passes_even_far_from_zero() {
    for (rows, channels) in SHAPES {
        for middle in [0.0, 1e6] {
            let x = numbers(rows * channels, 1, middle);
            let (mut mean, mut variance) = (vec![0.0; channels], vec![0.0; channels]);
            channel_moments(&x, &mut mean, &mut variance);
            for c in 0..channels {
                let [m, v] = moments(column(&x, channels, c));
                assert!((mean[c] - m).abs() <= 1e-14 * m.abs() + 1e-14, "mean {} expected {m}", mean[c]);
                assert!((variance[c] - v).abs() <= 1e-8 * v, "variance {} expected {v}", variance[c]);
            }
            let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
            let wide: Vec<f64> = single.iter().map(|&x| f64::from(x)).collect();
            let (mut mean, mut variance) = (vec![0.0; channels], vec![0.0; channels]);
            channel_moments(&single, &mut mean, &mut variance);
            for c in 0..channels {
                let [m, v] = moments(column(&wide, channels, c));
                assert!((f64::from(mean[c]) - m).abs() <= 1e-7 * m.abs() + 1e-9);
                assert!((f64::from(variance[c]) - v).abs() <= 2e-7 * v);
            }
        }
    }
}

#[test]
fn an_outlier_in_the_first_row_costs_little_accuracy() {
    let mut x = numbers(3000, 2, 0.0);
    x[0] = 1e9;
    let (mut mean, mut variance) = ([0.0], [0.0]);
    channel_moments(&x, &mut mean, &mut variance);
    let [m, v] = moments(x.iter().copied());
    // 3000 rows times some units of 2e-16.
    assert_close(&[mean[0] / m, variance[0] / v], &[1.0, 1.0], 1e-11);
}

#[test]
fn batch_norm_and_its_gradients_equal_the_obvious_loops() {
    for (rows, channels) in SHAPES {
        for of_batch in [true, false] {
            let (x, dy) = (numbers(rows * channels, 3, 1.0), numbers(rows * channels, 4, 0.1));
            let (mean, scale) = (numbers(channels, 5, 0.0), numbers(channels, 6, 3.0));
            let (inverse, offset) = (numbers(channels, 7, 2.5), numbers(channels, 8, 0.0));
            let factor: Vec<f64> = scale.iter().zip(&inverse).map(|(s, i)| s * i).collect();
            let mut y = vec![f64::NAN; x.len()];
            normalise_channels(&x, &mean, &factor, &offset, &mut y);
            let h: Vec<f64> =
                (0..x.len()).map(|i| (x[i] - mean[i % channels]) * inverse[i % channels]).collect();
            let expected: Vec<f64> =
                (0..x.len()).map(|i| h[i] * scale[i % channels] + offset[i % channels]).collect();
            assert_close(&y, &expected, 1e-14);

            let (mut dx, mut dscale, mut doffset) =
                (vec![f64::NAN; x.len()], vec![f64::NAN; channels], vec![f64::NAN; channels]);
            let forward = Channels { mean: &mean, inverse: &inverse, scale: &scale, of_batch };
            channel_gradients(forward, &x, &dy, &mut dx, &mut dscale, &mut doffset);
            let sums = |f: &dyn Fn(usize) -> f64| {
                let terms: Vec<f64> = (0..x.len()).map(f).collect();
                (0..channels).map(|c| column(&terms, channels, c).sum::<f64>()).collect::<Vec<_>>()
            };
            let (all, along) = (sums(&|i| dy[i]), sums(&|i| dy[i] * h[i]));
            assert_close(&doffset, &all, 1e-12);
            assert_close(&dscale, &along, 1e-12);
            let n = rows as f64;
            let expected: Vec<f64> = (0..x.len())
                .map(|i| {
                    let c = i % channels;
                    let through = if of_batch { all[c] / n + h[i] * along[c] / n } else { 0.0 };
                    factor[c] * (dy[i] - through)
                })
                .collect();
            assert_close(&dx, &expected, 1e-12);
        }
    }
}

#[test]
fn layer_norm_and_its_gradients_equal_the_obvious_loops() {
    for (rows, n) in SHAPES {
        let (x, dy) = (numbers(rows * n, 9, 1.0), numbers(rows * n, 10, 0.1));
        let (scale, offset) = (numbers(n, 11, 3.0), numbers(n, 12, 0.0));
        let mut y = vec![f64::NAN; x.len()];
        let (mut mean, mut inverse) = (vec![f64::NAN; rows], vec![f64::NAN; rows]);
        normalise_rows(&x, 0.01, &scale, &offset, &mut y, &mut mean, &mut inverse);
        let (mut h, mut expected_dx) = (Vec::new(), Vec::new());
        for (x, dy) in x.chunks(n).zip(dy.chunks(n)) {
            let [m, v] = moments(x.iter().copied());
            let inverse = 1.0 / (v + 0.01).sqrt();
            let row: Vec<f64> = x.iter().map(|x| (x - m) * inverse).collect();
            let g: Vec<f64> = dy.iter().zip(&scale).map(|(dy, s)| dy * s).collect();
            let all = g.iter().sum::<f64>() / n as f64;
            let along = g.iter().zip(&row).map(|(g, h)| g * h).sum::<f64>() / n as f64;
            expected_dx.extend(g.iter().zip(&row).map(|(g, h)| inverse * (g - all - h * along)));
            h.extend(row);
        }
        let expected: Vec<f64> = (0..x.len()).map(|i| h[i] * scale[i % n] + offset[i % n]).collect();
        assert_close(&y, &expected, 1e-12);
        let (mut dx, mut dscale, mut doffset) =
            (vec![f64::NAN; x.len()], vec![f64::NAN; n], vec![f64::NAN; n]);
        let forward = Rows { mean: &mean, inverse: &inverse, scale: &scale };
        row_gradients(forward, &x, &dy, &mut dx, &mut dscale, &mut doffset);
        assert_close(&dx, &expected_dx, 1e-12);
        let product: Vec<f64> = dy.iter().zip(&h).map(|(dy, h)| dy * h).collect();
        let sums = |terms: &[f64]| (0..n).map(|c| column(terms, n, c).sum::<f64>()).collect::<Vec<_>>();
        assert_close(&dscale, &sums(&product), 1e-12);
        assert_close(&doffset, &sums(&dy), 1e-12);
    }
}

/// Batches of small and large items, in one group, some groups and as many groups as channels.
const GROUPS: [Groups; 6] = [
    Groups { batch: 3, rows: 4, channels: 6, groups: 2 },
    Groups { batch: 2, rows: 1, channels: 4, groups: 1 },
    Groups { batch: 1, rows: 5, channels: 3, groups: 3 },
    Groups { batch: 70, rows: 36, channels: 32, groups: 8 },
    Groups { batch: 1, rows: 90_000, channels: 12, groups: 4 },
    Groups { batch: 2, rows: 2, channels: 1100, groups: 2 },
];

#[test]
fn group_norm_and_its_gradients_equal_the_obvious_loops() {
    for of in GROUPS {
        let Groups { batch, rows, channels, groups } = of;
        let (item, width) = (rows * channels, channels / groups);
        let (x, dy) = (numbers(batch * item, 15, 1.0), numbers(batch * item, 16, 0.1));
        let (scale, offset) = (numbers(channels, 17, 3.0), numbers(channels, 18, 0.0));
        let mut y = vec![f64::NAN; x.len()];
        let (mut mean, mut inverse) = (vec![f64::NAN; batch * groups], vec![f64::NAN; batch * groups]);
        normalise_groups(of, &x, 0.01, [&scale, &offset], &mut y, &mut mean, &mut inverse);
        let (mut h, mut expected, mut expected_dx) = (x.clone(), x.clone(), x.clone());
        for group in 0..batch * groups {
            let (first, low) = (group / groups * item, group % groups * width);
            let places: Vec<usize> =
                (0..rows * width).map(|i| first + i / width * channels + low + i % width).collect();
            let [m, v] = moments(places.iter().map(|&at| x[at]));
            let inverse = 1.0 / (v + 0.01).sqrt();
            places.iter().for_each(|&at| h[at] = (x[at] - m) * inverse);
            let g = |at: usize| dy[at] * scale[at % channels];
            let n = places.len() as f64;
            let all = places.iter().map(|&at| g(at)).sum::<f64>() / n;
            let along = places.iter().map(|&at| g(at) * h[at]).sum::<f64>() / n;
            for &at in &places {
                expected[at] = h[at] * scale[at % channels] + offset[at % channels];
                expected_dx[at] = inverse * (g(at) - all - h[at] * along);
            }
        }
        assert_close(&y, &expected, 1e-11);
        let (mut dx, mut dscale, mut doffset) =
            (vec![f64::NAN; x.len()], vec![f64::NAN; channels], vec![f64::NAN; channels]);
        group_gradients(of, [&mean, &inverse, &scale], [&x, &dy], &mut dx, &mut dscale, &mut doffset);
        assert_close(&dx, &expected_dx, 1e-11);
        let product: Vec<f64> = dy.iter().zip(&h).map(|(dy, h)| dy * h).collect();
        let sums = |v: &[f64]| (0..channels).map(|c| column(v, channels, c).sum::<f64>()).collect::<Vec<_>>();
        assert_close(&dscale, &sums(&product), 1e-11);
        assert_close(&doffset, &sums(&dy), 1e-11);
    }
}

#[test]
fn a_group_far_from_zero_keeps_its_digits() {
    // Two values 1e6 and 1e6 + 1 in every group: they become -1 and 1, as the variance is 1/4.
    let of = Groups { batch: 1, rows: 100, channels: 4, groups: 2 };
    let x: Vec<f32> = (0..400).map(|i| 1e6 + (i % 2) as f32).collect();
    let (mut y, mut mean, mut inverse) = (vec![0.0; 400], [0.0; 2], [0.0; 2]);
    normalise_groups(of, &x, 0.0, [&[1.0; 4], &[0.0; 4]], &mut y, &mut mean, &mut inverse);
    assert_eq!(inverse, [2.0; 2]);
    // The mean 1e6 + 1/2 is a number of f32.
    assert!(y.chunks(2).all(|pair| pair == [-1.0, 1.0]));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (rows, n) = (900, 200);
    let x: Vec<f32> = numbers(rows * n, 13, 0.3).into_iter().map(|x| x as f32).collect();
    let scale: Vec<f32> = numbers(n, 14, 3.0).into_iter().map(|x| x as f32).collect();
    let run = |threads| {
        with_threads(threads, || {
            let (mut mean, mut variance) = (vec![0.0; n], vec![0.0; n]);
            channel_moments(&x, &mut mean, &mut variance);
            let (mut dx, mut dscale, mut doffset) = (vec![0.0; x.len()], vec![0.0; n], vec![0.0; n]);
            let forward = Channels { mean: &mean, inverse: &variance, scale: &scale, of_batch: true };
            channel_gradients(forward, &x, &x, &mut dx, &mut dscale, &mut doffset);
            let (mut row_mean, mut row_inverse, mut y) =
                (vec![0.0; rows], vec![0.0; rows], vec![0.0; x.len()]);
            normalise_rows(&x, 0.1, &scale, &scale, &mut y, &mut row_mean, &mut row_inverse);
            let (mut rdx, mut rdscale, mut rdoffset) = (vec![0.0; x.len()], vec![0.0; n], vec![0.0; n]);
            let forward = Rows { mean: &row_mean, inverse: &row_inverse, scale: &scale };
            row_gradients(forward, &x, &y, &mut rdx, &mut rdscale, &mut rdoffset);
            let of = Groups { batch: 9, rows: 100, channels: n, groups: 5 };
            let (mut mean_of, mut inverse_of, mut z) = (vec![0.0; 45], vec![0.0; 45], vec![0.0; x.len()]);
            normalise_groups(of, &x, 0.1, [&scale, &scale], &mut z, &mut mean_of, &mut inverse_of);
            let (mut gdx, mut gdscale, mut gdoffset) = (vec![0.0; x.len()], vec![0.0; n], vec![0.0; n]);
            let known = [&mean_of[..], &inverse_of, &scale];
            group_gradients(of, known, [&x, &z], &mut gdx, &mut gdscale, &mut gdoffset);
            let groups = [mean_of, inverse_of, z, gdx, gdscale, gdoffset];
            ([mean, variance, dx, dscale, doffset, y, rdx, rdscale, rdoffset], groups)
        })
    };
    assert_eq!(run(1), run(8));
}

#[test]
fn an_empty_batch_has_no_statistics_and_zero_gradients() {
    let (mut mean, mut variance) = ([0.0_f32; 3], [0.0; 3]);
    channel_moments(&[], &mut mean, &mut variance);
    assert!(mean.iter().chain(&variance).all(|x| x.is_nan()));
    let (mut dscale, mut doffset) = ([7.0; 3], [7.0; 3]);
    let forward = Channels { mean: &[0.0; 3], inverse: &[1.0; 3], scale: &[1.0; 3], of_batch: true };
    channel_gradients(forward, &[], &[], &mut [], &mut dscale, &mut doffset);
    assert_eq!((dscale, doffset), ([0.0; 3], [0.0; 3]));
    normalise_channels(&[], &[0.0_f32; 3], &[1.0; 3], &[1.0; 3], &mut []);
    normalise_rows(&[], 0.1_f32, &[1.0; 3], &[1.0; 3], &mut [], &mut [], &mut []);
    normalise_rows(&[], 0.1_f32, &[], &[], &mut [], &mut [0.0; 0], &mut []);
}
