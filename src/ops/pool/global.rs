//! Pooling over all positions.

use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// The spatial axes, which lie between the batch and the channels.
fn spatial(op: &'static str, x: &Tensor) -> Result<Vec<isize>> {
    match x.rank() {
        0..3 => Err(Error::shape(op, "x", x.shape(), "rank 3 or more: batch, spatial axes and channels")),
        rank => Ok((1..rank as isize - 1).collect()),
    }
}

impl Tensor {
    /// The mean over all positions of `[batch, spatial.., channels]`: `[batch, channels]`, or with `keep_dims` the
    /// spatial axes stay at size 1. NaN where there are no positions.
    ///
    /// # Errors
    /// The rank is below 3, or the dtype is not a float.
    pub fn global_average_pool(&self, keep_dims: bool) -> Result<Tensor> {
        self.mean_axes(spatial("global_average_pool", self)?, keep_dims)
    }

    /// The largest value over all positions of `[batch, spatial.., channels]`: `[batch, channels]`, or with `keep_dims`
    /// the spatial axes stay at size 1. Equal values share the gradient, as for [`max_axes`](Tensor::max_axes).
    ///
    /// # Errors
    /// The rank is below 3, or the dtype is bool.
    pub fn global_max_pool(&self, keep_dims: bool) -> Result<Tensor> {
        self.max_axes(spatial("global_max_pool", self)?, keep_dims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn every_channel_is_pooled_over_its_positions() -> Result<()> {
        // Channel c of item n holds 12 n + 2 p + c at position p: 0 to 5.
        let x = Tensor::arange(0.0, 24.0, 1.0, DType::F64)?.reshape([2, 2, 3, 2])?;
        assert_eq!(x.global_average_pool(false)?.to_vec::<f64>()?, [5.0, 6.0, 17.0, 18.0]);
        let y = x.global_max_pool(true)?;
        assert_eq!((y.shape().dims(), y.to_vec::<f64>()?), (&[2, 1, 1, 2][..], vec![10.0, 11.0, 22.0, 23.0]));
        assert_eq!(Tensor::zeros([0, 4, 3], DType::F32)?.global_average_pool(false)?.shape(), &[0, 3]);
        assert!(Tensor::zeros([4, 3], DType::F32)?.global_max_pool(false).is_err());
        Ok(())
    }
}
