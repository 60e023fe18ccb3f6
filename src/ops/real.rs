//! The dtypes that float kernels compute in.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// The dtype in which kernels compute on `x`: `f64` for `f64`, `f32` for the other floats.
pub(crate) fn real_dtype(op: &'static str, what: &'static str, x: &Tensor) -> Result<DType> {
    match x.dtype() {
        DType::F64 => Ok(DType::F64),
        dtype if dtype.is_float() => Ok(DType::F32),
        dtype => Err(Error::dtype(op, what, dtype, "a float dtype; convert it with cast")),
    }
}

/// Runs the body with `$T` bound to `f64` or `f32`, as [`real_dtype`] found.
macro_rules! for_real {
    ($dtype:expr, $T:ident => $body:expr) => {
        if $dtype == $crate::dtype::DType::F64 {
            type $T = f64;
            $body
        } else {
            type $T = f32;
            $body
        }
    };
}
pub(crate) use for_real;

/// Refuses an input that has not the dtype of another one.
pub(crate) fn check_dtype(
    op: &'static str,
    what: &'static str,
    x: &Tensor,
    like: (&str, &Tensor),
) -> Result<()> {
    if x.dtype() != like.1.dtype() {
        let expected = format!("{}, that of {}; convert it with cast", like.1.dtype(), like.0);
        return Err(Error::dtype(op, what, x.dtype(), expected));
    }
    Ok(())
}

/// Refuses an input that has not the shape of another one.
pub(crate) fn check_shape(
    op: &'static str,
    what: &'static str,
    x: &Tensor,
    like: (&str, &Tensor),
) -> Result<()> {
    if x.shape() != like.1.shape() {
        let expected = format!("{}, that of {}", like.1.shape(), like.0);
        return Err(Error::shape(op, what, x.shape(), expected));
    }
    Ok(())
}
