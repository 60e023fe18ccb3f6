//! Creation of a variable in the scope of a thread, with the value that waits for it.

use super::{Variable, waiting};
use crate::dry;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::scope::full_name;
use crate::tensor::{Shape, Tensor};

impl Variable {
    /// A variable named `name` in the current scope. It starts with the value that a restore left for it; only if there is
    /// none does `init` run.
    ///
    /// # Errors
    /// The value that waits, or that of `init`, has another shape or dtype, or `init` failed.
    pub(crate) fn create(
        name: &str,
        shape: &Shape,
        dtype: DType,
        trainable: bool,
        init: impl FnOnce() -> Result<Tensor>,
    ) -> Result<Self> {
        let name = full_name(name);
        let (op, value) = match waiting::take() {
            Some(value) => ("restore", value),
            None if dry::is_blank() => ("initialise", Tensor::zeros(shape.clone(), dtype)?),
            None => ("initialise", dry::initialising(init)?),
        };
        if value.shape() != shape {
            return Err(Error::shape(op, format!("the value for {name}"), value.shape(), shape.to_string()));
        }
        if value.dtype() != dtype {
            return Err(Error::dtype(op, format!("the value for {name}"), value.dtype(), dtype.name()));
        }
        Ok(Variable::build(name, value, trainable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_value_is_taken_in_place_of_the_initialiser() {
        let never = || -> Result<Tensor> { panic!("the initialiser ran") };
        let make = || Variable::create("v", &Shape::from([2]), DType::F32, true, never);
        let (made, left) = waiting::with(Some(Tensor::from([1.0f32, 2.0])), make);
        assert_eq!(made.unwrap().peek().to_vec::<f32>().unwrap(), [1.0, 2.0]);
        assert!(left.is_none());
    }

    #[test]
    fn a_value_of_another_shape_or_dtype_is_refused_with_both() {
        let make = |value: Tensor| {
            let made = Variable::create("v", &Shape::from([2]), DType::F32, true, || Ok(value));
            made.unwrap_err().to_string()
        };
        let message = make(Tensor::from([1.0f32]));
        assert!(message.contains("for v has shape [1], expected [2]"), "{message}");
        let message = make(Tensor::from([1i64, 2]));
        assert!(message.contains("for v has dtype i64, expected f32"), "{message}");
    }
}
