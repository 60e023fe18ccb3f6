//! One value everywhere.

use crate::dtype::{DType, Element, for_dtype};
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor};

use super::{Initializer, expect_number};

/// 0 everywhere; float and integer dtypes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Zeros;

impl Initializer for Zeros {
    fn init(&self, shape: &Shape, dtype: DType) -> Result<Tensor> {
        expect_number("zeros", dtype)?;
        Tensor::zeros(shape.clone(), dtype)
    }

    fn describe(&self) -> String {
        "Zeros()".to_owned()
    }
}

/// 1 everywhere; float and integer dtypes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ones;

impl Initializer for Ones {
    fn init(&self, shape: &Shape, dtype: DType) -> Result<Tensor> {
        expect_number("ones", dtype)?;
        Tensor::ones(shape.clone(), dtype)
    }

    fn describe(&self) -> String {
        "Ones()".to_owned()
    }
}

/// The same value everywhere; float dtypes, and integer dtypes that can hold it.
#[derive(Debug, Clone, Copy)]
pub struct Constant {
    value: f64,
}

impl Constant {
    /// `value` everywhere.
    pub fn new(value: impl Into<f64>) -> Self {
        Constant { value: value.into() }
    }
}

impl Initializer for Constant {
    fn init(&self, shape: &Shape, dtype: DType) -> Result<Tensor> {
        expect_number("constant", dtype)?;
        expect_held("constant", "value", self.value, dtype)?;
        Tensor::full(shape.clone(), self.value, dtype)
    }

    fn describe(&self) -> String {
        format!("Constant(value={})", self.value)
    }
}

/// Refuses a number that an integer dtype would change.
pub(super) fn expect_held(op: &'static str, argument: &'static str, value: f64, dtype: DType) -> Result<()> {
    let held = dtype.is_float() || for_dtype!(dtype, T => T::from_f64(value).to_f64()) == value;
    if held {
        Ok(())
    } else {
        Err(Error::argument(op, argument, value, format!("a value that {dtype} can hold")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_take_whole_numbers_that_fit_only() {
        let init = |value: f64, dtype| Constant::new(value).init(&Shape::from([2]), dtype);
        assert_eq!(init(3.0, DType::I32).unwrap().to_vec::<i32>().unwrap(), [3, 3]);
        for (value, dtype) in
            [(0.5, DType::I32), (f64::NAN, DType::I64), (300.0, DType::U8), (-1.0, DType::U64)]
        {
            let message = init(value, dtype).unwrap_err().to_string();
            assert!(message.contains(dtype.name()), "{message}");
        }
        assert_eq!(init(f64::INFINITY, DType::F32).unwrap().to_vec::<f32>().unwrap(), [f32::INFINITY; 2]);
    }

    #[test]
    fn a_scalar_is_one_value() {
        assert_eq!(Zeros.init(&Shape::from([]), DType::I64).unwrap().item::<i64>().unwrap(), 0);
        assert_eq!(Ones.init(&Shape::from([]), DType::U8).unwrap().item::<u8>().unwrap(), 1);
    }
}
