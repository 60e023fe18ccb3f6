//! Loops compiled for the vectors of the machine they run on.

use pulp::{Simd, WithSimd};

/// Calls `f`, compiled once for each instruction set and chosen at run time.
///
/// Only what is inlined into `f` is compiled so. Write the closure in place as `#[inline(always)] || …`, with plain loops
/// in it: a function or an inner closure that the compiler leaves out of line keeps the narrow vectors of the build.
#[inline(always)]
pub(crate) fn vectorized<R>(f: impl FnOnce() -> R) -> R {
    // `Arch::dispatch` takes closures too, but calls them through a shim that is not always inlined.
    struct Call<F>(F);
    impl<R, F: FnOnce() -> R> WithSimd for Call<F> {
        type Output = R;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> R {
            (self.0)()
        }
    }
    pulp::Arch::new().dispatch(Call(f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closure_runs_once_and_gives_its_value() {
        let mut calls = 0;
        let value = vectorized(
            #[inline(always)]
            || {
                calls += 1;
                7
            },
        );
        assert_eq!((calls, value), (1, 7));
    }
}
