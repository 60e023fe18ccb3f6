//! Whether any or all elements hold, and how many.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::layout::View;
use crate::kernels::reduce;
use crate::tensor::Tensor;

use super::apply;
use super::gradient::Gradient;
use super::op::{Computed, Inputs, Mask, Op, Saved};
use super::reduction::Reduction;
use super::registry::{Listed, Sample};
use super::sum::Axes;

fn reduced(
    op: &'static str,
    r: &Reduction,
    inputs: &Inputs<'_, '_>,
    f: impl Fn(View<'_, bool>, &[bool], &mut [bool]),
) -> Result<Computed> {
    let x = inputs.get(0)?;
    r.check(op, x)?;
    if x.dtype() != DType::Bool {
        return Err(Error::dtype(op, "the input", x.dtype(), "bool; compare it, or convert it with cast"));
    }
    r.fill::<bool, bool>(x, f).map(Computed::from)
}

/// `y` holds where any element of `x` over the marked axes does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Any(Reduction);

impl Op for Any {
    fn name(&self) -> &'static str {
        "any"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        reduced("any", &self.0, inputs, reduce::any)
    }

    fn gradient(&self, _: &Saved, _: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        Ok(vec![None])
    }
}

impl Listed for Any {
    fn samples() -> Vec<Sample> {
        Reduction::bool_samples(Any)
    }
}

/// `y` holds where all elements of `x` over the marked axes do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct All(Reduction);

impl Op for All {
    fn name(&self) -> &'static str {
        "all"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        reduced("all", &self.0, inputs, reduce::all)
    }

    fn gradient(&self, _: &Saved, _: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        Ok(vec![None])
    }
}

impl Listed for All {
    fn samples() -> Vec<Sample> {
        Reduction::bool_samples(All)
    }
}

impl Tensor {
    /// Whether any element holds, a scalar; false if there are none.
    ///
    /// # Errors
    /// The dtype is not bool.
    pub fn any(&self) -> Result<Tensor> {
        self.any_axes((), false)
    }

    /// Whether any element over `axes` holds; the axes are dropped, or stay at size 1 with `keep_dims`.
    ///
    /// # Errors
    /// An axis is out of range or named twice, or the dtype is not bool.
    pub fn any_axes(&self, axes: impl Axes, keep_dims: bool) -> Result<Tensor> {
        apply(Any(Reduction::new("any", self, axes, keep_dims)?), [self])
    }

    /// Whether all elements hold, a scalar; true if there are none.
    ///
    /// # Errors
    /// The dtype is not bool.
    pub fn all(&self) -> Result<Tensor> {
        self.all_axes((), false)
    }

    /// Whether all elements over `axes` hold; the axes are dropped, or stay at size 1 with `keep_dims`.
    ///
    /// # Errors
    /// An axis is out of range or named twice, or the dtype is not bool.
    pub fn all_axes(&self, axes: impl Axes, keep_dims: bool) -> Result<Tensor> {
        apply(All(Reduction::new("all", self, axes, keep_dims)?), [self])
    }

    /// How many elements are not 0 (or are true), a scalar `i64`. NaN is not 0.
    ///
    /// # Errors
    /// None today; the result is for symmetry with the other ops.
    pub fn count_nonzero(&self) -> Result<Tensor> {
        self.count_nonzero_axes((), false)
    }

    /// How many elements over `axes` are not 0 (or are true), as `i64`; the axes are dropped, or stay at size 1 with
    /// `keep_dims`.
    ///
    /// # Errors
    /// An axis is out of range or named twice.
    pub fn count_nonzero_axes(&self, axes: impl Axes, keep_dims: bool) -> Result<Tensor> {
        self.cast(DType::Bool)?.cast(DType::I64)?.sum_axes(axes, keep_dims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_holds_all_and_not_any() -> Result<()> {
        let none = Tensor::zeros([2, 0], DType::Bool)?;
        assert_eq!(none.any_axes(1, false)?.to_vec::<bool>()?, [false; 2]);
        assert!(none.all()?.item::<bool>()?);
        let x = Tensor::from([[true, false], [true, true]]);
        assert_eq!(x.any_axes(0, true)?.to_vec::<bool>()?, [true, true]);
        assert_eq!(x.all_axes(-1, false)?.to_vec::<bool>()?, [false, true]);
        assert!(Tensor::from([1]).any().unwrap_err().to_string().contains("bool"));
        Ok(())
    }

    #[test]
    fn nan_counts_and_minus_zero_does_not() -> Result<()> {
        let x = Tensor::from([[f32::NAN, -0.0], [0.0, 2.0]]);
        assert_eq!(x.count_nonzero_axes(0, false)?.to_vec::<i64>()?, [1, 1]);
        assert_eq!(Tensor::from([true, false, true]).count_nonzero()?.item::<i64>()?, 2);
        Ok(())
    }
}
