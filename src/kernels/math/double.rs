//! Functions of one `f64` that the standard library lacks.

use std::f64::consts::FRAC_1_SQRT_2;

use super::polynomial;

#[inline(always)]
pub(super) fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

#[inline(always)]
pub(super) fn softplus(x: f64) -> f64 {
    (-x.abs()).exp().ln_1p() + if x > 0.0 { x } else { 0.0 }
}

/// `P(x) = erfc(-x / sqrt(2)) / 2` and `p(x) = e^(-x^2 / 2) / sqrt(2 pi)`.
#[inline(always)]
pub(super) fn normal(x: f64) -> (f64, f64) {
    const INVERSE_ROOT_2_PI: f64 = 0.398_942_280_401_432_7;
    (0.5 * erfc(-FRAC_1_SQRT_2 * x), INVERSE_ROOT_2_PI * (-0.5 * x * x).exp())
}

/// `erf(x)` for `|x| < 0.75`: `x + x P(x^2)`, to 2e-17.
fn erf_small(x: f64) -> f64 {
    let p = polynomial(
        x * x,
        [
            0.128_379_167_095_512_56,
            -0.376_126_389_031_837_15,
            0.112_837_916_709_524_81,
            -0.026_866_170_644_402_446,
            0.005_223_977_615_121_929,
            -0.000_854_832_616_906_888_9,
            0.000_120_552_887_763_794_61,
            -1.492_417_661_767_772_7e-5,
            1.643_038_794_352_675_8e-6,
            -1.593_759_791_957_529_8e-7,
            1.146_375_094_862_643e-8,
        ],
    );
    p.mul_add(x, x)
}

/// `erfc(a)` for `a >= 0.4`: `e^(-a^2) G(t) / (1 + 2 a)` with `t = (a - 3) / (a + 3)`, the form of Shepherd & Laframboise
/// 1981, with `G` to 5e-17; 0 from 27.3 on.
fn erfc_large(a: f64) -> f64 {
    let a = if a > 27.3 { 27.3 } else { a };
    let g = polynomial(
        (a - 3.0) / (a + 3.0),
        [
            1.253_008_058_269_729_6,
            -0.135_621_106_124_581_17,
            -0.047_562_294_353_450_545,
            0.129_645_158_702_760_42,
            -0.119_273_663_415_320_63,
            0.068_308_027_344_019_86,
            -0.023_770_514_918_346_364,
            0.002_529_391_814_764_489_6,
            0.001_888_690_354_519_620_4,
            -0.000_779_832_253_838_421_6,
            -0.000_105_159_751_676_166_27,
            0.000_125_099_209_828_632_6,
            4.949_167_292_078_563_5e-6,
            -2.009_988_860_945_063e-5,
            -7.301_801_826_167_208e-7,
            3.470_352_161_691_084_3e-6,
            3.532_761_342_826_236_7e-7,
            -6.126_360_268_488_562e-7,
            -1.355_431_025_389_099e-7,
            9.701_518_573_088_373e-8,
            3.550_600_216_375_68e-8,
            -9.998_650_824_145_49e-9,
            -4.862_009_067_634_702e-9,
        ],
    );
    // e^(-a^2) with the rounding error of the square put back.
    let square = a * a;
    let e = (-square).exp();
    let e = a.mul_add(a, -square).mul_add(-e, e);
    e * g / (1.0 + 2.0 * a)
}

pub(super) fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a < 0.75 { erf_small(x) } else { (1.0 - erfc_large(a)).copysign(x) }
}

pub(super) fn erfc(x: f64) -> f64 {
    let a = x.abs();
    if a < 0.5 {
        1.0 - erf_small(x)
    } else if x < 0.0 {
        2.0 - erfc_large(a)
    } else {
        erfc_large(a)
    }
}
