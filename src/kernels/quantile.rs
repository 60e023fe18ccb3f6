//! Quantiles of the normal distribution: they turn uniform numbers into normal ones.

/// The probability of a standard normal below -2.
#[expect(clippy::excessive_precision, reason = "the digits of the exact value")]
const BELOW_MINUS_TWO: f64 = 0.022_750_131_948_179_207;

/// A normal cut at two standard deviations, from a uniform in (0, 1).
///
/// The cut quantile has the distribution of redrawing until the value lies inside.
#[inline(always)]
pub(crate) fn truncated_normal(u: f64) -> f64 {
    // The largest value of an f32 below 2: rounding must not put a draw on the cut.
    const LIMIT: f64 = 2.0 - 1.0 / (1u64 << 23) as f64;
    normal(BELOW_MINUS_TWO + u * (1.0 - 2.0 * BELOW_MINUS_TWO)).clamp(-LIMIT, LIMIT)
}

/// The standard normal's quantile at `u` in (0, 1), by algorithm AS 241 (Wichura 1988), exact to about 1e-15.
///
/// It uses IEEE arithmetic and square roots alone, so that draws are the same on every machine.
#[inline(always)]
pub(crate) fn normal(u: f64) -> f64 {
    let q = u - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.425 * 0.425 - q * q;
        return q * ratio(r, &CENTRE);
    }
    let r = (-ln(u.min(1.0 - u))).sqrt();
    let x = if r <= 5.0 { ratio(r - 1.6, &SHOULDER) } else { ratio(r - 5.0, &TAIL) };
    x.copysign(q)
}

/// Natural logarithm of a positive normal number, to within 1e-15 of its size or of 1.
///
/// With `x = m 2^e`, `m` around 1 and `s = (m - 1) / (m + 1)`: `ln x = e ln 2 + 2 (s + s^3 / 3 + s^5 / 5 + ...)`.
#[inline(always)]
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut m = f64::from_bits((bits & ((1 << 52) - 1)) | 1023 << 52);
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    // |s| < 0.172, so that the first term left out is below 1e-18.
    let series = (0..11).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    2.0 * s * series + exponent as f64 * std::f64::consts::LN_2
}

/// The quotient of two polynomials, lowest coefficients first.
#[inline(always)]
fn ratio(x: f64, [above, below]: &[[f64; 8]; 2]) -> f64 {
    let polynomial = |c: &[f64; 8]| c.iter().rev().fold(0.0, |sum, c| sum * x + c);
    polynomial(above) / polynomial(below)
}

#[expect(clippy::excessive_precision, reason = "the digits of the publication")]
const CENTRE: [[f64; 8]; 2] = [
    [
        3.387_132_872_796_366_608,
        1.331_416_678_917_843_774_5e2,
        1.971_590_950_306_551_442_7e3,
        1.373_169_376_550_946_112_5e4,
        4.592_195_393_154_987_145_7e4,
        6.726_577_092_700_870_085_3e4,
        3.343_057_558_358_812_810_5e4,
        2.509_080_928_730_122_672_7e3,
    ],
    [
        1.0,
        4.231_333_070_160_091_125_2e1,
        6.871_870_074_920_579_083e2,
        5.394_196_021_424_751_107_7e3,
        2.121_379_430_158_659_586_7e4,
        3.930_789_580_009_271_061e4,
        2.872_908_573_572_194_267_4e4,
        5.226_495_278_852_854_561e3,
    ],
];
#[expect(clippy::excessive_precision, reason = "the digits of the publication")]
const SHOULDER: [[f64; 8]; 2] = [
    [
        1.423_437_110_749_683_577_34,
        4.630_337_846_156_545_295_9,
        5.769_497_221_460_691_405_5,
        3.647_848_324_763_204_605_04,
        1.270_458_252_452_368_382_58,
        2.417_807_251_774_506_117_7e-1,
        2.272_384_498_926_918_458_33e-2,
        7.745_450_142_783_414_076_4e-4,
    ],
    [
        1.0,
        2.053_191_626_637_758_821_87,
        1.676_384_830_183_803_849_4,
        6.897_673_349_851_000_045_5e-1,
        1.481_039_764_274_800_745_9e-1,
        1.519_866_656_361_645_719_66e-2,
        5.475_938_084_995_344_946e-4,
        1.050_750_071_644_416_843_24e-9,
    ],
];
#[expect(clippy::excessive_precision, reason = "the digits of the publication")]
const TAIL: [[f64; 8]; 2] = [
    [
        6.657_904_643_501_103_777_2,
        5.463_784_911_164_114_369_9,
        1.784_826_539_917_291_335_8,
        2.965_605_718_285_048_912_3e-1,
        2.653_218_952_657_612_309_3e-2,
        1.242_660_947_388_078_438_6e-3,
        2.711_555_568_743_487_578_15e-5,
        2.010_334_399_292_288_132_65e-7,
    ],
    [
        1.0,
        5.998_322_065_558_879_376_9e-1,
        1.369_298_809_227_358_053_1e-1,
        1.487_536_129_085_061_485_25e-2,
        7.868_691_311_456_132_591e-4,
        1.846_318_317_510_054_681_8e-5,
        1.421_511_758_316_445_888_7e-7,
        2.044_263_103_389_939_785_64e-15,
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_agrees_with_the_standard_library() {
        for i in 1..4000 {
            let x = (f64::from(i) * 0.01).exp2() * 1e-12;
            assert!((ln(x) - x.ln()).abs() <= 1e-15 * x.ln().abs().max(1.0), "{x}");
        }
    }

    /// Integrates the density over each step with Simpson's rule and compares with the step in `u`.
    #[test]
    fn quantile_inverts_the_integral_of_the_density() {
        let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let mut worst = 0f64;
        for i in 1..2000 {
            let (u, v) = (f64::from(i) / 2001.0, f64::from(i + 1) / 2001.0);
            let (a, b) = (normal(u), normal(v));
            let integral = (density(a) + 4.0 * density(0.5 * (a + b)) + density(b)) * (b - a) / 6.0;
            // Simpson's error is (b - a)^5 / 2880 times the fourth derivative, here at most 3 * density.
            let simpson = (b - a).powi(5) / 2880.0 * 60.0 * density(a.abs().min(b.abs()));
            worst = worst.max(((integral - (v - u)).abs() - simpson) * 2001.0);
        }
        assert!(worst < 1e-11, "{worst}");
        assert_eq!(normal(0.5), 0.0);
        assert_eq!(normal(0.0625), -normal(0.9375));
    }

    /// Quantiles from tables of the normal distribution.
    #[test]
    fn quantiles_agree_with_tables() {
        let table = [
            (0.975, 1.959963984540054),
            (0.995, 2.575829303548901),
            (1e-6, -4.753424308822899),
            (1e-9, -5.997807015007687),
            (1e-20, -9.262340089798408),
        ];
        for (u, x) in table {
            assert!((normal(u) / x - 1.0).abs() < 1e-14, "{u}: {} and not {x}", normal(u));
        }
        assert!((normal(BELOW_MINUS_TWO) + 2.0).abs() < 2e-15);
    }
}
