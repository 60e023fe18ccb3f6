//! Elementary functions of one number.

/// A floating-point number with the functions that networks need.
///
/// The underscore sets them apart from those of `num_traits::Float`.
pub(crate) trait Math: num_traits::Float + Default + std::fmt::Debug + Send + Sync + 'static {
    /// The nearest number.
    fn from_f64(x: f64) -> Self;
    /// `e^x`.
    #[inline(always)]
    fn exp_(self) -> Self {
        self.exp()
    }
    /// `e^x - 1`, exact near 0.
    #[inline(always)]
    fn expm1_(self) -> Self {
        self.exp_m1()
    }
    /// The natural logarithm.
    #[inline(always)]
    fn log_(self) -> Self {
        self.ln()
    }
    /// `log(1 + x)`, exact near 0.
    #[inline(always)]
    fn log1p_(self) -> Self {
        self.ln_1p()
    }
    /// The hyperbolic tangent.
    #[inline(always)]
    fn tanh_(self) -> Self {
        self.tanh()
    }
    /// `1 / (1 + e^-x)`.
    #[inline(always)]
    fn sigmoid_(self) -> Self {
        let e = (-self.abs()).exp();
        (if self < Self::zero() { e } else { Self::one() }) / (Self::one() + e)
    }
    /// `log(1 + e^x)`.
    #[inline(always)]
    fn softplus_(self) -> Self {
        (-self.abs()).exp().ln_1p() + if self > Self::zero() { self } else { Self::zero() }
    }
}

impl Math for f32 {
    fn from_f64(x: f64) -> Self {
        x as f32
    }
}

impl Math for f64 {
    fn from_f64(x: f64) -> Self {
        x
    }
}
