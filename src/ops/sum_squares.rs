//! Sum of squares.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernels::sum_squares::sum_squares;
use crate::tensor::Tensor;

use super::apply;
use super::function::for_float;
use super::op::{Saved, Saves, Unary};
use super::registry::{Listed, Sample, SampleInput};

/// `y = sum(x^2)`, a scalar of dtype f64.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SumSquares;

impl Unary for SumSquares {
    const NAME: &'static str = "sum_squares";
    const SAVES: Saves = Saves::INPUTS;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        for_float!("sum_squares", x.dtype(), T => {
            let x = x.to_contiguous();
            Ok(Tensor::from(sum_squares(x.as_slice::<T>()?.unwrap_or(&[]))))
        })
    }

    /// `dx = 2 dy x`.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        let x = saved.input(0)?;
        x * (dy * 2.0)?.cast(x.dtype())?
    }
}

impl Listed for SumSquares {
    fn samples() -> Vec<Sample> {
        let shapes: [&[usize]; 3] = [&[2, 3], &[], &[0, 2]];
        shapes.iter().map(|shape| Sample::new(SumSquares, [SampleInput::float(shape)])).collect()
    }
}

impl Tensor {
    /// Sum of the squares of all elements, a scalar of dtype f64 whatever the input's, computed in f64.
    ///
    /// # Errors
    /// The dtype is not a float type.
    pub fn sum_squares(&self) -> Result<Tensor> {
        apply(SumSquares, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autodiff::GradientTape;

    #[test]
    fn the_gradient_has_the_dtype_of_the_input() {
        let x = Tensor::from([3.0f32, -4.0]);
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = x.sum_squares().unwrap();
        assert_eq!(y.item::<f64>().unwrap(), 25.0);
        let dx = tape.gradient(&y, &[&x]).unwrap().remove(0).unwrap();
        assert_eq!(dx.dense().unwrap().to_vec::<f32>().unwrap(), [6.0, -8.0]);
    }
}
