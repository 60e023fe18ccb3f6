//! The largest and the smallest element over axes, and where they are.

use serde::{Deserialize, Serialize};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::layout::View;
use crate::kernels::reduce;
use crate::tensor::{Tensor, resolve_axis, take};

use super::apply;
use super::arithmetic::for_ordered;
use super::gradient::Gradient;
use super::op::{Computed, Inputs, Mask, Op, Saved, Saves, Unary};
use super::reduction::Reduction;
use super::registry::{Listed, Sample, SampleInput};
use super::sum::Axes;

/// `y` is the largest of `x` over the marked axes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Max(Reduction);

impl Unary for Max {
    const NAME: &'static str = "max";
    const SAVES: Saves = Saves::INPUTS_AND_OUTPUT;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        self.0.check("max", &x)?;
        if x.dtype() == DType::Bool {
            return Err(Error::dtype("max", "the input", x.dtype(), "a number dtype"));
        }
        let wide = x.ordered()?;
        for_ordered!(wide.dtype(), T => self.0.fill::<T, T>(&wide, reduce::max))?.converted(x.dtype())
    }

    /// `dy` in equal parts to the elements that are the largest.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        shared(&self.0, saved, dy)
    }
}

impl Listed for Max {
    fn samples() -> Vec<Sample> {
        Reduction::samples(Max)
    }
}

/// `y` is the smallest of `x` over the marked axes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Min(Reduction);

impl Unary for Min {
    const NAME: &'static str = "min";
    const SAVES: Saves = Saves::INPUTS_AND_OUTPUT;

    fn forward(&self, x: Tensor) -> Result<Tensor> {
        self.0.check("min", &x)?;
        if x.dtype() == DType::Bool {
            return Err(Error::dtype("min", "the input", x.dtype(), "a number dtype"));
        }
        let wide = x.ordered()?;
        for_ordered!(wide.dtype(), T => self.0.fill::<T, T>(&wide, reduce::min))?.converted(x.dtype())
    }

    /// `dy` in equal parts to the elements that are the smallest.
    fn gradient(&self, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
        shared(&self.0, saved, dy)
    }
}

impl Listed for Min {
    fn samples() -> Vec<Sample> {
        Reduction::samples(Min)
    }
}

/// `dx = dy c / sum(c)`, where `c` is 1 at the elements equal to the output, else 0.
fn shared(r: &Reduction, saved: &Saved, dy: &Tensor) -> Result<Tensor> {
    let (x, y) = (saved.input(0)?, saved.output()?.reshape(r.kept())?);
    let chosen = x.equal(&y)?.cast(dy.dtype())?;
    let each = (dy.reshape(r.kept())? / chosen.sum_axes(r.axes(), true)?)?;
    chosen * each
}

/// `y` is the index along one axis of the largest element, the first of equal ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ArgMax {
    axis: usize,
}

impl Op for ArgMax {
    fn name(&self) -> &'static str {
        "argmax"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let x = inputs.get(0)?;
        if x.dtype() == DType::Bool {
            return Err(Error::dtype("argmax", "x", x.dtype(), "a number dtype"));
        }
        let x = x.ordered()?;
        for_ordered!(x.dtype(), T => index::<T>("argmax", &x, self.axis, reduce::argmax))
    }

    fn gradient(&self, _: &Saved, _: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        Ok(vec![None])
    }
}

impl Listed for ArgMax {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(ArgMax { axis: 1 }, [SampleInput::float(&[2, 3])])]
    }
}

/// `y` is the index along one axis of the smallest element, the first of equal ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ArgMin {
    axis: usize,
}

impl Op for ArgMin {
    fn name(&self) -> &'static str {
        "argmin"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let x = inputs.get(0)?;
        if x.dtype() == DType::Bool {
            return Err(Error::dtype("argmin", "x", x.dtype(), "a number dtype"));
        }
        let x = x.ordered()?;
        for_ordered!(x.dtype(), T => index::<T>("argmin", &x, self.axis, reduce::argmin))
    }

    fn gradient(&self, _: &Saved, _: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        Ok(vec![None])
    }
}

impl Listed for ArgMin {
    fn samples() -> Vec<Sample> {
        vec![Sample::new(ArgMin { axis: 0 }, [SampleInput::float(&[2, 3])])]
    }
}

/// `find` along `axis`, which must not be empty.
fn index<T: Element>(
    op: &'static str,
    x: &Tensor,
    axis: usize,
    find: impl Fn(View<'_, T>, usize, &mut [i64]),
) -> Result<Computed> {
    let r = Reduction::new(op, x, axis as isize, false)?;
    if r.count() == 0 {
        return Err(Error::shape(op, "x", x.shape(), format!("at least one element along axis {axis}")));
    }
    let mut y = take::<i64>(r.to().size());
    find(x.view::<T>()?, axis, &mut y);
    Ok(Tensor::from_taken(y, r.to()).into())
}

impl Tensor {
    /// The largest of all elements, a scalar; -inf (or the lowest integer) if there are none, NaN if one is NaN.
    ///
    /// Equal elements share the gradient.
    ///
    /// # Errors
    /// The dtype is bool.
    pub fn max(&self) -> Result<Tensor> {
        self.max_axes((), false)
    }

    /// The largest element over `axes`, which are dropped, or stay at size 1 with `keep_dims`.
    ///
    /// # Errors
    /// An axis is out of range or named twice, or the dtype is bool.
    pub fn max_axes(&self, axes: impl Axes, keep_dims: bool) -> Result<Tensor> {
        apply(Max(Reduction::new("max", self, axes, keep_dims)?), [self])
    }

    /// The smallest of all elements, a scalar; inf (or the highest integer) if there are none, NaN if one is NaN.
    ///
    /// Equal elements share the gradient.
    ///
    /// # Errors
    /// The dtype is bool.
    pub fn min(&self) -> Result<Tensor> {
        self.min_axes((), false)
    }

    /// The smallest element over `axes`, which are dropped, or stay at size 1 with `keep_dims`.
    ///
    /// # Errors
    /// An axis is out of range or named twice, or the dtype is bool.
    pub fn min_axes(&self, axes: impl Axes, keep_dims: bool) -> Result<Tensor> {
        apply(Min(Reduction::new("min", self, axes, keep_dims)?), [self])
    }

    /// Index along `axis` of the largest element, the first of equal ones, as `i64`; the axis is dropped. NaN never
    /// wins, and a lane of nothing but NaN gives 0.
    ///
    /// # Errors
    /// The axis is out of range or has no elements, or the dtype is bool.
    pub fn argmax(&self, axis: isize) -> Result<Tensor> {
        let axis = resolve_axis("argmax", axis, self.rank())?;
        apply(ArgMax { axis }, [self])
    }

    /// Index along `axis` of the smallest element; otherwise as [`argmax`](Tensor::argmax).
    ///
    /// # Errors
    /// The axis is out of range or has no elements, or the dtype is bool.
    pub fn argmin(&self, axis: isize) -> Result<Tensor> {
        let axis = resolve_axis("argmin", axis, self.rank())?;
        apply(ArgMin { axis }, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, GradientTape};

    #[test]
    fn nothing_has_an_infinite_extreme_and_nan_wins() -> Result<()> {
        let none = Tensor::zeros([2, 0], DType::F32)?;
        assert_eq!(none.max_axes(1, false)?.to_vec::<f32>()?, [f32::NEG_INFINITY; 2]);
        assert_eq!(none.min()?.item::<f32>()?, f32::INFINITY);
        assert_eq!(Tensor::zeros([0], DType::I8)?.max()?.item::<i8>()?, i8::MIN);
        let x = Tensor::from([[1.0f32, f32::NAN], [-0.5, -2.0]]);
        let y = x.max_axes(-1, false)?.to_vec::<f32>()?;
        assert!(y[0].is_nan() && y[1] == -0.5);
        Ok(())
    }

    #[test]
    fn ties_share_the_gradient() -> Result<()> {
        let x = Tensor::from([[3.0f64, 1.0, 3.0], [2.0, 2.0, 2.0]]);
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = x.max_axes(1, false)?;
        let g = tape.gradient_with_seed(&y, &Tensor::from([4.0f64, 6.0]), &[&x])?;
        assert_eq!(g[0].as_ref().unwrap().dense()?.to_vec::<f64>()?, [2.0, 0.0, 2.0, 2.0, 2.0, 2.0]);
        Ok(())
    }

    #[test]
    fn the_first_of_equal_elements_is_found_and_nan_never() -> Result<()> {
        let nan = f32::NAN;
        let x = Tensor::from([[1.0, nan, 2.0, 2.0], [nan, nan, nan, nan], [0.0, -0.0, 0.0, -7.0]]);
        assert_eq!(x.argmax(1)?.to_vec::<i64>()?, [2, 0, 0]);
        assert_eq!(x.argmin(-1)?.to_vec::<i64>()?, [0, 0, 3]);
        assert_eq!(x.t()?.argmax(0)?.to_vec::<i64>()?, [2, 0, 0]);
        Ok(())
    }

    #[test]
    fn an_empty_axis_has_no_index_but_an_empty_batch_has_none_to_give() -> Result<()> {
        let message = Tensor::zeros([2, 0], DType::F32)?.argmax(1).unwrap_err().to_string();
        assert!(message.starts_with("argmax: x has shape [2, 0]"), "{message}");
        assert_eq!(Tensor::zeros([0, 3], DType::F32)?.argmax(1)?.shape(), &[0]);
        assert!(Tensor::from([1.0f32]).argmin(1).is_err());
        Ok(())
    }
}
