//! What can be differentiated with respect to.

use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::{Shape, Tensor};
use crate::variable::Variable;

/// What a tape can differentiate with respect to: a tensor or a variable.
pub trait Source {
    /// Where to look for it among what was recorded.
    #[doc(hidden)]
    fn key(&self) -> SourceKey<'_>;
}

/// A source by identity.
#[doc(hidden)]
#[derive(Debug)]
pub enum SourceKey<'a> {
    Tensor(&'a Tensor),
    Variable(&'a Variable),
}

impl Source for Tensor {
    fn key(&self) -> SourceKey<'_> {
        SourceKey::Tensor(self)
    }
}

impl Source for Variable {
    fn key(&self) -> SourceKey<'_> {
        SourceKey::Variable(self)
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn key(&self) -> SourceKey<'_> {
        (**self).key()
    }
}

impl SourceKey<'_> {
    pub(super) fn shape(&self) -> Shape {
        match self {
            SourceKey::Tensor(t) => t.shape().clone(),
            SourceKey::Variable(v) => v.shape().clone(),
        }
    }

    pub(super) fn dtype(&self) -> DType {
        match self {
            SourceKey::Tensor(t) => t.dtype(),
            SourceKey::Variable(v) => v.dtype(),
        }
    }

    /// A gradient of zeros.
    pub(super) fn zeros(&self) -> Result<Tensor> {
        Tensor::zeros(self.shape(), self.dtype())
    }
}
