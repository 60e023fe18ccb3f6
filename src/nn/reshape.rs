//! Reshaping layers.

use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::module::Forward;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::{Module, scoped};

/// Keeps the first `preserve_dims` dims and reshapes the rest to `output_shape`, one entry of which may be `-1`.
///
/// ```
/// use couplet::prelude::*;
/// let x = Tensor::zeros([2, 3, 4], DType::F32)?;
/// let reshape = Reshape::new([-1, 2]);
/// assert_eq!(reshape.forward(&x)?.shape(), &[2, 6, 2]);
/// assert_eq!(reshape.reversed()?.forward(&reshape.forward(&x)?)?.shape(), &[2, 3, 4]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(allow_empty_variables)]
pub struct Reshape {
    scope: Scope,
    output_shape: Vec<isize>,
    #[module(default = 1)]
    preserve_dims: usize,
    /// The reshaped dims of the first input, for `reversed`.
    #[module(skip)]
    first: OnceLock<Vec<usize>>,
}

impl Reshape {
    /// A layer that keeps the batch and reshapes the rest.
    pub fn new(output_shape: impl Into<Vec<isize>>) -> Self {
        let scope = Scope::of::<Self>();
        Reshape { scope, output_shape: output_shape.into(), preserve_dims: 1, first: OnceLock::new() }
    }

    /// How many leading dims to keep, 1 or more. Default: 1.
    #[must_use]
    pub fn preserve_dims(mut self, preserve_dims: usize) -> Self {
        self.preserve_dims = preserve_dims;
        self
    }

    /// A layer that undoes this one: it restores the dims of the first input. It is called `<name>_reversed`.
    ///
    /// # Errors
    /// The layer was not called yet.
    pub fn reversed(&self) -> Result<Reshape> {
        reversed(&self.scope, self.first.get(), self.preserve_dims)
    }
}

fn reversed(scope: &Scope, first: Option<&Vec<usize>>, preserve_dims: usize) -> Result<Reshape> {
    let Some(first) = first else {
        let cure = "call it on an input first, so that it knows the shape to restore";
        return Err(Error::usage("reversed", format!("{} was not called yet", scope.name()), cure));
    };
    let shape: Vec<isize> = first.iter().map(|&d| d as isize).collect();
    Ok(Reshape::new(shape).preserve_dims(preserve_dims).name(&format!("{}_reversed", scope.name())))
}

/// `x` with its first `preserve_dims` dims kept and the rest reshaped to `output_shape`, one entry of which may be `-1`; the
/// function of [`Reshape`].
///
/// # Errors
/// `x` has fewer dims than are kept, or not the number of elements that `output_shape` asks for.
pub fn reshape(x: &Tensor, output_shape: &[isize], preserve_dims: usize) -> Result<Tensor> {
    Ok(reshaped("reshape", x, output_shape, preserve_dims)?.0)
}

/// `x` with its first `preserve_dims` dims kept and the rest made one; the function of [`Flatten`].
///
/// # Errors
/// `x` has fewer dims than are kept.
pub fn flatten(x: &Tensor, preserve_dims: usize) -> Result<Tensor> {
    Ok(reshaped("flatten", x, &[-1], preserve_dims)?.0)
}

/// The reshaped tensor, and the dims that were replaced.
fn reshaped(
    op: &'static str,
    x: &Tensor,
    output_shape: &[isize],
    preserve_dims: usize,
) -> Result<(Tensor, Vec<usize>)> {
    if preserve_dims == 0 {
        return Err(Error::argument(op, "preserve_dims", 0, "1 or more"));
    }
    if x.rank() < preserve_dims {
        let expected =
            format!("rank {preserve_dims} or more, as preserve_dims says; the rank is {}", x.rank());
        return Err(Error::shape(op, "x", x.shape(), expected));
    }
    let (kept, rest) = x.shape().split_at(preserve_dims);
    let mut shape = kept.to_vec();
    let unknown = output_shape.iter().filter(|&&d| d == -1).count();
    if unknown > 1 || output_shape.iter().any(|&d| d < -1) {
        let expected = "sizes of 0 or more, and at most one -1";
        return Err(Error::argument(op, "output_shape", format!("{output_shape:?}"), expected));
    }
    let size: usize = rest.iter().product();
    let known: usize = output_shape.iter().filter(|&&d| d >= 0).fold(1, |n, &d| n.saturating_mul(d as usize));
    let inferred = size.checked_div(known).unwrap_or(0);
    let total = if unknown == 1 { known.saturating_mul(inferred) } else { known };
    if total != size {
        let expected = format!(
            "{size} elements after the first {preserve_dims} dims, as the input of shape {} has",
            x.shape()
        );
        return Err(Error::argument(op, "output_shape", format!("{output_shape:?}"), expected));
    }
    shape.extend(output_shape.iter().map(|&d| if d == -1 { inferred } else { d as usize }));
    Ok((x.reshape(shape)?, rest.to_vec()))
}

#[scoped]
impl Forward for Reshape {
    /// # Errors
    /// `x` has fewer dims than are kept, or not the number of elements that `output_shape` asks for.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (y, rest) = reshaped("reshape", x, &self.output_shape, self.preserve_dims)?;
        self.first.get_or_init(|| rest);
        Ok(y)
    }
}

/// Joins all dims after the first `preserve_dims` into one: `[10, 2, 3]` becomes `[10, 6]`.
///
/// ```
/// use couplet::prelude::*;
/// let x = Tensor::zeros([10, 2, 3], DType::F32)?;
/// assert_eq!(Flatten::new().forward(&x)?.shape(), &[10, 6]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(allow_empty_variables)]
pub struct Flatten {
    scope: Scope,
    #[module(default = 1)]
    preserve_dims: usize,
    #[module(skip)]
    first: OnceLock<Vec<usize>>,
}

impl Default for Flatten {
    fn default() -> Self {
        Self::new()
    }
}

impl Flatten {
    /// A layer that keeps the batch.
    pub fn new() -> Self {
        Flatten { scope: Scope::of::<Self>(), preserve_dims: 1, first: OnceLock::new() }
    }

    /// How many leading dims to keep, 1 or more. Default: 1.
    #[must_use]
    pub fn preserve_dims(mut self, preserve_dims: usize) -> Self {
        self.preserve_dims = preserve_dims;
        self
    }

    /// A layer that undoes this one: it restores the dims of the first input. It is called `<name>_reversed`.
    ///
    /// # Errors
    /// The layer was not called yet.
    pub fn reversed(&self) -> Result<Reshape> {
        reversed(&self.scope, self.first.get(), self.preserve_dims)
    }
}

#[scoped]
impl Forward for Flatten {
    /// # Errors
    /// `x` has fewer dims than are kept.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (y, rest) = reshaped("flatten", x, &[-1], self.preserve_dims)?;
        self.first.get_or_init(|| rest);
        Ok(y)
    }
}
