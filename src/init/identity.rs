//! The identity matrix.

use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::{Shape, Tensor};

use super::constant::expect_held;
use super::{Initializer, expect_matrix, expect_number};

/// `gain` on the diagonal of the last two axes and 0 elsewhere, repeated over the leading axes.
///
/// The matrix need not be square. Float dtypes, and integer dtypes that can hold the gain.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    gain: f64,
}

impl Identity {
    /// Ones on the diagonal.
    pub fn new() -> Self {
        Identity { gain: 1.0 }
    }

    /// The value on the diagonal. Default: 1.
    #[must_use]
    pub fn gain(mut self, gain: f64) -> Self {
        self.gain = gain;
        self
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self::new()
    }
}

impl Initializer for Identity {
    fn init(&self, shape: &Shape, dtype: DType) -> Result<Tensor> {
        expect_number("identity", dtype)?;
        expect_matrix("identity", shape)?;
        expect_held("identity", "gain", self.gain, dtype)?;
        let (rows, columns) = (shape[shape.rank() - 2], shape[shape.rank() - 1]);
        let eye = Tensor::eye(rows, columns, dtype)?;
        let scaled = (eye * Tensor::full([], self.gain, dtype)?)?;
        Ok(scaled.broadcast_to(shape.clone())?.to_contiguous())
    }

    fn describe(&self) -> String {
        format!("Identity(gain={})", self.gain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gain_lies_on_the_diagonal_of_each_matrix() {
        let y = Identity::new().gain(2.0).init(&Shape::from([2, 2, 3]), DType::F32).unwrap();
        let one = [2.0, 0.0, 0.0, 0.0, 2.0, 0.0];
        assert_eq!(y.to_vec::<f32>().unwrap(), [one, one].concat());
        let y = Identity::new().init(&Shape::from([2, 2]), DType::I32).unwrap();
        assert_eq!(y.to_vec::<i32>().unwrap(), [1, 0, 0, 1]);
    }

    #[test]
    fn a_vector_is_refused() {
        let message = Identity::new().init(&Shape::from([3]), DType::F32).unwrap_err().to_string();
        assert!(message.contains("rank 2 or more"), "{message}");
        assert!(Identity::new().gain(0.5).init(&Shape::from([2, 2]), DType::I32).is_err());
    }
}
