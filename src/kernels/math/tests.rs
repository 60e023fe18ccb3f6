use super::super::elementwise::map;
use super::super::layout::View;
use super::*;

const INF: f64 = f64::INFINITY;

/// `f` of every `x`, compiled as the kernels are.
fn run<T: Math>(x: &[T], f: impl Fn(T) -> T + Sync + Copy) -> Vec<T> {
    let mut y = vec![T::nan(); x.len()];
    map(View::new(x, 0, &[x.len()], &[1]), &mut y, f);
    y
}

/// Distance of neighbouring `f32` at `y`.
fn unit(y: f64) -> f64 {
    let exponent = if y == 0.0 { -149 } else { (y.abs().log2().floor() as i32 - 23).max(-149) };
    2.0_f64.powi(exponent)
}

/// Compares `f` with `expected` on bit patterns spread evenly over all `f32` in `low..=high`.
fn sweep(
    limit: f64,
    (low, high): (f32, f32),
    f: impl Fn(f32) -> f32 + Sync + Copy,
    expected: impl Fn(f64) -> f64,
) {
    let x: Vec<f32> = (0..=u32::MAX).step_by(40_009).map(f32::from_bits).collect();
    let x: Vec<f32> = x.into_iter().filter(|&x| x.is_nan() || (low <= x && x <= high)).collect();
    assert!(x.len() > 50_000);
    for (&x, y) in x.iter().zip(run(&x, f)) {
        let e = expected(x.into());
        if y.is_finite() {
            let error = (f64::from(y) - e).abs() / unit(e);
            assert!(error <= limit, "f({x:e}) = {y:e}, expected {e:e}: {error} units");
        } else {
            assert!(y == e as f32 || (y.is_nan() && e.is_nan()), "f({x:e}) = {y}, expected {e:e}");
        }
    }
}

const ALL: (f32, f32) = (f32::NEG_INFINITY, f32::INFINITY);

#[test]
fn single_precision_follows_double_over_the_whole_range() {
    sweep(1.1, ALL, f32::exp_, f64::exp);
    sweep(1.5, ALL, f32::expm1_, f64::exp_m1);
    sweep(0.9, ALL, f32::log_, f64::ln);
    sweep(1.5, ALL, f32::log1p_, f64::ln_1p);
    sweep(1.4, ALL, f32::tanh_, f64::tanh);
    sweep(2.4, ALL, f32::sigmoid_, |x| 1.0 / (1.0 + (-x).exp()));
    sweep(1.8, ALL, f32::softplus_, |x| x.max(0.0) + (-x.abs()).exp().ln_1p());
    sweep(1.3, ALL, f32::erf_, f64::erf_);
    sweep(3.2, ALL, f32::erfc_, f64::erfc_);
    sweep(4.0, ALL, |x| x.normal_().0, |x| x.normal_().0);
    sweep(2.0, ALL, |x| x.normal_().1, |x| x.normal_().1);
    sweep(1.6, (-9.9e8, 9.9e8), f32::sin_, f64::sin);
    sweep(1.6, (-9.9e8, 9.9e8), f32::cos_, f64::cos);
}

fn ends<T: Math>() {
    let table: &[(fn(T) -> T, [f64; 4])] = &[
        // at -inf, -0, 0, inf
        (T::exp_, [0.0, 1.0, 1.0, INF]),
        (T::expm1_, [-1.0, -0.0, 0.0, INF]),
        (T::log_, [f64::NAN, -INF, -INF, INF]),
        (T::log1p_, [f64::NAN, -0.0, 0.0, INF]),
        (T::tanh_, [-1.0, -0.0, 0.0, 1.0]),
        (T::sigmoid_, [0.0, 0.5, 0.5, 1.0]),
        (T::softplus_, [0.0, std::f64::consts::LN_2, std::f64::consts::LN_2, INF]),
        (T::erf_, [-1.0, -0.0, 0.0, 1.0]),
        (T::erfc_, [2.0, 1.0, 1.0, 0.0]),
        (|x| x.normal_().0, [0.0, 0.5, 0.5, 1.0]),
        (|x| x.normal_().1, [0.0, 0.398_942_280_401_432_7, 0.398_942_280_401_432_7, 0.0]),
        (sin_of, [f64::NAN, -0.0, 0.0, f64::NAN]),
        (cos_of, [f64::NAN, 1.0, 1.0, f64::NAN]),
    ];
    for (i, (f, expected)) in table.iter().enumerate() {
        for (x, expected) in [-INF, -0.0, 0.0, INF].into_iter().zip(expected) {
            let (y, expected) = (f(T::from_f64(x)), T::from_f64(*expected));
            let same = y == expected && y.is_sign_negative() == expected.is_sign_negative();
            assert!(same || (y.is_nan() && expected.is_nan()), "function {i} at {x} is {y:?}");
        }
        assert!(f(T::nan()).is_nan(), "function {i} at NaN");
    }
}

fn sin_of<T: Math>(x: T) -> T {
    let mut y = [T::zero()];
    sin(View::new(&[x], 0, &[1], &[1]), &mut y);
    y[0]
}

fn cos_of<T: Math>(x: T) -> T {
    let mut y = [T::zero()];
    cos(View::new(&[x], 0, &[1], &[1]), &mut y);
    y[0]
}

#[test]
fn infinities_zeros_and_nan_give_limits() {
    ends::<f32>();
    ends::<f64>();
}

#[test]
fn results_may_be_subnormal_and_overflow_at_the_right_place() {
    // e^-100 = 3.720076e-44, 27 steps of 2^-149; e^-87.5 = 9.98e-39; the largest f32 is e^88.722839.
    assert_eq!(run(&[-100.0_f32], f32::exp_), [f32::from_bits(27)]);
    assert!(run(&[-87.5_f32], f32::exp_)[0].is_subnormal());
    assert!(run(&[88.722_83_f32, 88.722_83], f32::exp_)[0].is_finite());
    assert_eq!(run(&[88.722_84_f32], f32::exp_), [f32::INFINITY]);
    assert_eq!(run(&[88.722_84_f32], f32::expm1_), [f32::INFINITY]);
    assert_eq!(run(&[1e-40_f32, -1e-40], f32::tanh_), [1e-40, -1e-40]);
    assert_eq!(run(&[1e-40_f32, -1e-40], f32::log1p_), [1e-40, -1e-40]);
    // log(2^-149) = -149 log 2
    assert_eq!(run(&[f32::from_bits(1)], f32::log_), [-103.278_93]);
}

/// `erf` by Kummer's series, all terms of one sign: `2 x / sqrt(pi) e^(-x^2) sum (2 x^2)^n / (1 3 5 .. (2 n + 1))`.
fn erf_series(x: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..200 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * x * (-x * x).exp() * sum
}

/// `erfc` for large `x` by Laplace's continued fraction `e^(-x^2) / sqrt(pi) / (x + (1/2) / (x + (2/2) / (x + ..)))`.
fn erfc_fraction(x: f64) -> f64 {
    let tail = (1..400).rev().fold(x, |tail, n| x + f64::from(n) / 2.0 / tail);
    (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI / 2.0 / tail
}

#[test]
fn error_functions_agree_with_their_series() {
    for i in 1..=2700 {
        let x = f64::from(i) * 0.01 + 0.000_3;
        // The references lose (x^2 + 4) units to rounding.
        let tolerance = (x * x + 4.0) * 2.0 * f64::EPSILON;
        let close = |a: f64, b: f64| (a - b).abs() <= tolerance * b.abs();
        if x < 5.0 {
            assert!(
                close(x.erf_(), erf_series(x)),
                "erf({x}) = {:e}, expected {:e}",
                x.erf_(),
                erf_series(x)
            );
            assert!(close((-x).erf_(), -erf_series(x)));
        }
        if x < 1.0 {
            assert!(close(x.erfc_(), 1.0 - erf_series(x)), "erfc({x})");
            assert!(close((-x).erfc_(), 1.0 + erf_series(x)));
        }
        if x > 2.0 && x < 26.0 {
            assert!(close(x.erfc_(), erfc_fraction(x)), "erfc({x}) = {:e} {:e}", x.erfc_(), erfc_fraction(x));
            assert!(close((-x).erfc_(), 2.0 - erfc_fraction(x)));
        }
    }
}

#[test]
fn huge_angles_are_reduced_too() {
    let x: Vec<f32> =
        (0..3000).map(|i| 1.5e7 * 1.02_f32.powi(i % 2400) * if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let (mut s, mut c) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    sin(View::new(&x, 0, &[x.len()], &[1]), &mut s);
    cos(View::new(&x, 0, &[x.len()], &[1]), &mut c);
    assert!(x.iter().any(|x| x.abs() > 1e25));
    for ((x, s), c) in x.iter().zip(s).zip(c) {
        let (es, ec) = f64::from(*x).sin_cos();
        assert!((f64::from(s) - es).abs() <= 1.6 * unit(es), "sin {x:e}");
        assert!((f64::from(c) - ec).abs() <= 1.6 * unit(ec), "cos {x:e}");
    }
}
