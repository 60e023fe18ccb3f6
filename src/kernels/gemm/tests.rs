use super::*;
use crate::kernels::parallel::with_threads;
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// A matrix with strides and an offset drawn at random, in a slice of its own.
struct Owned<T> {
    data: Vec<T>,
    offset: usize,
    shape: (usize, usize),
    strides: (isize, isize),
}

impl<T: Real> Owned<T> {
    fn random(shape: (usize, usize), rng: &mut StdRng) -> Self {
        let (rows, cols) = (shape.0.max(1) as isize, shape.1.max(1) as isize);
        let strides = match rng.random_range(0..7) {
            0 => (cols, 1),
            1 => (1, rows),
            2 => (cols + 3, 1),
            3 => (-cols, 1),
            4 => (2 * cols, -2),
            5 => (0, 1),
            _ => (1, 0),
        };
        let low = ((rows - 1) * strides.0).min(0) + ((cols - 1) * strides.1).min(0);
        let high = ((rows - 1) * strides.0).max(0) + ((cols - 1) * strides.1).max(0);
        let offset = (5 - low) as usize;
        let data = (0..offset + high as usize + 3).map(|_| number(rng)).collect();
        Self { data, offset, shape, strides }
    }

    fn view(&self) -> Matrix<'_, T> {
        Matrix::new(&self.data, self.offset, self.shape, self.strides)
    }

    fn get(&self, i: usize, j: usize) -> f64 {
        let at = self.offset as isize + i as isize * self.strides.0 + j as isize * self.strides.1;
        self.data[at as usize].to_f64().unwrap()
    }
}

fn number<T: Real>(rng: &mut StdRng) -> T {
    T::from(rng.random_range(-1.0..1.0)).unwrap()
}

fn check<T: Real>((m, k, n): (usize, usize, usize), rng: &mut StdRng) {
    let (a, b) = (Owned::<T>::random((m, k), rng), Owned::<T>::random((k, n), rng));
    let before: Vec<T> = (0..m * n).map(|_| number(rng)).collect();
    let bias: Vec<T> = (0..n).map(|_| number(rng)).collect();
    for (accumulate, bias) in [(false, None), (true, None), (false, Some(&bias[..]))] {
        let run = |threads| {
            let mut c = before.clone();
            with_threads(threads, || gemm(a.view(), b.view(), &mut c, accumulate, bias));
            c
        };
        let c = run(1);
        assert_eq!(c, run(2), "bits on one and two threads, {m} x {k} x {n}");
        for i in 0..m {
            for j in 0..n {
                let mut sum = bias.map_or(0.0, |bias| bias[j].to_f64().unwrap());
                if accumulate {
                    sum += before[i * n + j].to_f64().unwrap();
                }
                let terms = || (0..k).map(|k| a.get(i, k) * b.get(k, j));
                let size = sum.abs() + terms().map(f64::abs).sum::<f64>();
                sum += terms().sum::<f64>();
                let bound = T::epsilon().to_f64().unwrap() * (k as f64 + 2.0) * size;
                let error = (c[i * n + j].to_f64().unwrap() - sum).abs();
                assert!(error <= bound, "{m} x {k} x {n} at {i}, {j}: {error} over {bound}");
            }
        }
    }
}

#[test]
fn products_of_any_size_and_layout_match_the_sum() {
    let mut rng = StdRng::seed_from_u64(1);
    for round in 0..300 {
        let mut size = || {
            let most = [2, 5, 20, 70][rng.random_range(0..4)];
            rng.random_range(0..=most)
        };
        let shape = (size(), size(), size());
        if round % 2 == 0 { check::<f32>(shape, &mut rng) } else { check::<f64>(shape, &mut rng) }
    }
}

#[test]
fn products_large_enough_for_threads_match_the_sum() {
    let mut rng = StdRng::seed_from_u64(2);
    for shape in [
        (130, 300, 140),
        (500, 40, 70),
        (70, 40, 500),
        (3, 2500, 5),
        (1, 700, 900),
        (900, 700, 1),
        (30, 4500, 11),
    ] {
        for _ in 0..4 {
            check::<f32>(shape, &mut rng);
            check::<f64>(shape, &mut rng);
        }
    }
}

#[test]
fn an_empty_inner_dim_gives_the_start() {
    let (a, b) = (Matrix::row_major(&[], 2, 0), Matrix::row_major(&[], 0, 3));
    let mut c = [7.0; 6];
    gemm::<f32>(a, b, &mut c, true, None);
    assert_eq!(c, [7.0; 6]);
    gemm(a, b, &mut c, false, Some(&[1.0, 2.0, 3.0]));
    assert_eq!(c, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    gemm(a, b, &mut c, false, None);
    assert_eq!(c, [0.0; 6]);
}

#[test]
fn a_row_has_the_same_bits_alone_and_in_a_batch() {
    let mut rng = StdRng::seed_from_u64(3);
    let x: Vec<f32> = (0..37 * 300).map(|_| number(&mut rng)).collect();
    let w: Vec<f32> = (0..300 * 50).map(|_| number(&mut rng)).collect();
    let w = Matrix::row_major(&w, 300, 50);
    let (mut all, mut one) = (vec![0.0; 37 * 50], vec![0.0; 50]);
    gemm(Matrix::row_major(&x, 37, 300), w, &mut all, false, None);
    for (x, all) in x.chunks(300).zip(all.chunks(50)) {
        gemm(Matrix::row_major(x, 1, 300), w, &mut one, false, None);
        assert_eq!(one, all);
    }
}

#[test]
fn batches_take_each_matrix_from_its_place() {
    let mut rng = StdRng::seed_from_u64(4);
    for (batch, m, k, n) in [(0, 2, 3, 4), (5, 2, 3, 4), (7, 1, 0, 2), (40, 30, 20, 25), (3, 200, 150, 90)] {
        let a: Vec<f32> = (0..batch * m * k).map(|_| number(&mut rng)).collect();
        let b: Vec<f32> = (0..k * n).map(|_| number(&mut rng)).collect();
        let a = |i: usize| Matrix::row_major(&a[i * m * k..(i + 1) * m * k], m, k);
        let b = Matrix::row_major(&b, k, n);
        let (mut c, mut expected) = (vec![0.5; batch * m * n], vec![0.5; m * n]);
        gemm_batched(batch, a, |_| b, &mut c, false);
        for (i, c) in c.chunks_exact_mut(m * n).enumerate() {
            gemm(a(i), b, &mut expected, false, None);
            assert_eq!(c, expected);
            gemm(a(i), b, &mut expected, true, None);
        }
        let mut twice = c.clone();
        gemm_batched(batch, a, |_| b, &mut twice, true);
        for (i, c) in c.chunks_exact_mut(m * n).enumerate() {
            gemm(a(i), b, c, true, None);
        }
        assert_eq!(twice, c);
    }
}

#[test]
#[should_panic(expected = "leaves its slice")]
fn a_matrix_outside_of_its_slice_is_refused() {
    Matrix::new(&[0.0; 5], 0, (2, 3), (3, 1));
}
