//! Product over axes.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernels::reduce;
use crate::tensor::Tensor;

use super::apply;
use super::arithmetic::for_number;
use super::op::{Saved, Saves, Unary};
use super::reduction::Reduction;
use super::registry::{Listed, Sample};
use super::sum::Axes;

/// `y` is the product of `x` over the marked axes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Prod(Reduction);

impl Unary for Prod {
    const NAME: &'static str = "prod";
    const SAVES: Saves = Saves::INPUTS;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        self.0.check("prod", &x)?;
        for_number!("prod", x.dtype(), [x], T => self.0.fill::<T, T>(&x, reduce::product))
    }

    /// `dx` is `dy` times the product of all other elements: those before and those after. No division, so that zeros
    /// do no harm.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        let x = saved.input(0)?;
        let order = self.0.order();
        let moved = x.transpose(&order)?;
        let outer = x.rank() - self.0.reduced().iter().filter(|&&r| r).count();
        let count = self.0.count();
        let lanes = moved.reshape([moved.shape()[..outer].iter().product(), count])?;
        let others = (lanes.cumprod(1, true, false)? * lanes.cumprod(1, true, true)?)?;
        let dx = (others * dy.reshape([lanes.shape()[0], 1])?)?.reshape(moved.shape().clone())?;
        let mut back = vec![0; order.len()];
        order.iter().enumerate().for_each(|(to, &from)| back[from as usize] = to as isize);
        dx.transpose(&back)
    }
}

impl Listed for Prod {
    fn samples() -> Vec<Sample> {
        Reduction::samples(Prod)
    }
}

impl Tensor {
    /// Product of all elements, a scalar. The empty product is 1. Integers wrap around; floats are multiplied in `f64`.
    ///
    /// # Errors
    /// The dtype is bool.
    pub fn prod(&self) -> Result<Tensor> {
        self.prod_axes((), false)
    }

    /// Product over `axes`, which are dropped, or stay at size 1 with `keep_dims`. Its gradient is right beside zeros
    /// too.
    ///
    /// # Errors
    /// An axis is out of range or named twice, or the dtype is bool.
    pub fn prod_axes(&self, axes: impl Axes, keep_dims: bool) -> Result<Tensor> {
        apply(Prod(Reduction::new("prod", self, axes, keep_dims)?), [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, GradientTape};

    #[test]
    fn zeros_leave_the_product_of_the_others() -> Result<()> {
        let x = Tensor::from([[0.0f64, 2.0, 3.0], [0.0, 0.0, 4.0], [1.0, 2.0, 3.0]]);
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = x.prod_axes(1, false)?;
        assert_eq!(y.to_vec::<f64>()?, [0.0, 0.0, 6.0]);
        let dx = tape.gradient(&y.sum()?, &[&x])?.remove(0).unwrap().to_dense()?;
        assert_eq!(dx.to_vec::<f64>()?, [6.0, 0.0, 0.0, 0.0, 0.0, 0.0, 6.0, 3.0, 2.0]);
        Ok(())
    }

    #[test]
    fn the_empty_product_is_one_and_large_factors_cancel() -> Result<()> {
        assert_eq!(Tensor::zeros([0], DType::F32)?.prod()?.item::<f32>()?, 1.0);
        // The first two alone would overflow f32.
        assert_eq!(Tensor::from([1e30f32, 1e30, 1e-30, 1e-30]).prod()?.item::<f32>()?, 1.0);
        assert_eq!(Tensor::from([[2u8, 3], [4, 5]]).prod_axes(0, true)?.to_vec::<u8>()?, [8, 15]);
        Ok(())
    }
}
