//! Group normalisation as one op.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernels::math::Math;
use crate::kernels::normalise::{self as kernels, Groups};
use crate::ops::gradient::Gradient;
use crate::ops::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use crate::ops::real::{check_dtype, check_shape, for_real, real_dtype};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::ops::softmax::axis_last;
use crate::ops::{apply_many, record};
use crate::tensor::{Shape, Tensor, take};

use super::batch::{channels, per_channel};
use super::{ready, second_gradients};

const NAME: &str = "group_norm";

/// Normalisation of each item (axis 0) and group of channels (`axis`) with its mean `m` and biased variance `v`:
/// `y = (x - m) scale / sqrt(v + epsilon) + offset`.
///
/// Inputs `x`, `scale [channels]` and `offset [channels]`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct GroupNorm {
    pub(super) axis: usize,
    pub(super) groups: usize,
    pub(super) epsilon: f64,
}

impl GroupNorm {
    /// The dims of an input, if it fits.
    fn dims(self, x: &Tensor) -> Result<Groups> {
        let channels = channels(NAME, x, self.axis)?;
        if self.axis == 0 {
            let expected = "1 or more, as axis 0 is that of the batch";
            return Err(Error::argument(NAME, "channel_axis", self.axis, expected));
        }
        if self.groups == 0 || self.groups > channels.max(1) || !channels.is_multiple_of(self.groups) {
            let expected = format!("a divisor of {channels}, the number of channels");
            return Err(Error::argument(NAME, "groups", self.groups, expected));
        }
        let inner = x.shape()[1..].iter().enumerate().filter(|&(i, _)| i + 1 != self.axis);
        let rows = inner.map(|(_, &dim)| dim).product();
        Ok(Groups { batch: x.shape()[0], rows, channels, groups: self.groups })
    }

    /// `dx`, `dscale` and `doffset`, given mean and `1 / sqrt(v + epsilon)` of each group if they are known; not recorded.
    fn gradients(
        self,
        [x, scale, dy]: [&Tensor; 3],
        known: Option<(&Tensor, &Tensor)>,
    ) -> Result<[Tensor; 3]> {
        let real = real_dtype(NAME, "x", x)?;
        let of = self.dims(x)?;
        per_channel(NAME, "scale", scale, of.channels, x)?;
        check_dtype(NAME, "dy", dy, ("x", x))?;
        check_shape(NAME, "dy", dy, ("x", x))?;
        let rows = |v: &Tensor| ready(&axis_last(NAME, v, self.axis)?, real);
        let (from, dy, scale) = (rows(x)?, rows(dy)?, ready(scale, real)?);
        let [dx, dscale, doffset] = for_real!(real, T => {
            let (x_rows, dy) = (from.as_slice::<T>()?.unwrap_or(&[]), dy.as_slice::<T>()?.unwrap_or(&[]));
            let scale = scale.as_slice::<T>()?.unwrap_or(&[]);
            let (mut dscale, mut doffset) = (take::<T>(of.channels), take::<T>(of.channels));
            let mut dx = take::<T>(from.size());
            let computed;
            let (mean, inverse) = match known {
                Some((mean, inverse)) => {
                    (mean.as_slice::<T>()?.unwrap_or(&[]), inverse.as_slice::<T>()?.unwrap_or(&[]))
                }
                None => {
                    let count = of.batch * of.groups;
                    let (mut mean, mut inverse) = (take::<T>(count), take::<T>(count));
                    let epsilon = <T as Math>::from_f64(self.epsilon);
                    // What it writes to dx is overwritten below.
                    let numbers = [scale, scale];
                    kernels::normalise_groups(of, x_rows, epsilon, numbers, &mut dx, &mut mean, &mut inverse);
                    computed = (mean, inverse);
                    (&computed.0[..], &computed.1[..])
                }
            };
            let numbers = [mean, inverse, scale];
            kernels::group_gradients(of, numbers, [x_rows, dy], &mut dx, &mut dscale, &mut doffset);
            let one = |v: Vec<T>| Tensor::from_taken(v, Shape::from([of.channels]));
            let dx = axis_last(NAME, &Tensor::from_taken(dx, from.shape().clone()), self.axis)?;
            [dx, one(dscale), one(doffset)]
        });
        Ok([dx.converted(x.dtype())?, dscale.converted(x.dtype())?, doffset.converted(x.dtype())?])
    }
}

impl Op for GroupNorm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::inputs(Mask::only(0).and(Mask::only(1)))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, scale, offset) = (inputs.get(0)?, inputs.get(1)?, inputs.get(2)?);
        let real = real_dtype(NAME, "x", x)?;
        let of = self.dims(x)?;
        per_channel(NAME, "scale", scale, of.channels, x)?;
        per_channel(NAME, "offset", offset, of.channels, x)?;
        let from = ready(&axis_last(NAME, x, self.axis)?, real)?;
        let (scale, offset) = (ready(scale, real)?, ready(offset, real)?);
        let (y, mean, inverse) = for_real!(real, T => {
            let numbers = [scale.as_slice::<T>()?.unwrap_or(&[]), offset.as_slice::<T>()?.unwrap_or(&[])];
            let count = of.batch * of.groups;
            let (mut y, mut mean, mut inverse) = (take::<T>(from.size()), take::<T>(count), take::<T>(count));
            let (x, epsilon) = (from.as_slice::<T>()?.unwrap_or(&[]), <T as Math>::from_f64(self.epsilon));
            kernels::normalise_groups(of, x, epsilon, numbers, &mut y, &mut mean, &mut inverse);
            let one = |v: Vec<T>| Tensor::from_taken(v, Shape::from([count]));
            (Tensor::from_taken(y, from.shape().clone()), one(mean), one(inverse))
        });
        let y = axis_last(NAME, &y, self.axis)?.converted(x.dtype())?;
        Ok(Computed::from(y).saving(mean).saving(inverse))
    }

    /// [`GroupNormGradient`]; on the statistics that the forward kept, unless the gradient is itself recorded: then those
    /// must be seen to depend on `x`.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None, None, None]) };
        let inputs = [saved.input(0)?, saved.input(1)?, dy];
        let parts = if record::is_recording() {
            apply_many(GroupNormGradient(*self), inputs)?
        } else {
            self.gradients(inputs, Some((saved.extra(0)?, saved.extra(1)?)))?.into()
        };
        let wanted = |(i, part)| needs.has(i).then_some(Gradient::Dense(part));
        Ok(parts.into_iter().enumerate().map(wanted).collect())
    }
}

/// Shapes of an input, the axis of its channels and their groups.
fn cases() -> [(&'static [usize], usize, usize); 4] {
    [(&[2, 3, 4], 2, 2), (&[2, 4, 3], 1, 4), (&[3, 4], 1, 1), (&[2, 2, 2, 3], 3, 3)]
}

impl Listed for GroupNorm {
    fn samples() -> Vec<Sample> {
        let sample = |(x, axis, groups): (&[usize], usize, usize)| {
            let one = || SampleInput::float(&[x[axis]]);
            let op = GroupNorm { axis, groups, epsilon: 0.1 };
            Sample::new(op, [SampleInput::float(x), one(), one()])
        };
        cases().into_iter().map(sample).collect()
    }
}

/// What reaches the inputs of a [`GroupNorm`]. With `r = 1 / sqrt(v + epsilon)`, `z = (x - m) r`, `h = scale dy` and means
/// over a group: `dx = r (h - mean(h) - z mean(h z))`; over items and positions `dscale = sum(dy z)` and
/// `doffset = sum(dy)`.
///
/// Inputs `x`, `scale` and `dy`; outputs `dx`, `dscale [channels]` and `doffset [channels]`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct GroupNormGradient(GroupNorm);

impl Op for GroupNormGradient {
    fn name(&self) -> &'static str {
        "group_norm_gradient"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let list = self.0.gradients([inputs.get(0)?, inputs.get(1)?, inputs.get(2)?], None)?;
        Ok(Computed::many(list.into()))
    }

    /// [`second_gradients`] of tensors whose channels are last and cut into two axes, the groups and the channels of each,
    /// with means over positions and the channels of a group.
    fn gradient(&self, saved: &Saved, g: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let (x, scale, dy) = (saved.input(0)?, saved.input(1)?, saved.input(2)?);
        let Groups { batch, rows, channels, groups } = self.0.dims(x)?;
        let last = x.rank() - 1;
        let mut order: Vec<isize> = (0..x.rank() as isize).collect();
        order.swap(self.0.axis, last);
        let row = Shape::from([groups, channels / groups]);
        let cut = [batch, rows, groups, channels / groups];
        let apart = |v: &Tensor| v.transpose(&order)?.reshape(cut);
        let mut moved = x.shape().clone();
        moved.dims_mut().swap(self.0.axis, last);
        let together = |v: Tensor| v.reshape(moved.clone())?.transpose(&order);
        let [gx, gs, go] = g else { return Ok(vec![None; 3]) };
        let g = [gx.as_ref().map(apart).transpose()?, gs.clone(), go.clone()];
        let inputs = [&apart(x)?, &scale.reshape(row.clone())?, &apart(dy)?];
        let [dx, dscale, ddy] = second_gradients(inputs, &g, &[1, 3], &row, self.0.epsilon, needs)?;
        let dscale = dscale.map(|v| v.sum_axes([0, 1], false)?.reshape([channels])).transpose()?;
        let list = [dx.map(together).transpose()?, dscale, ddy.map(together).transpose()?];
        Ok(list.into_iter().map(|g| g.map(Gradient::Dense)).collect())
    }
}

impl Listed for GroupNormGradient {
    fn samples() -> Vec<Sample> {
        let sample = |(x, axis, groups): (&[usize], usize, usize)| {
            let op = GroupNormGradient(GroupNorm { axis, groups, epsilon: 0.1 });
            Sample::new(op, [SampleInput::float(x), SampleInput::float(&[x[axis]]), SampleInput::float(x)])
        };
        cases().into_iter().map(sample).collect()
    }
}
