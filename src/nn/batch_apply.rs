//! A module over several batch dims.

use crate::error::{Error, Result};
use crate::module::Forward;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::{Module, scoped};

use super::leading_dims::{merge_leading_dims, split_leading_dim};

/// Applies a layer to inputs with several batch dims: the first `num_dims` are merged into one before and split again after.
///
/// The usual use is a layer for `[batch, ..]` on `[time, batch, ..]`. In files the layer is `module`.
///
/// ```
/// use couplet::prelude::*;
/// let layer = BatchApply::new(Conv2D::new(3, 3));
/// let video = Tensor::ones([5, 2, 8, 8, 1], DType::F32)?; // time, batch, height, width, channels
/// assert_eq!(layer.forward(&video)?.shape(), &[5, 2, 8, 8, 3]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(allow_empty_variables)]
pub struct BatchApply {
    scope: Scope,
    module: Box<dyn Forward>,
    #[module(default = 2)]
    num_dims: usize,
}

impl BatchApply {
    /// `module` with the first two dims merged.
    pub fn new(module: impl Forward + 'static) -> Self {
        BatchApply { scope: Scope::of::<Self>(), module: Box::new(module), num_dims: 2 }
    }

    /// How many leading dims to merge, 1 or more. Default: 2.
    #[must_use]
    pub fn num_dims(mut self, num_dims: usize) -> Self {
        self.num_dims = num_dims;
        self
    }

    fn apply(&self, x: &Tensor, f: impl FnOnce(Tensor) -> Result<Tensor>) -> Result<Tensor> {
        if x.rank() < self.num_dims {
            let expected = format!("rank {} or more", self.num_dims);
            return Err(Error::shape("batch_apply", "x", x.shape(), expected));
        }
        split_leading_dim(&f(merge_leading_dims(x, self.num_dims)?)?, x, self.num_dims)
    }
}

#[scoped]
impl Forward for BatchApply {
    /// # Errors
    /// The rank of `x` is below `num_dims`, the module refuses the merged input, or it changes the merged dim.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.apply(x, |x| self.module.forward(&x))
    }

    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        self.apply(x, |x| self.module.forward_t(&x, is_training))
    }
}
