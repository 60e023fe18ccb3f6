//! Hyper-parameters: numbers, variables or schedules.

use std::fmt;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::module::{Copies, Description, Node, Visit};
use crate::variable::Variable;

use super::schedule::Schedule;

/// A number that an optimiser reads at each step.
///
/// Made by `into()` from
///
/// - an `f64` or `f32`;
/// - a [`Variable`] of one number, which may be assigned between steps, and is saved with the optimiser;
/// - a [`Schedule`] or a closure `|step: u64| -> f64`, where `step` counts the earlier steps of the optimiser.
///
/// The number is rounded to the type that the parameter is updated in: f32, or f64 for an f64 parameter.
#[derive(Clone)]
pub struct HyperParameter(Source);

#[derive(Clone)]
enum Source {
    Number(f64),
    Variable(Variable),
    Schedule(Arc<dyn Schedule>),
}

impl From<f64> for HyperParameter {
    fn from(value: f64) -> Self {
        HyperParameter(Source::Number(value))
    }
}

impl From<f32> for HyperParameter {
    /// The f32 as it is: `0.1f32` is 0.100000001490116.
    fn from(value: f32) -> Self {
        HyperParameter::from(f64::from(value))
    }
}

impl From<Variable> for HyperParameter {
    fn from(variable: Variable) -> Self {
        HyperParameter(Source::Variable(variable))
    }
}

impl From<&Variable> for HyperParameter {
    fn from(variable: &Variable) -> Self {
        HyperParameter::from(variable.clone())
    }
}

impl<S: Schedule> From<S> for HyperParameter {
    fn from(schedule: S) -> Self {
        HyperParameter(Source::Schedule(Arc::new(schedule)))
    }
}

impl HyperParameter {
    /// The number at a step, counted from 0.
    ///
    /// # Errors
    /// A variable holds more than one number, or a bool.
    pub fn at(&self, step: u64) -> Result<f64> {
        match &self.0 {
            Source::Number(value) => Ok(*value),
            Source::Schedule(schedule) => Ok(schedule.value(step)),
            Source::Variable(variable) => {
                if variable.shape().size() != 1 || variable.dtype() == DType::Bool {
                    let (dtype, shape) = (variable.dtype(), variable.shape());
                    let got = format!("variable {} of {dtype}{shape}", variable.name());
                    return Err(Error::argument("apply", "hyper-parameter", got, "a variable of one number"));
                }
                variable.peek().cast(DType::F64)?.item::<f64>()
            }
        }
    }

    /// The number at a step, which must be finite and lie in a range.
    pub(super) fn within(&self, name: &'static str, step: u64, range: impl RangeBounds<f64>) -> Result<f64> {
        let value = self.at(step)?;
        if value.is_finite() && range.contains(&value) {
            return Ok(value);
        }
        let got = match &self.0 {
            Source::Number(_) => value.to_string(),
            _ => format!("{value} ({self:?} at step {step})"),
        };
        let expected = match (range.start_bound(), range.end_bound()) {
            (Included(low), Excluded(high)) => format!("at least {low} and below {high}"),
            (Included(low), Included(high)) => format!("{low} to {high}"),
            (Included(low), Unbounded) => format!("a finite number, {low} or more"),
            _ => "a finite number".to_owned(),
        };
        Err(Error::argument("apply", name, got, expected))
    }

    /// Whether it depends on the step.
    pub(super) fn is_schedule(&self) -> bool {
        matches!(self.0, Source::Schedule(_))
    }
}

/// Two numbers are equal as numbers, two variables if they are the same one. A schedule equals nothing.
impl PartialEq for HyperParameter {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Source::Number(a), Source::Number(b)) => a == b,
            (Source::Variable(a), Source::Variable(b)) => a.id() == b.id(),
            _ => false,
        }
    }
}

impl fmt::Debug for HyperParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Number(value) => write!(f, "{value}"),
            Source::Variable(variable) => write!(f, "Variable({})", variable.name()),
            Source::Schedule(schedule) => f.write_str(&schedule.describe()),
        }
    }
}

impl Visit for HyperParameter {
    fn node(&self) -> Node<'_> {
        match &self.0 {
            Source::Variable(variable) => Node::Variable(variable),
            _ => Node::Nothing,
        }
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        match &self.0 {
            Source::Variable(variable) => HyperParameter::from(copies.variable(variable)),
            _ => self.clone(),
        }
    }

    fn describe(&self) -> Option<Description> {
        Some(Description::text(format_args!("{self:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;

    #[test]
    fn a_variable_is_read_at_each_step_whatever_its_dtype() {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::I32] {
            let v = Variable::from_tensor("rate", Tensor::full([], 2.0, dtype).unwrap());
            let h = HyperParameter::from(&v);
            assert_eq!(h.at(0).unwrap(), 2.0);
            v.assign(&Tensor::full([], 3.0, dtype).unwrap()).unwrap();
            assert_eq!(h.at(0).unwrap(), 3.0);
        }
        let v = Variable::from_tensor("rates", Tensor::from([1.0f32, 2.0]));
        assert!(HyperParameter::from(v).at(0).unwrap_err().to_string().contains("rates"));
    }

    #[test]
    fn a_bad_number_is_reported_with_its_source() {
        let halving = |step: u64| 1.0 / (2.0 - step as f64);
        let message = HyperParameter::from(halving).within("learning_rate", 2, ..).unwrap_err().to_string();
        assert_eq!(message, "apply: learning_rate is inf (<closure> at step 2), expected a finite number");
        let message = HyperParameter::from(1.0).within("beta1", 0, 0.0..1.0).unwrap_err().to_string();
        assert_eq!(message, "apply: beta1 is 1, expected at least 0 and below 1");
    }

    #[test]
    fn printed_numbers_are_those_given() {
        assert_eq!(format!("{:?}", HyperParameter::from(0.001)), "0.001");
        assert!(HyperParameter::from(0.9) == 0.9.into() && HyperParameter::from(0.9) != 0.9f32.into());
    }
}
