//! The operators `+ - * /` and unary minus; each returns a `Result`.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::error::Result;
use crate::tensor::Tensor;

use super::apply;
use super::arithmetic;
use super::op::Input;
use super::operand::{Operand, number};

/// One operator, for tensors, results and numbers on the left and any [`Operand`] on the right.
macro_rules! operator {
    ($($Trait:ident, $method:ident, $Op:ident;)*) => {$(
        impl<'a, R: Operand<'a>> $Trait<R> for &'a Tensor {
            type Output = Result<Tensor>;
            fn $method(self, rhs: R) -> Result<Tensor> {
                let rhs = rhs.into_input(self)?;
                apply(arithmetic::$Op, [Input::Ref(self), rhs])
            }
        }

        impl<'a, R: Operand<'a>> $Trait<R> for Tensor {
            type Output = Result<Tensor>;
            fn $method(self, rhs: R) -> Result<Tensor> {
                let rhs = rhs.into_input(&self)?;
                apply(arithmetic::$Op, [Input::Own(self), rhs])
            }
        }

        impl $Trait<Tensor> for Result<Tensor> {
            type Output = Result<Tensor>;
            fn $method(self, rhs: Tensor) -> Result<Tensor> {
                $Trait::$method(self?, rhs)
            }
        }

        impl $Trait<&Tensor> for Result<Tensor> {
            type Output = Result<Tensor>;
            fn $method(self, rhs: &Tensor) -> Result<Tensor> {
                apply(arithmetic::$Op, [Input::Own(self?), Input::Ref(rhs)])
            }
        }

        // One float and one integer type, so that the type of a literal is never ambiguous.
        operator!(@numbers $Trait, $method, $Op; f64 i32);
    )*};
    (@numbers $Trait:ident, $method:ident, $Op:ident; $($t:ty)*) => {$(
        impl $Trait<Tensor> for $t {
            type Output = Result<Tensor>;
            fn $method(self, rhs: Tensor) -> Result<Tensor> {
                let lhs = number(f64::from(self), &rhs)?;
                apply(arithmetic::$Op, [Input::Own(lhs), Input::Own(rhs)])
            }
        }

        impl $Trait<&Tensor> for $t {
            type Output = Result<Tensor>;
            fn $method(self, rhs: &Tensor) -> Result<Tensor> {
                let lhs = number(f64::from(self), rhs)?;
                apply(arithmetic::$Op, [Input::Own(lhs), Input::Ref(rhs)])
            }
        }
    )*};
}

operator! {
    Add, add, Add;
    Sub, sub, Subtract;
    Mul, mul, Multiply;
    Div, div, Divide;
}

impl Neg for &Tensor {
    type Output = Result<Tensor>;
    fn neg(self) -> Result<Tensor> {
        apply(arithmetic::Negative, [self])
    }
}

impl Neg for Tensor {
    type Output = Result<Tensor>;
    fn neg(self) -> Result<Tensor> {
        apply(arithmetic::Negative, [self])
    }
}
