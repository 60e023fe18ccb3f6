//! Functions of one `f32`.

use std::f32::consts::{FRAC_1_SQRT_2, LOG2_E, SQRT_2};

use super::polynomial;

/// Adding and subtracting it rounds a number below 2^22 to an integer, which stands in the low bits in between.
const ROUND: f32 = 12_582_912.0;
/// `log 2` in two parts; products of the first with integers up to 2^9 are exact.
const LN_2_HIGH: f32 = 355.0 / 512.0;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// `1 / sqrt(2 pi)`.
const INVERSE_ROOT_2_PI: f32 = 0.398_942_3;

/// `x = n log 2 + r` with integer `n` and `|r| <= log(2) / 2` (Cody & Waite 1980, chapter 6), for `|x| < 2^14`. Gives
/// bits whose low part is `n`, and `r`.
#[inline(always)]
fn reduce(x: f32) -> (u32, f32) {
    let shifted = x.mul_add(LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    (shifted.to_bits(), r)
}

/// `e^r - 1` for `|r| <= log(2) / 2`, to 4e-9 of `e^r`.
#[inline(always)]
fn expm1_reduced(r: f32) -> f32 {
    let q = polynomial(r, [0.499_999_94, 0.166_665_17, 0.041_668_102, 0.008_369_166, 0.001_383_834_3]);
    q.mul_add(r * r, r)
}

/// `y 2^n` for `-250 < n < 250`, with `n` in the low bits of `shifted` (see [`reduce`]): in two steps, so that the result
/// may be subnormal or overflow.
#[inline(always)]
fn scale(y: f32, shifted: u32) -> f32 {
    let n = (shifted << 16).cast_signed() >> 16;
    let half = n >> 1;
    let power = |n: i32| f32::from_bits(((n + 127) << 23).cast_unsigned());
    y * power(half) * power(n - half)
}

/// `x` no less than `low` and no more than `high`; NaN stays NaN.
#[inline(always)]
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if x > high { high } else { x };
    if x < low { low } else { x }
}

#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // Beyond these the result is 0 and infinite.
    let (shifted, r) = reduce(clamp(x, -104.0, 89.0));
    scale(1.0 + expm1_reduced(r), shifted)
}

#[inline(always)]
pub(super) fn expm1(x: f32) -> f32 {
    let (shifted, r) = reduce(clamp(x, -30.0, 89.0));
    // 2^n (p + 1) - 1, all halved since 2^128 is no float.
    let half = f32::from_bits((shifted << 23).wrapping_add(126 << 23));
    let y = 2.0 * expm1_reduced(r).mul_add(half, half - 0.5);
    if x.abs() < 1e-7 { x } else { y }
}

/// `log(m 2^k (1 + c / (m 2^k)))` where `u = m 2^k` is positive and normal and `c` less than its rounding.
#[inline(always)]
fn log_of_sum(u: f32, c: f32, k0: i32) -> f32 {
    // sqrt(1/2) <= m < sqrt(2)
    const LOW: i32 = (SQRT_2 / 2.0).to_bits().cast_signed();
    let bits = u.to_bits().cast_signed();
    let k = bits.wrapping_sub(LOW) >> 23;
    let m = f32::from_bits(bits.wrapping_sub(k << 23).cast_unsigned());
    let inverse = f32::from_bits(((127 - k.min(126)) << 23).cast_unsigned());
    let f = c.mul_add(inverse, m - 1.0);
    // log(1 + f) = f - f^2 / 2 + f^3 P(f), to 7e-9.
    let p = polynomial(
        f,
        [
            0.333_333_3,
            -0.250_008_2,
            0.200_012_58,
            -0.166_234_33,
            0.142_010_45,
            -0.131_588_92,
            0.127_656_67,
            -0.076_416_65,
        ],
    );
    let (k, square) = ((k + k0) as f32, f * f);
    let tail = square.mul_add(-0.5, p * f * square);
    k.mul_add(LN_2_HIGH, f + k.mul_add(LN_2_LOW, tail))
}

#[inline(always)]
pub(super) fn log(x: f32) -> f32 {
    // Subnormal numbers are scaled to normal ones, in integers: the compiler doubles the work for a choice of floats.
    let shift = 23 * i32::from(x < f32::MIN_POSITIVE);
    let factor = f32::from_bits(((127 + shift) << 23).cast_unsigned());
    let y = log_of_sum(x * factor, 0.0, -shift);
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f32::NAN }
}

#[inline(always)]
pub(super) fn log1p(x: f32) -> f32 {
    // 1 + x = u + c exactly (Knuth, The Art of Computer Programming 2, theorem 4.2.2 B).
    let u = 1.0 + x;
    let back = u - 1.0;
    let c = (1.0 - (u - back)) + (x - back);
    let y = log_of_sum(u, c, 0);
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x == -1.0 { f32::NEG_INFINITY } else { y };
    let y = if x >= -1.0 { y } else { f32::NAN };
    if x == 0.0 { x } else { y }
}

#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let a = x.abs();
    // a < 0.625: a + a^3 P(a^2), to 5e-9.
    let z = a * a;
    let p = polynomial(z, [-0.333_332_8, 0.133_314_06, -0.053_736_51, 0.020_628_149, -0.005_692_279]);
    let small = p.mul_add(z * a, a);
    // Elsewhere 1 - 2 / (e^2a + 1), which is 1 in f32 from a = 9.1 on.
    let (shifted, r) = reduce(clamp(2.0 * a, 0.0, 20.0));
    let e = (1.0 + expm1_reduced(r)) * f32::from_bits((shifted << 23).wrapping_add(127 << 23));
    let large = 1.0 - 2.0 / (e + 1.0);
    (if a < 0.625 { small } else { large }).copysign(x)
}

#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    // e^-|x| does not overflow.
    let e = exp(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

#[inline(always)]
pub(super) fn softplus(x: f32) -> f32 {
    let e = exp(-x.abs());
    // log(1 + e) for 0 <= e <= 1 needs none of log1p's care at the ends.
    let u = 1.0 + e;
    let y = log_of_sum(u, e - (u - 1.0), 0);
    y + if x > 0.0 { x } else { 0.0 }
}

/// `erf(x) / x - 1` as a polynomial in `x^2`, for `|x| < 0.9`, to 2e-8 of `erf(x) / x`.
#[inline(always)]
fn erf_small(x: f32) -> f32 {
    let p = polynomial(
        x * x,
        [0.128_379_15, -0.376_125_04, 0.112_819_046, -0.026_769_448, 0.004_996_984, -6.009_02e-4],
    );
    p.mul_add(x, x)
}

#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    let a = clamp(x.abs(), 0.0, 3.93);
    // From 0.9 on 1 - e^-Q(a) with Q = -log erfc, to 2e-9; it is 1 in f32 from 3.92 on.
    let q = polynomial(
        a,
        [1.595_562e-4, 1.127_824_4, 0.636_932_2, 0.104_151_115, -0.022_333_236, 0.003_070_271, -1.987_536e-4],
    );
    let (shifted, r) = reduce(-q);
    let e = (1.0 + expm1_reduced(r)) * f32::from_bits((shifted << 23).wrapping_add(127 << 23));
    if a < 0.9 { erf_small(x) } else { (1.0 - e).copysign(x) }
}

/// `G / (1 + 2 a)` of `erfc(a) = e^(-a^2) G / (1 + 2 a)` from 0.5 on, to 4e-8, with `G` a polynomial in
/// `t = (a - 2) / (a + 2)`: the form of Shepherd & Laframboise 1981. One division serves both quotients.
#[inline(always)]
fn erfc_factor(a: f32) -> f32 {
    let (b, c) = (a + 2.0, a.mul_add(2.0, 1.0));
    let inverse = 1.0 / (b * c);
    let g = polynomial(
        (a - 2.0) * (c * inverse),
        [
            1.276_978_4,
            -0.092_763_98,
            -0.166_031_44,
            0.164_055_35,
            -0.054_204_255,
            -0.008_059_902,
            0.008_631_522,
            0.001_313_501_7,
            -0.001_229_733_5,
            -4.004_633e-4,
        ],
    );
    g * (b * inverse)
}

/// `e^(-s a^2) = (1 + p) 2^n` for `s` a power of two and `s a^2` up to 107; gives bits whose low part is `n`, and `p`.
#[inline(always)]
fn bell(a: f32, s: f32) -> (u32, f32) {
    // The rounding error of the square goes into the small argument.
    let square = a * a;
    let (shifted, r) = reduce(-s * square);
    (shifted, expm1_reduced(r - s * a.mul_add(a, -square)))
}

#[inline(always)]
pub(super) fn erfc(x: f32) -> f32 {
    // It is 0 in f32 from 10.1 on.
    let a = clamp(x.abs(), 0.0, 10.1);
    let g = erfc_factor(a);
    let (shifted, p) = bell(a, 1.0);
    let y = scale(p.mul_add(g, g), shifted);
    let large = if x < 0.0 { 2.0 - y } else { y };
    if a < 0.5 { 1.0 - erf_small(x) } else { large }
}

/// Both from one power: `P(x) = erfc(-x / sqrt(2)) / 2` and `p(x) = e^(-x^2 / 2) / sqrt(2 pi)`.
#[inline(always)]
pub(super) fn normal(x: f32) -> (f32, f32) {
    // From here on the power is 0 in f32.
    let z = clamp(x.abs(), 0.0, 14.6);
    let (shifted, p) = bell(z, 0.5);
    let e = scale(1.0 + p, shifted);
    let a = z * FRAC_1_SQRT_2;
    let far = 0.5 * e * erfc_factor(a);
    let above = if a < 0.5 { erf_small(a).mul_add(-0.5, 0.5) } else { far };
    (if x < 0.0 { above } else { 1.0 - above }, e * INVERSE_ROOT_2_PI)
}

/// Up to here [`sin`] and [`cos`] are exact.
pub(super) const LARGEST_ANGLE: f32 = 1e9;

/// `x = n pi / 2 + r` with integer `n` and `|r| <= pi / 4`; gives `sin r`, `cos r` and the low bits of `n`.
///
/// In double precision, where `pi / 2` in two parts leaves enough bits for every `f32` below [`LARGEST_ANGLE`].
#[inline(always)]
fn sin_cos_reduced(x: f32) -> (f32, f32, u32) {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const HIGH: f64 = std::f64::consts::FRAC_PI_2;
    const LOW: f64 = 6.123_233_995_736_766e-17;
    let x = f64::from(x);
    let shifted = x.mul_add(std::f64::consts::FRAC_2_PI, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LOW, n.mul_add(-HIGH, x)) as f32;
    let z = r * r;
    // Both to 4e-9.
    let sin = polynomial(z, [-0.166_666_55, 0.008_332_189, -1.951_828_5e-4]);
    let cos = polynomial(z, [0.041_666_646, -0.001_388_731, 2.443_232_7e-5]);
    // copysign for -0
    (sin.mul_add(z * r, r).copysign(r), cos.mul_add(z * z, z.mul_add(-0.5, 1.0)), shifted.to_bits() as u32)
}

#[inline(always)]
pub(super) fn sin(x: f32) -> f32 {
    let (sin, cos, n) = sin_cos_reduced(x);
    let y = if n & 1 == 0 { sin } else { cos };
    if n & 2 == 0 { y } else { -y }
}

#[inline(always)]
pub(super) fn cos(x: f32) -> f32 {
    let (sin, cos, n) = sin_cos_reduced(x);
    let y = if n & 1 == 0 { cos } else { sin };
    if n.wrapping_add(1) & 2 == 0 { y } else { -y }
}
