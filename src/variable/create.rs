//! Creation of a variable in the scope of a thread, with the value that waits for it.

use super::{Variable, getter, overlay, waiting};
use crate::dry;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::scope::full_name;
use crate::tensor::{Shape, Tensor};

impl Variable {
    /// A trainable variable named `name` in the current scope, as in `linear/w`. Of a dtype that is not a float type it
    /// is not trainable.
    ///
    /// It starts with the value that a restore left for it; only if there is none does `init` run.
    ///
    /// ```
    /// use couplet::{DType, Scope, Variable, init};
    /// let scope = Scope::new("linear");
    /// let _in = scope.enter();
    /// let w = Variable::new("w", &[3, 2], DType::F32, init::TruncatedNormal::new(0.5))?;
    /// assert_eq!(w.name(), "linear/w");
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// The value that waits, or that of `init`, has another shape or dtype, or `init` failed.
    pub fn new(name: &str, shape: &[usize], dtype: DType, init: impl Initializer) -> Result<Self> {
        let shape = Shape::from(shape);
        Self::create(name, &shape, dtype, true, || init.init(&shape, dtype))
    }

    /// As [`new`](Variable::new), but not trainable: a counter, a moving average.
    ///
    /// # Errors
    /// As there.
    pub fn non_trainable(name: &str, shape: &[usize], dtype: DType, init: impl Initializer) -> Result<Self> {
        let shape = Shape::from(shape);
        Self::create(name, &shape, dtype, false, || init.init(&shape, dtype))
    }

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
        overlay::check_creation(&name)?;
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
        let variable = Variable::build(name, value.clone(), trainable);
        if op == "restore" {
            variable.was_restored(&value);
        }
        getter::made(&variable);
        Ok(variable)
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
    fn a_variable_starts_as_its_initialiser_says() {
        let w = Variable::new("w", &[2], DType::F32, crate::init::Ones).unwrap();
        assert!(w.trainable() && w.peek().to_vec::<f32>().unwrap() == [1.0, 1.0]);
        let step = Variable::non_trainable("t", &[], DType::I64, crate::init::Zeros).unwrap();
        assert!(!step.trainable() && step.peek().item::<i64>().unwrap() == 0);
        let wrong = |_: &Shape, dtype: DType| Tensor::zeros([3], dtype);
        assert!(Variable::new("w", &[2], DType::F32, wrong).is_err());
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
