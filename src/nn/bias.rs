//! Bias layer.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::module::{Forward, Once};
use crate::ops::Operand;
use crate::scope::Scope;
use crate::tensor::{Shape, Tensor};
use crate::variable::Variable;
use crate::{Module, scoped};

use super::linear::zeros_init;

/// Adds a learned offset: `y = x + b`, or `y = x + b multiplier`.
///
/// | tensor | shape |
/// |---|---|
/// | `x`, `y` | `[batch, d1, ..]`, rank 2 or more |
/// | `b` | the dims in `bias_dims`, 1 at the others; the batch and leading dims of size 1 are left out |
///
/// `b` starts at 0 and takes the dtype of the first input.
#[derive(Module)]
pub struct Bias {
    scope: Scope,
    output_size: Option<Vec<usize>>,
    bias_dims: Option<Vec<isize>>,
    b_init: Option<Arc<dyn Initializer>>,
    b: Once<Variable>,
}

impl Default for Bias {
    fn default() -> Self {
        Self::new()
    }
}

impl Bias {
    /// A bias over all dims but the batch.
    pub fn new() -> Self {
        Bias { scope: Scope::of::<Self>(), output_size: None, bias_dims: None, b_init: None, b: Once::new() }
    }

    /// The shape without the batch that inputs must have. Default: that of the first input.
    #[must_use]
    pub fn output_size(mut self, size: impl Into<Vec<usize>>) -> Self {
        self.output_size = Some(size.into());
        self
    }

    /// The axes of `x` along which the bias varies; negative ones count from the end, the batch (0) is not allowed.
    /// Empty: one number for all. Default: all but the batch.
    #[must_use]
    pub fn bias_dims(mut self, dims: impl Into<Vec<isize>>) -> Self {
        self.bias_dims = Some(dims.into());
        self
    }

    /// Initialiser of `b`. Default: `Zeros`.
    #[must_use]
    pub fn b_init(mut self, init: impl Initializer) -> Self {
        self.b_init = Some(Arc::new(init));
        self
    }

    fn bias_shape(&self, x: &Tensor) -> Result<Shape> {
        let rank = x.rank();
        if rank < 2 {
            return Err(Error::shape("bias", "x", x.shape(), "rank 2 or more"));
        }
        if let Some(size) = &self.output_size
            && x.shape()[1..] != size[..]
        {
            return Err(Error::shape("bias", "x", x.shape(), format!("[batch, {size:?}]")));
        }
        let Some(dims) = &self.bias_dims else { return Ok(Shape::from(&x.shape()[1..])) };
        let mut shape = vec![1; rank];
        for &dim in dims {
            let position = if dim < 0 { dim + rank as isize } else { dim };
            if position < 0 || position >= rank as isize {
                let expected = format!("axes of the input's rank {rank}");
                return Err(Error::argument("bias", "bias_dims", format!("{dims:?} with {dim}"), expected));
            }
            if position == 0 {
                let expected = "axes other than 0: a bias across the minibatch is not allowed";
                return Err(Error::argument("bias", "bias_dims", format!("{dims:?}"), expected));
            }
            shape[position as usize] = x.shape()[position as usize];
        }
        let first = (1..rank).find(|&axis| shape[axis] != 1).unwrap_or(rank);
        Ok(Shape::from(&shape[first..]))
    }
}

#[scoped]
impl Bias {
    /// `x + b multiplier`; the multiplier is a number or a tensor that broadcasts with `b`.
    ///
    /// # Errors
    /// As for [`forward`](Forward::forward).
    pub fn forward_scaled<'a>(&self, x: &Tensor, multiplier: impl Operand<'a>) -> Result<Tensor> {
        let b = self.bias(x)?;
        x + (b * multiplier)?
    }

    fn bias(&self, x: &Tensor) -> Result<&Variable> {
        let shape = self.bias_shape(x)?;
        if let Some(b) = self.b.get()
            && *b.shape() != shape
        {
            let expected = format!("one that fits the bias of shape {} of the first call", b.shape());
            return Err(Error::shape("bias", "x", x.shape(), expected));
        }
        self.b.get_or_init(|| Variable::new("b", &shape, x.dtype(), zeros_init(self.b_init.as_ref())))
    }
}

#[scoped]
impl Forward for Bias {
    /// # Errors
    /// `x` has a rank below 2 or another shape than expected, or `bias_dims` names the batch or no axis of `x`.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x + self.bias(x)?
    }
}
