use super::super::layout::tests::{elements, layouts};
use super::super::parallel::with_threads;
use super::*;

/// The elements that each result is made of, by the definition.
fn groups<T: Copy>(x: View<T>, reduced: &[bool]) -> Vec<Vec<T>> {
    let kept = |d: usize| if reduced[d] { 1 } else { x.shape()[d] };
    let mut groups = vec![Vec::new(); (0..reduced.len()).map(kept).product()];
    for (flat, element) in elements(x).into_iter().enumerate() {
        let (mut rest, mut result, mut step) = (flat, 0, 1);
        for d in (0..reduced.len()).rev() {
            let i = rest % x.shape()[d];
            rest /= x.shape()[d];
            result += if reduced[d] { 0 } else { i * step };
            step *= kept(d);
        }
        groups[result].push(element);
    }
    groups
}

/// Every set of dims, for few dims; some, for many.
fn masks(rank: usize) -> impl Iterator<Item = Vec<bool>> {
    let step = if rank < 6 { 1 } else { 7 };
    (0..1_usize << rank).step_by(step).map(move |bits| (0..rank).map(|d| bits >> d & 1 == 1).collect())
}

fn check<T, U>(
    data: &[T],
    op: impl Fn(View<T>, &[bool], &mut [U]),
    expected: impl Fn(&[T]) -> U,
    close: impl Fn(U, U) -> bool,
) where
    T: Copy,
    U: Copy + std::fmt::Debug,
{
    for (offset, shape, strides) in layouts() {
        let x = View::new(data, offset, &shape, &strides);
        for reduced in masks(shape.len()) {
            let groups = groups(x, &reduced);
            let mut y = vec![expected(&data[1..2]); groups.len()];
            op(x, &reduced, &mut y);
            for (y, group) in y.iter().zip(&groups) {
                let e = expected(group);
                assert!(close(*y, e), "{y:?}, expected {e:?}: {shape:?} {strides:?} over {reduced:?}");
            }
        }
    }
}

fn floats() -> Vec<f32> {
    (0..10_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 4e6 - 2.0).collect()
}

fn integers() -> Vec<i32> {
    (0..10_000_i32).map(|i| i.wrapping_mul(0x9E37_79B1_u32.cast_signed())).collect()
}

#[test]
fn sums_and_means_equal_the_obvious_loops_on_every_layout_and_set_of_dims() {
    let f64s = |x: &[f32]| x.iter().map(|&x| f64::from(x)).sum::<f64>();
    let close =
        |y: f32, e: f32| y == e || (y - e).abs() <= 1.2e-7 * e.abs() + 1e-9 || (y.is_nan() && e.is_nan());
    check(&floats(), sum, |x| f64s(x) as f32, close);
    check(&floats(), mean, |x| (f64s(x) / x.len() as f64) as f32, close);
    let squares = |x: &[f32]| x.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>() as f32;
    check(&floats(), sum_squares, squares, close);
    check(&integers(), sum, |x| x.iter().fold(0, |a: i32, &b| a.wrapping_add(b)), |y, e| y == e);
    check(&integers(), product, |x| x.iter().fold(1, |a: i32, &b| a.wrapping_mul(b)), |y, e| y == e);
}

#[test]
fn extremes_equal_the_obvious_loops_on_every_layout_and_set_of_dims() {
    let same = |y: f32, e: f32| y == e || (y.is_nan() && e.is_nan());
    let mut data = floats();
    let with_nan = |pick: fn(f32, f32) -> f32, start: f32| {
        move |x: &[f32]| {
            x.iter().fold(start, |a, &b| if a.is_nan() || b.is_nan() { f32::NAN } else { pick(a, b) })
        }
    };
    for nans in [0, 3] {
        data.iter_mut().skip(7).step_by(1009).take(nans).for_each(|x| *x = f32::NAN);
        check(&data, max, with_nan(f32::max, f32::NEG_INFINITY), same);
        check(&data, min, with_nan(f32::min, f32::INFINITY), same);
    }
    check(&integers(), max, |x| x.iter().copied().max().unwrap_or(i32::MIN), |y, e| y == e);
    check(&integers(), min, |x| x.iter().copied().min().unwrap_or(i32::MAX), |y, e| y == e);
    let flags: Vec<bool> = integers().iter().map(|i| i & 7 == 0).collect();
    check(&flags, any, |x| x.contains(&true), |y, e| y == e);
    check(&flags, all, |x| !x.contains(&false), |y, e| y == e);
}

#[test]
fn positions_are_those_of_the_first_best_element_along_every_axis() {
    // Few distinct values, so that there are ties, and a NaN now and then.
    for nan in [i32::MAX, 997] {
        let data: Vec<f32> =
            (0..10_000).map(|i| if i % nan == nan - 1 { f32::NAN } else { (i * 7919 % 23) as f32 }).collect();
        for (offset, shape, strides) in layouts() {
            let x = View::new(&data, offset, &shape, &strides);
            for axis in (0..shape.len()).filter(|_| x.len() > 0) {
                let reduced: Vec<bool> = (0..shape.len()).map(|d| d == axis).collect();
                let groups = groups(x, &reduced);
                let (mut largest, mut smallest) = (vec![-7; groups.len()], vec![-7; groups.len()]);
                argmax(x, axis, &mut largest);
                argmin(x, axis, &mut smallest);
                for (i, group) in groups.iter().enumerate() {
                    let first = |better: fn(f32, f32) -> bool| {
                        let mut best = 0;
                        for (i, &x) in group.iter().enumerate() {
                            if better(x, group[best]) || (group[best].is_nan() && !x.is_nan()) {
                                best = i;
                            }
                        }
                        best as i64
                    };
                    assert_eq!(largest[i], first(|a, b| a > b), "{shape:?} {strides:?} along {axis}");
                    assert_eq!(smallest[i], first(|a, b| a < b), "{shape:?} {strides:?} along {axis}");
                }
            }
        }
    }
}

#[test]
fn four_million_single_precision_numbers_sum_exactly() {
    let x = vec![0.1_f32; 4_000_000];
    let mut y = [0.0];
    sum(View::new(&x, 0, &[4_000_000], &[1]), &[true], &mut y);
    assert_eq!(y, [(4e6 * f64::from(0.1_f32)) as f32]);
    let mut y = [0.0; 2];
    sum(View::new(&x, 0, &[2_000_000, 2], &[2, 1]), &[true, false], &mut y);
    assert_eq!(y, [(2e6 * f64::from(0.1_f32)) as f32; 2]);
    mean(View::new(&x, 0, &[2, 2_000_000], &[2_000_000, 1]), &[false, true], &mut y);
    assert_eq!(y, [0.1; 2]);
}

#[test]
fn large_reductions_are_the_same_bits_on_one_thread_and_on_many() {
    let (a, b, c) = (37_usize, 61_usize, 53_usize);
    let data: Vec<f64> = (0..a * b * c).map(|i| ((i * 7919) as f64).sin()).collect();
    let (shape, dense) = ([a, b, c], [(b * c).cast_signed(), c.cast_signed(), 1]);
    for strides in [dense, [1, a.cast_signed(), (a * b).cast_signed()]] {
        let x = View::new(&data, 0, &shape, &strides);
        for reduced in masks(3) {
            let groups = groups(x, &reduced);
            let y = [1, 8].map(|threads| {
                let mut y = vec![f64::NAN; groups.len()];
                with_threads(threads, || sum(x, &reduced, &mut y));
                y
            });
            assert_eq!(y[0], y[1]);
            for (y, group) in y[0].iter().zip(groups) {
                assert!((y - group.iter().sum::<f64>()).abs() < 1e-10, "{reduced:?}");
            }
        }
    }
}
