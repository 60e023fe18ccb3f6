//! What may stand on the other side of a tensor.

use crate::dtype::Element;
use crate::error::Result;
use crate::tensor::Tensor;

use super::op::Input;

/// The other side of a binary op: a tensor, a variable, a number, or a result of one of them.
///
/// Numbers take the dtype of the tensor they meet; a fraction beside an integer tensor is an error.
pub trait Operand<'a> {
    /// The operand as an input, for an op whose other input is `like`.
    ///
    /// # Errors
    /// The operand is an error itself, or a number that `like`'s dtype cannot hold.
    fn into_input(self, like: &Tensor) -> Result<Input<'a>>;
}

impl<'a> Operand<'a> for &'a Tensor {
    fn into_input(self, _: &Tensor) -> Result<Input<'a>> {
        Ok(Input::Ref(self))
    }
}

impl<'a> Operand<'a> for Tensor {
    fn into_input(self, _: &Tensor) -> Result<Input<'a>> {
        Ok(Input::Own(self))
    }
}

impl<'a> Operand<'a> for Result<Tensor> {
    fn into_input(self, _: &Tensor) -> Result<Input<'a>> {
        self.map(Input::Own)
    }
}

/// The number as a scalar of the dtype of `like`.
pub(crate) fn number(value: f64, like: &Tensor) -> Result<Tensor> {
    crate::tensor::check_value("number", value, like.dtype())?;
    Ok(Tensor::scalar(value, like.dtype()))
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl<'a> Operand<'a> for $t {
            fn into_input(self, like: &Tensor) -> Result<Input<'a>> {
                if like.dtype() == <$t as Element>::DTYPE {
                    return Ok(Input::Own(Tensor::from(self)));
                }
                number(self.to_f64(), like).map(Input::Own)
            }
        }
    )*};
}

numbers!(f32 f64 i8 i16 i32 i64 u8 u16 u32 u64);

impl<'a> Operand<'a> for usize {
    fn into_input(self, like: &Tensor) -> Result<Input<'a>> {
        number(self as f64, like).map(Input::Own)
    }
}
