//! Calls in a half type over variables in `f32` (Micikevicius et al. 2018, "Mixed precision training").
//!
//! A mode says in which float dtype this thread computes; what is meant to follow it is wrapped in [`Modes`]. The
//! variables stay in the dtype in which they were made, and so do their gradients: only what a wrapped call reads of them,
//! and what is passed to it, is cast. What it returns is cast back to `f32`.
//!
//! ```
//! use couplet::prelude::*;
//! use couplet::mixed_precision::{self, Modes};
//! let layer = Modes::new([DType::F16]).of(Linear::new(1).w_init(init::Constant::new(0.1)));
//! let x = Tensor::from([[3.3f32]]);
//! mixed_precision::scope(DType::F16, || {
//!     // The first call makes the variables, in full precision.
//!     assert_eq!(layer.forward(&x)?.item::<f32>()?, 3.3 * 0.1);
//!     assert_eq!(layer.forward(&x)?.item::<f32>()?, 0.330078125);
//!     Ok(())
//! })?;
//! assert_eq!(layer.forward(&x)?.item::<f32>()?, 3.3 * 0.1);
//! # Ok::<(), couplet::Error>(())
//! ```

mod floats;
mod modes;

use std::cell::Cell;

pub use floats::Floats;
pub use modes::{InModes, Modes};

use crate::dtype::DType;
use crate::error::{Error, Result};

thread_local! {
    static MODE: Cell<Option<DType>> = const { Cell::new(None) };
}

/// The mode of this thread, if there is one.
///
/// ```
/// use couplet::{DType, mixed_precision};
/// assert_eq!(mixed_precision::mode(), None);
/// let inside = mixed_precision::scope(DType::BF16, || Ok(mixed_precision::mode()))?;
/// assert_eq!(inside, Some(DType::BF16));
/// # Ok::<(), couplet::Error>(())
/// ```
pub fn mode() -> Option<DType> {
    MODE.try_with(Cell::get).ok().flatten()
}

/// Sets the mode of this thread, until [`disable`] or the end of a [`scope`] around.
///
/// ```
/// use couplet::{DType, mixed_precision};
/// mixed_precision::enable(DType::F16)?;
/// assert_eq!(mixed_precision::mode(), Some(DType::F16));
/// mixed_precision::disable();
/// assert_eq!(mixed_precision::mode(), None);
/// assert!(mixed_precision::enable(DType::I32).is_err());
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `dtype` is not a float dtype.
pub fn enable(dtype: DType) -> Result<()> {
    check("enable", dtype)?;
    MODE.set(Some(dtype));
    Ok(())
}

/// Takes this thread's mode away: everything runs in the dtypes that it is given. See [`enable`].
pub fn disable() {
    MODE.set(None);
}

/// Runs `f` in a mode. Afterwards the mode before holds again, whatever `f` set and however it ended.
///
/// ```
/// use couplet::mixed_precision::{self, Modes};
/// use couplet::prelude::*;
/// let modes = Modes::new([DType::F16]);
/// let third = || modes.run(Tensor::from(1.0f32), |x| x / 3.0);
/// third()?;
/// mixed_precision::scope(DType::F16, || {
///     assert_eq!(third()?.item::<f32>()?, 1.0 / 3.0); // the first in the mode, as it would make variables
///     assert_eq!(third()?.item::<f32>()?, 0.33325195);
///     Ok(())
/// })?;
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `dtype` is not a float dtype, or `f` failed.
pub fn scope<R>(dtype: DType, f: impl FnOnce() -> Result<R>) -> Result<R> {
    struct Restore(Option<DType>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = MODE.try_with(|mode| mode.set(self.0));
        }
    }
    check("scope", dtype)?;
    let _restore = Restore(MODE.replace(Some(dtype)));
    f()
}

fn check(op: &'static str, dtype: DType) -> Result<()> {
    match dtype.is_float() {
        true => Ok(()),
        false => Err(Error::dtype(op, "the mode", dtype, "a float dtype")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_nest_and_restore_what_was_before_also_after_an_error_or_disable() {
        assert_eq!(mode(), None);
        scope(DType::F16, || {
            scope(DType::BF16, || {
                scope(DType::F16, || {
                    disable();
                    assert_eq!(mode(), None);
                    Ok(())
                })?;
                assert_eq!(mode(), Some(DType::BF16));
                Ok(())
            })?;
            assert_eq!(mode(), Some(DType::F16));
            let failed: Result<()> = scope(DType::F32, || Err(Error::usage("t", "no", "stop")));
            assert!(failed.is_err());
            assert_eq!(mode(), Some(DType::F16));
            Ok(())
        })
        .unwrap();
        assert_eq!(mode(), None);
        enable(DType::BF16).unwrap();
        assert_eq!(mode(), Some(DType::BF16));
        disable();
    }

    #[test]
    fn a_mode_is_a_float_dtype_and_belongs_to_its_thread() {
        assert!(enable(DType::I32).unwrap_err().to_string().contains("i32"));
        assert!(scope(DType::Bool, || Ok(())).is_err());
        let elsewhere = || std::thread::spawn(mode).join().unwrap();
        assert_eq!(scope(DType::F16, || Ok(elsewhere())).unwrap(), None);
    }
}
