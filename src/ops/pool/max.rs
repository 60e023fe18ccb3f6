//! Max pooling: its gradient goes to the one position that was the largest.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::pool;
use crate::ops::apply;
use crate::ops::conv::Padding;
use crate::ops::gradient::Gradient;
use crate::ops::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use crate::ops::real::{for_real, real_dtype};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::tensor::{Shape, Tensor, take};

use super::{Pool, expect_shape};

/// `y[o]` is the largest `x[i]` of window `o`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MaxPool {
    pub(super) pool: Pool,
    pub(super) from: Shape,
}

impl Op for MaxPool {
    fn name(&self) -> &'static str {
        "max_pool"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let x = inputs.get(0)?;
        let real = real_dtype("max_pool", "x", x)?;
        expect_shape("max_pool", "x", x, &self.from)?;
        let (g, shape) = self.pool.geometry("max_pool", x.shape())?;
        let size = crate::tensor::checked_size("max_pool", &shape, x.dtype())?;
        let from = self.pool.channels_last(x).converted(real)?.to_contiguous();
        let mut argmax = take::<u32>(size);
        let y = for_real!(real, T => {
            let mut y = take::<T>(size);
            pool::max_pool(&g, from.as_slice::<T>()?.unwrap_or(&[]), &mut y, &mut argmax);
            Tensor::from_taken(y, shape.clone())
        });
        let y = self.pool.in_layout(&y.converted(x.dtype())?);
        Ok(Computed::from(y).saving(Tensor::from_taken(argmax, shape)))
    }

    /// `dx[i]` is the sum of `dy[o]` over the windows whose largest value is at `i`.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None]) };
        let op = MaxPoolGradient { pool: self.pool.clone(), to: self.from.clone() };
        let dx = apply(op, [dy, saved.extra(0)?])?;
        Ok(vec![Some(Gradient::Dense(dx))])
    }
}

impl Listed for MaxPool {
    fn samples() -> Vec<Sample> {
        let sample =
            |pool: Pool, x: &[usize]| Sample::new(MaxPool { pool, from: x.into() }, [SampleInput::float(x)]);
        vec![
            sample(Pool::new([2]), &[2, 5, 3]),
            sample(Pool::new([3, 2]).stride([2, 1]).padding(Padding::Same), &[2, 5, 4, 3]),
            sample(Pool::new([2, 2]).stride([1, 1]).channels_first(), &[2, 2, 3, 4]),
            sample(Pool::new([2, 1, 2]).padding(Padding::Same).channels_first(), &[1, 2, 3, 2, 3]),
            sample(Pool::new([1]), &[1, 1, 1]),
            sample(Pool::new([2]).padding(Padding::Same), &[2, 0, 3]),
        ]
    }
}

/// Where the largest values are, as the kernels want it: `u32`, contiguous, channels last.
fn places(op: &'static str, argmax: &Tensor, shape: &Shape) -> Result<Tensor> {
    if !argmax.dtype().is_integer() {
        return Err(Error::dtype(op, "argmax", argmax.dtype(), "an integer dtype"));
    }
    expect_shape(op, "argmax", argmax, shape)?;
    Ok(argmax.converted(DType::U32)?.to_contiguous())
}

/// `dx[i]` is the sum of `dy[o]` over the windows `o` with `argmax[o] = i`; inputs `dy` and `argmax`, which counts
/// positions row by row and has its channels last.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MaxPoolGradient {
    pool: Pool,
    to: Shape,
}

impl Op for MaxPoolGradient {
    fn name(&self) -> &'static str {
        "max_pool_gradient"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::inputs(Mask::only(1))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (dy, argmax) = (inputs.get(0)?, inputs.get(1)?);
        let real = real_dtype("max_pool_gradient", "dy", dy)?;
        let (g, shape) = self.pool.geometry("max_pool_gradient", &self.to)?;
        let from = self.pool.channels_last(dy).converted(real)?.to_contiguous();
        expect_shape("max_pool_gradient", "dy", &from, &shape)?;
        let argmax = places("max_pool_gradient", argmax, &shape)?;
        let size = crate::tensor::checked_size("max_pool_gradient", &self.to, dy.dtype())?;
        let argmax = argmax.as_slice::<u32>()?.unwrap_or(&[]);
        let dx = for_real!(real, T => {
            let mut dx = take::<T>(size);
            pool::max_pool_gradient(&g, from.as_slice::<T>()?.unwrap_or(&[]), argmax, &mut dx);
            Tensor::from_taken(dx, self.pool.channels_last_shape(&self.to))
        });
        Ok(self.pool.in_layout(&dx.converted(dy.dtype())?).into())
    }

    /// With `z` the gradient of `dx`: that of `dy[o]` is `z[argmax[o]]`.
    fn gradient(&self, saved: &Saved, z: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(z)) = z.first() else { return Ok(vec![None, None]) };
        let of_dy =
            apply(MaxPoolSelect { pool: self.pool.clone(), from: self.to.clone() }, [z, saved.input(1)?])?;
        Ok(vec![Some(Gradient::Dense(of_dy)), None])
    }
}

/// A window over the whole input, so that any position is one of its own.
fn whole(batch: usize) -> (Pool, SampleInput) {
    (Pool::new([2, 3]), SampleInput::Index { shape: vec![batch, 1, 1, 2], below: 6 })
}

/// The only position there is.
fn one() -> SampleInput {
    SampleInput::Index { shape: vec![1; 4], below: 1 }
}

impl Listed for MaxPoolGradient {
    fn samples() -> Vec<Sample> {
        let first = (whole(2).0.channels_first(), [2, 2, 2, 3], [2, 2, 1, 1], whole(2).1);
        let sample = |(pool, to, dy, argmax): (Pool, [usize; 4], [usize; 4], SampleInput)| {
            Sample::new(MaxPoolGradient { pool, to: to.into() }, [SampleInput::float(&dy), argmax])
        };
        let last = |batch| {
            let (pool, argmax) = whole(batch);
            sample((pool, [batch, 2, 3, 2], [batch, 1, 1, 2], argmax))
        };
        vec![last(2), sample(first), last(0), sample((Pool::new([1]), [1; 4], [1; 4], one()))]
    }
}

/// `y[o] = x[argmax[o]]`; inputs `x` and `argmax` as for [`MaxPoolGradient`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MaxPoolSelect {
    pool: Pool,
    from: Shape,
}

impl Op for MaxPoolSelect {
    fn name(&self) -> &'static str {
        "max_pool_select"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::inputs(Mask::only(1))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, argmax) = (inputs.get(0)?, inputs.get(1)?);
        let real = real_dtype("max_pool_select", "x", x)?;
        expect_shape("max_pool_select", "x", x, &self.from)?;
        let (g, shape) = self.pool.geometry("max_pool_select", x.shape())?;
        let argmax = places("max_pool_select", argmax, &shape)?;
        let argmax = argmax.as_slice::<u32>()?.unwrap_or(&[]);
        let positions = g.input.iter().product::<usize>();
        if let Some(&at) = argmax.iter().find(|&&at| at as usize >= positions && at != u32::MAX) {
            let (op, what) = ("max_pool_select", "argmax".into());
            return Err(Error::Index { op, what, index: at.into(), size: positions });
        }
        let from = self.pool.channels_last(x).converted(real)?.to_contiguous();
        let y = for_real!(real, T => {
            let mut y = take::<T>(argmax.len());
            pool::max_pool_select(&g, from.as_slice::<T>()?.unwrap_or(&[]), argmax, &mut y);
            Tensor::from_taken(y, shape)
        });
        Ok(self.pool.in_layout(&y.converted(x.dtype())?).into())
    }

    /// `dx[i]` is the sum of `dy[o]` over the windows with `argmax[o] = i`.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None, None]) };
        let op = MaxPoolGradient { pool: self.pool.clone(), to: self.from.clone() };
        let dx = apply(op, [dy, saved.input(1)?])?;
        Ok(vec![Some(Gradient::Dense(dx)), None])
    }
}

impl Listed for MaxPoolSelect {
    fn samples() -> Vec<Sample> {
        let sample = |pool: Pool, from: [usize; 4], argmax: SampleInput| {
            Sample::new(MaxPoolSelect { pool, from: from.into() }, [SampleInput::float(&from), argmax])
        };
        let windows = |batch| {
            let (pool, argmax) = whole(batch);
            sample(pool, [batch, 2, 3, 2], argmax)
        };
        vec![windows(2), windows(0), sample(Pool::new([1]), [1; 4], one())]
    }
}
