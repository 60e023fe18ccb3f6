//! The two float types that kernels compute in.

/// `f32` or `f64`, with the functions that ops need.
pub(crate) trait Real: num_traits::Float + Send + Sync + 'static {
    /// The constant `v`, rounded to this type.
    fn of(v: f64) -> Self;
}

macro_rules! real {
    ($($t:ty)*) => {$(
        impl Real for $t {
            #[inline(always)]
            fn of(v: f64) -> Self {
                v as $t
            }
        }
    )*};
}

real!(f32 f64);
