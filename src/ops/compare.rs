//! Comparisons, element by element, with broadcasting; the result is bool.

use serde::{Deserialize, Serialize};

use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernels::elementwise;
use crate::tensor::Tensor;

use super::apply;
use super::arithmetic::{same_dtype, zip_any};
use super::gradient::Gradient;
use super::op::{Computed, Input, Inputs, Mask, Op, Saved};
use super::operand::Operand;
use super::registry::{Listed, Sample, SampleInput};

/// `f` of each pair of elements, broadcast.
pub(crate) fn zip_to<T: Element, U: Element>(
    op: &'static str,
    a: &Tensor,
    b: &Tensor,
    f: impl Fn(T, T) -> U + Sync + Copy,
) -> Result<Tensor> {
    zip_any(op, U::DTYPE, a.clone(), b.clone(), elementwise::pair(f).any())
}

/// One comparison: its op, and the loop for a dtype. It has no derivative.
macro_rules! comparison {
    ($(#[$doc:meta])* $Op:ident, $name:literal, $f:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Serialize, Deserialize)]
        pub(crate) struct $Op;

        impl Op for $Op {
            fn name(&self) -> &'static str {
                $name
            }

            fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
                let (a, b) = (inputs.get(0)?, inputs.get(1)?);
                let y = match same_dtype($name, a, b)? {
                    DType::F64 => zip_to::<f64, bool>($name, a, b, $f)?,
                    DType::U64 => zip_to::<u64, bool>($name, a, b, $f)?,
                    // The other types fit one of two wider ones exactly.
                    dtype if dtype.is_float() => {
                        zip_to::<f32, bool>($name, &a.converted(DType::F32)?, &b.converted(DType::F32)?, $f)?
                    }
                    _ => zip_to::<i64, bool>($name, &a.converted(DType::I64)?, &b.converted(DType::I64)?, $f)?,
                };
                Ok(y.into())
            }

            fn gradient(&self, _: &Saved, _: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
                Ok(vec![None, None])
            }
        }

        impl Listed for $Op {
            fn samples() -> Vec<Sample> {
                vec![Sample::new($Op, [SampleInput::float(&[2, 3]), SampleInput::float(&[3])])]
            }
        }
    };
}

comparison!(
    /// `y = (a == b)`.
    Equal, "equal", |a, b| a == b
);
comparison!(
    /// `y = (a != b)`.
    NotEqual, "not_equal", |a, b| a != b
);
comparison!(
    /// `y = (a < b)`.
    Less, "less", |a, b| a < b
);
comparison!(
    /// `y = (a <= b)`.
    LessEqual, "less_equal", |a, b| a <= b
);
comparison!(
    /// `y = (a > b)`.
    Greater, "greater", |a, b| a > b
);
comparison!(
    /// `y = (a >= b)`.
    GreaterEqual, "greater_equal", |a, b| a >= b
);

impl Tensor {
    /// Whether each element equals that of `other`, broadcast; NaN equals nothing. The result is bool.
    ///
    /// # Errors
    /// The dtypes differ, or the shapes do not broadcast.
    pub fn equal<'a>(&'a self, other: impl Operand<'a>) -> Result<Tensor> {
        apply(Equal, [Input::Ref(self), other.into_input(self)?])
    }

    /// Whether each element differs from that of `other`, broadcast; NaN differs from everything. The result is bool.
    ///
    /// # Errors
    /// The dtypes differ, or the shapes do not broadcast.
    pub fn not_equal<'a>(&'a self, other: impl Operand<'a>) -> Result<Tensor> {
        apply(NotEqual, [Input::Ref(self), other.into_input(self)?])
    }

    /// Whether each element is below that of `other`, broadcast; false beside NaN. The result is bool.
    ///
    /// # Errors
    /// The dtypes differ, or the shapes do not broadcast.
    pub fn less<'a>(&'a self, other: impl Operand<'a>) -> Result<Tensor> {
        apply(Less, [Input::Ref(self), other.into_input(self)?])
    }

    /// Whether each element is at most that of `other`, broadcast; false beside NaN. The result is bool.
    ///
    /// # Errors
    /// The dtypes differ, or the shapes do not broadcast.
    pub fn less_equal<'a>(&'a self, other: impl Operand<'a>) -> Result<Tensor> {
        apply(LessEqual, [Input::Ref(self), other.into_input(self)?])
    }

    /// Whether each element is above that of `other`, broadcast; false beside NaN. The result is bool.
    ///
    /// # Errors
    /// The dtypes differ, or the shapes do not broadcast.
    pub fn greater<'a>(&'a self, other: impl Operand<'a>) -> Result<Tensor> {
        apply(Greater, [Input::Ref(self), other.into_input(self)?])
    }

    /// Whether each element is at least that of `other`, broadcast; false beside NaN. The result is bool.
    ///
    /// # Errors
    /// The dtypes differ, or the shapes do not broadcast.
    pub fn greater_equal<'a>(&'a self, other: impl Operand<'a>) -> Result<Tensor> {
        apply(GreaterEqual, [Input::Ref(self), other.into_input(self)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(y: Result<Tensor>) -> Vec<bool> {
        y.unwrap().to_vec::<bool>().unwrap()
    }

    #[test]
    fn nan_compares_false_but_for_not_equal() {
        let (a, b) = (Tensor::from([1.0f32, f32::NAN, 0.0]), Tensor::from([1.0f32, f32::NAN, -0.0]));
        assert_eq!(flags(a.equal(&b)), [true, false, true]);
        assert_eq!(flags(a.not_equal(&b)), [false, true, false]);
        assert_eq!(flags(a.less_equal(&b)), [true, false, true]);
        assert_eq!(flags(a.greater(&b)), [false, false, false]);
    }

    #[test]
    fn numbers_rows_and_bools_are_compared() {
        let x = Tensor::from([[1i64, 5], [7, 3]]);
        assert_eq!(flags(x.greater_equal(5)), [false, true, true, false]);
        assert_eq!(flags(x.less(Tensor::from([6i64, 4]))), [true, false, false, true]);
        assert_eq!(flags(Tensor::from([true, false]).equal(Tensor::from([true, true]))), [true, false]);
        assert!(x.less(0.5).is_err() && x.less(Tensor::from([1i32])).is_err());
    }
}
