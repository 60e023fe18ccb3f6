//! Batch normalisation as one op.

use serde::{Deserialize, Serialize};

use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::kernels::math::Math;
use crate::kernels::normalise::{self as kernels, Channels};
use crate::ops::apply_many;
use crate::ops::arithmetic::{map, zip};
use crate::ops::gradient::Gradient;
use crate::ops::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use crate::ops::real::{check_dtype, check_shape, for_real, real_dtype};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::ops::softmax::axis_last;
use crate::tensor::{Shape, Tensor, take};

use super::{Statistics, ready};

const NAME: &str = "batch_norm";

/// Normalisation over all axes but `axis`, with the mean `m` and the biased variance `v` of the batch:
/// `y = (x - m) scale / sqrt(v + epsilon) + offset`.
///
/// Inputs `x`, `scale [channels]` and `offset [channels]`; outputs `y`, `m [channels]` and `v [channels]`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct BatchNorm {
    pub(super) axis: usize,
    pub(super) epsilon: f64,
}

/// The number of channels.
pub(super) fn channels(op: &'static str, x: &Tensor, axis: usize) -> Result<usize> {
    x.shape().get(axis).copied().ok_or(Error::Axis { op, axis: axis as isize, rank: x.rank() })
}

/// Refuses what is not one number a channel, in the dtype of `x`.
pub(super) fn per_channel(
    op: &'static str,
    what: &'static str,
    v: &Tensor,
    channels: usize,
    x: &Tensor,
) -> Result<()> {
    check_dtype(op, what, v, ("x", x))?;
    if v.shape() != &[channels] {
        return Err(Error::shape(op, what, v.shape(), format!("[{channels}], one number a channel")));
    }
    Ok(())
}

impl BatchNorm {
    /// The shape in which one number a channel broadcasts to `x`.
    fn spread(self, v: &Tensor, x: &Tensor) -> Result<Tensor> {
        let mut shape = vec![1; x.rank()];
        shape[self.axis] = v.size();
        v.reshape(shape)
    }

    /// `1 / sqrt(variance + epsilon)`; not recorded.
    fn inverse<T: Math + Element>(self, variance: &Tensor) -> Result<Tensor> {
        let epsilon = <T as Math>::from_f64(self.epsilon);
        map::<T>(variance.clone(), move |v| (v + epsilon).sqrt().recip())
    }

    /// All axes but that of the channels.
    fn others(self, rank: usize) -> Vec<isize> {
        (0..rank as isize).filter(|&axis| axis != self.axis as isize).collect()
    }
}

impl Op for BatchNorm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves { inputs: Mask::only(0).and(Mask::only(1)), outputs: Mask::only(1).and(Mask::only(2)) }
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, scale, offset) = (inputs.get(0)?, inputs.get(1)?, inputs.get(2)?);
        let real = real_dtype(NAME, "x", x)?;
        let channels = channels(NAME, x, self.axis)?;
        per_channel(NAME, "scale", scale, channels, x)?;
        per_channel(NAME, "offset", offset, channels, x)?;
        let from = ready(&axis_last(NAME, x, self.axis)?, real)?;
        let (scale, offset) = (scale.converted(real)?, ready(offset, real)?);
        let outputs = for_real!(real, T => {
            let from_rows = from.as_slice::<T>()?.unwrap_or(&[]);
            let (mut mean, mut variance) = (take::<T>(channels), take::<T>(channels));
            kernels::channel_moments(from_rows, &mut mean, &mut variance);
            let variance = Tensor::from_taken(variance, Shape::from([channels]));
            let factor = zip::<T>(NAME, self.inverse::<T>(&variance)?, scale, |r, s| r * s)?;
            let mut y = take::<T>(from.size());
            let (factor, offset) = (factor.as_slice::<T>()?.unwrap_or(&[]), offset.as_slice::<T>()?.unwrap_or(&[]));
            kernels::normalise_channels(from_rows, &mean, factor, offset, &mut y);
            let y = axis_last(NAME, &Tensor::from_taken(y, from.shape().clone()), self.axis)?;
            [y, Tensor::from_taken(mean, Shape::from([channels])), variance]
        });
        let outputs = outputs.iter().map(|y| y.converted(x.dtype())).collect::<Result<_>>()?;
        Ok(Computed::many(outputs))
    }

    /// What reaches `x` through `y` is [`BatchNormGradient`]; through `m` comes `dm / n` and through `v`
    /// `2 dv (x - m) / n`, for `n` elements a channel.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let (x, scale) = (saved.input(0)?, saved.input(1)?);
        let (mean, variance) = (saved.output_at(1)?, saved.output_at(2)?);
        let [dy, dmean, dvariance] = dy else { return Ok(vec![None, None, None]) };
        let mut gradients = vec![None, None, None];
        if let Some(dy) = dy {
            let parts = apply_many(BatchNormGradient(*self), [x, scale, mean, variance, dy])?;
            for (i, part) in parts.into_iter().enumerate() {
                gradients[i] = needs.has(i).then_some(part);
            }
        }
        if needs.has(0) {
            let count = (x.size() / mean.size().max(1)).max(1) as f64;
            let mut add = |part: Tensor| -> Result<()> {
                let sum = match gradients[0].take() {
                    Some(dx) => (dx + part)?,
                    None => part.broadcast_to(x.shape().clone())?,
                };
                gradients[0] = Some(sum);
                Ok(())
            };
            if let Some(dmean) = dmean {
                add((self.spread(dmean, x)? / count)?)?;
            }
            if let Some(dvariance) = dvariance {
                let slope = (self.spread(dvariance, x)? * (2.0 / count))?;
                add((slope * (x - self.spread(mean, x)?))?)?;
            }
        }
        Ok(gradients.into_iter().map(|g| g.map(Gradient::Dense)).collect())
    }
}

/// Shapes of an input and the axis of its channels.
fn cases() -> [(&'static [usize], usize); 4] {
    [(&[4, 3], 1), (&[2, 3, 2, 2], 3), (&[2, 3, 4], 1), (&[3], 0)]
}

impl Listed for BatchNorm {
    fn samples() -> Vec<Sample> {
        let sample = |(x, axis): (&[usize], usize)| {
            let one = || SampleInput::float(&[x[axis]]);
            Sample::new(BatchNorm { axis, epsilon: 0.1 }, [SampleInput::float(x), one(), one()])
        };
        cases().into_iter().map(sample).collect()
    }
}

/// What reaches the inputs of a [`BatchNorm`] through `y`. With `r = 1 / sqrt(v + epsilon)` and `z = (x - m) r`:
/// `dx = scale r (dy - mean(dy) - z mean(dy z))`, `dscale = sum(dy z)`, `doffset = sum(dy)`.
///
/// Inputs `x`, `scale`, `m`, `v` and `dy`; outputs `dx`, `dscale` and `doffset`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct BatchNormGradient(BatchNorm);

impl Op for BatchNormGradient {
    fn name(&self) -> &'static str {
        "batch_norm_gradient"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, dy) = (inputs.get(0)?, inputs.get(4)?);
        let real = real_dtype(NAME, "x", x)?;
        let (norm, channels) = (self.0, channels(NAME, x, self.0.axis)?);
        check_dtype(NAME, "dy", dy, ("x", x))?;
        check_shape(NAME, "dy", dy, ("x", x))?;
        for (i, what) in [(1, "scale"), (2, "mean"), (3, "variance")] {
            per_channel(NAME, what, inputs.get(i)?, channels, x)?;
        }
        let rows = |v: &Tensor| ready(&axis_last(NAME, v, norm.axis)?, real);
        let (from, dy) = (rows(x)?, rows(dy)?);
        let (scale, mean) = (ready(inputs.get(1)?, real)?, ready(inputs.get(2)?, real)?);
        let variance = inputs.get(3)?.converted(real)?;
        let outputs = for_real!(real, T => {
            let inverse = norm.inverse::<T>(&variance)?;
            let forward = Channels {
                mean: mean.as_slice::<T>()?.unwrap_or(&[]),
                inverse: inverse.as_slice::<T>()?.unwrap_or(&[]),
                scale: scale.as_slice::<T>()?.unwrap_or(&[]),
                of_batch: true,
            };
            let (mut dscale, mut doffset) = (take::<T>(channels), take::<T>(channels));
            let mut dx = take::<T>(from.size());
            let (from_rows, dy) = (from.as_slice::<T>()?.unwrap_or(&[]), dy.as_slice::<T>()?.unwrap_or(&[]));
            kernels::channel_gradients(forward, from_rows, dy, &mut dx, &mut dscale, &mut doffset);
            let one = |v: Vec<T>| Tensor::from_taken(v, Shape::from([channels]));
            let dx = axis_last(NAME, &Tensor::from_taken(dx, from.shape().clone()), norm.axis)?;
            [dx, one(dscale), one(doffset)]
        });
        let outputs = outputs.iter().map(|y| y.converted(x.dtype())).collect::<Result<_>>()?;
        Ok(Computed::many(outputs))
    }

    /// With `gx`, `gs` and `go` the gradients of the three outputs, `h = scale gx`, `P(u) = u - mean(u) - z mean(u z)`
    /// (which is symmetric) and `n` elements a channel, the sum of all three is
    ///
    /// `L = r sum(h P(dy)) + gs sum(dy z) + go sum(dy)`.
    ///
    /// Its slope along `z` is `q = gs dy - r (dy mean(h z) + h mean(dy z))`, and along `r`, which is also part of `z`,
    /// `sum(h P(dy)) + sum(q z) / r`. Hence `r P(h) + gs z + go` for `dy`, `r q` for `x`, `-r sum(q)` for `m`,
    /// `r sum(gx P(dy))` for `scale`, and for `v` the slope along `r` times `-r^3 / 2`.
    fn gradient(&self, saved: &Saved, g: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let (x, scale) = (saved.input(0)?, saved.input(1)?);
        let (mean, variance, dy) = (saved.input(2)?, saved.input(3)?, saved.input(4)?);
        let (norm, axes) = (self.0, self.0.others(x.rank()));
        let sum = |u: &Tensor| u.sum_axes(axes.clone(), false);
        let r = norm.spread(&(variance + norm.epsilon)?.rsqrt()?, x)?;
        let z = ((x - norm.spread(mean, x)?)? * &r)?;
        let along = Statistics { z: &z, axes: &axes };
        let zeros = |v: &Tensor| Tensor::zeros(v.shape().clone(), v.dtype());
        let [gx, gs, go] = g else { return Ok(vec![None; 5]) };
        let gx = gx.clone().map_or_else(|| zeros(x), Ok)?;
        let gs = norm.spread(&gs.clone().map_or_else(|| zeros(scale), Ok)?, x)?;
        let go = norm.spread(&go.clone().map_or_else(|| zeros(scale), Ok)?, x)?;
        let h = (norm.spread(scale, x)? * &gx)?;
        let projected = along.project(dy)?;
        let mixed = ((dy * along.mean(&(&h * &z)?)?)? + (&h * along.mean(&(dy * &z)?)?)?)?;
        let q = ((&gs * dy)? - (&r * mixed)?)?;
        let mut list = vec![None; 5];
        if needs.has(0) {
            list[0] = Some((&r * &q)?);
        }
        if needs.has(1) {
            list[1] = Some(sum(&((&r * &gx)? * &projected)?)?);
        }
        if needs.has(2) {
            list[2] = Some((-sum(&(&r * &q)?)?)?);
        }
        if needs.has(3) {
            let slope = (sum(&(&h * &projected)?)? + sum(&((&q * &z)? / &r)?)?)?;
            let cube = (variance + norm.epsilon)?.rsqrt()?;
            let cube = ((&cube * &cube)? * cube)?;
            list[3] = Some(((slope * cube)? * -0.5)?);
        }
        if needs.has(4) {
            list[4] = Some((((r * along.project(&h)?)? + (gs * &z)?)? + go)?);
        }
        Ok(list.into_iter().map(|g| g.map(Gradient::Dense)).collect())
    }
}

impl Listed for BatchNormGradient {
    fn samples() -> Vec<Sample> {
        let sample = |(x, axis): (&[usize], usize)| {
            let one = || SampleInput::float(&[x[axis]]);
            let variance = SampleInput::within(&[x[axis]], 0.5, 2.0);
            let op = BatchNormGradient(BatchNorm { axis, epsilon: 0.1 });
            Sample::new(op, [SampleInput::float(x), one(), one(), variance, SampleInput::float(x)])
        };
        cases().into_iter().map(sample).collect()
    }
}
