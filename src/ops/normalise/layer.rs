//! Layer normalisation over the last axes as one op.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::math::Math;
use crate::kernels::normalise::{self as kernels, Rows};
use crate::ops::gradient::Gradient;
use crate::ops::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use crate::ops::real::{check_dtype, check_shape, for_real, real_dtype};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::ops::{apply_many, record};
use crate::tensor::{Shape, Tensor, take};

use super::{ready, second_gradients};

const NAME: &str = "layer_norm";

/// Normalisation of each row, the last `count` axes of `x`, with its mean `m` and biased variance `v`:
/// `y = (x - m) scale / sqrt(v + epsilon) + offset`.
///
/// Inputs `x`, and `scale` and `offset`, which broadcast to a row.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct LayerNorm {
    pub(super) count: usize,
    pub(super) epsilon: f64,
}

impl LayerNorm {
    /// The shape of a row.
    fn row(self, x: &Tensor) -> Result<Shape> {
        match x.rank().checked_sub(self.count) {
            Some(first) => Ok(Shape::from(&x.shape()[first..])),
            None => {
                let expected = format!("rank {} or more, the axes to normalise", self.count);
                Err(Error::shape(NAME, "x", x.shape(), expected))
            }
        }
    }

    /// A parameter repeated to a whole row, in the dtype to compute in.
    fn whole(self, what: &'static str, v: &Tensor, row: &Shape, x: &Tensor, real: DType) -> Result<Tensor> {
        check_dtype(NAME, what, v, ("x", x))?;
        let wide = v.expanded(row);
        let wide = wide.map_err(|_| {
            Error::shape(NAME, what, v.shape(), format!("a shape that broadcasts to {row}, that of a row"))
        });
        ready(&wide?, real)
    }
}

impl Op for LayerNorm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::inputs(Mask::only(0).and(Mask::only(1)))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let x = inputs.get(0)?;
        let real = real_dtype(NAME, "x", x)?;
        let row = self.row(x)?;
        let scale = self.whole("scale", inputs.get(1)?, &row, x, real)?;
        let offset = self.whole("offset", inputs.get(2)?, &row, x, real)?;
        let from = ready(x, real)?;
        let rows = x.shape()[..x.rank() - self.count].iter().product();
        let (y, mean, inverse) = for_real!(real, T => {
            let (scale, offset) = (scale.as_slice::<T>()?.unwrap_or(&[]), offset.as_slice::<T>()?.unwrap_or(&[]));
            let (mut y, mut mean, mut inverse) = (take::<T>(x.size()), take::<T>(rows), take::<T>(rows));
            let (x_rows, epsilon) = (from.as_slice::<T>()?.unwrap_or(&[]), <T as Math>::from_f64(self.epsilon));
            kernels::normalise_rows(x_rows, epsilon, scale, offset, &mut y, &mut mean, &mut inverse);
            let one = |v: Vec<T>| Tensor::from_taken(v, Shape::from([rows]));
            (Tensor::from_taken(y, x.shape().clone()), one(mean), one(inverse))
        });
        Ok(Computed::from(y.converted(x.dtype())?).saving(mean).saving(inverse))
    }

    /// [`LayerNormGradient`]; on the statistics that the forward kept, unless the gradient is itself recorded: then those
    /// must be seen to depend on `x`.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None, None, None]) };
        let (x, scale) = (saved.input(0)?, saved.input(1)?);
        let parts = if record::is_recording() {
            apply_many(LayerNormGradient(*self), [x, scale, dy])?
        } else {
            self.gradients(x, scale, dy, Some((saved.extra(0)?, saved.extra(1)?)))?.into()
        };
        let wanted = |(i, part)| needs.has(i).then_some(Gradient::Dense(part));
        Ok(parts.into_iter().enumerate().map(wanted).collect())
    }
}

impl LayerNorm {
    /// `dx`, `dscale` and `doffset`, given mean and `1 / sqrt(v + epsilon)` of each row if they are known; not recorded.
    fn gradients(
        self,
        x: &Tensor,
        scale: &Tensor,
        dy: &Tensor,
        known: Option<(&Tensor, &Tensor)>,
    ) -> Result<[Tensor; 3]> {
        let real = real_dtype(NAME, "x", x)?;
        let row = self.row(x)?;
        check_dtype(NAME, "dy", dy, ("x", x))?;
        check_shape(NAME, "dy", dy, ("x", x))?;
        let scale = self.whole("scale", scale, &row, x, real)?;
        let (from, dy) = (ready(x, real)?, ready(dy, real)?);
        let rows = x.shape()[..x.rank() - self.count].iter().product();
        let [dx, dscale, doffset] = for_real!(real, T => {
            let (x_rows, dy) = (from.as_slice::<T>()?.unwrap_or(&[]), dy.as_slice::<T>()?.unwrap_or(&[]));
            let scale = scale.as_slice::<T>()?.unwrap_or(&[]);
            let (mut dscale, mut doffset) = (take::<T>(row.size()), take::<T>(row.size()));
            let mut dx = take::<T>(from.size());
            let computed;
            let (mean, inverse) = match known {
                Some((mean, inverse)) => {
                    (mean.as_slice::<T>()?.unwrap_or(&[]), inverse.as_slice::<T>()?.unwrap_or(&[]))
                }
                None => {
                    let (mut mean, mut inverse) = (take::<T>(rows), take::<T>(rows));
                    let epsilon = <T as Math>::from_f64(self.epsilon);
                    // What it writes to dx is overwritten below.
                    kernels::normalise_rows(x_rows, epsilon, scale, scale, &mut dx, &mut mean, &mut inverse);
                    computed = (mean, inverse);
                    (&computed.0[..], &computed.1[..])
                }
            };
            let forward = Rows { mean, inverse, scale };
            kernels::row_gradients(forward, x_rows, dy, &mut dx, &mut dscale, &mut doffset);
            let one = |v: Vec<T>| Tensor::from_taken(v, row.clone());
            [Tensor::from_taken(dx, x.shape().clone()), one(dscale), one(doffset)]
        });
        Ok([dx.converted(x.dtype())?, dscale.converted(x.dtype())?, doffset.converted(x.dtype())?])
    }
}

impl Listed for LayerNorm {
    fn samples() -> Vec<Sample> {
        let sample = |x: &[usize], count, parameter: &[usize]| {
            let one = || SampleInput::float(parameter);
            Sample::new(LayerNorm { count, epsilon: 0.1 }, [SampleInput::float(x), one(), one()])
        };
        vec![
            sample(&[2, 4], 1, &[4]),
            sample(&[2, 3, 4], 2, &[3, 4]),
            sample(&[2, 3, 4], 2, &[4]),
            sample(&[3], 1, &[]),
        ]
    }
}

/// What reaches the inputs of a [`LayerNorm`]. With `r = 1 / sqrt(v + epsilon)`, `z = (x - m) r`, `h = scale dy` and means
/// over a row: `dx = r (h - mean(h) - z mean(h z))`; over the rows `dscale = sum(dy z)` and `doffset = sum(dy)`.
///
/// Inputs `x`, `scale` and `dy`; outputs `dx`, and `dscale` and `doffset` in the shape of a row.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct LayerNormGradient(LayerNorm);

impl Op for LayerNormGradient {
    fn name(&self) -> &'static str {
        "layer_norm_gradient"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::INPUTS
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let list = self.0.gradients(inputs.get(0)?, inputs.get(1)?, inputs.get(2)?, None)?;
        Ok(Computed::many(list.into()))
    }

    /// [`second_gradients`], with means over a row.
    fn gradient(&self, saved: &Saved, g: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let inputs = [saved.input(0)?, saved.input(1)?, saved.input(2)?];
        let x = inputs[0];
        let axes: Vec<isize> = ((x.rank() - self.0.count) as isize..x.rank() as isize).collect();
        let list = second_gradients(inputs, g, &axes, &self.0.row(x)?, self.0.epsilon, needs)?;
        Ok(list.into_iter().map(|g| g.map(Gradient::Dense)).collect())
    }
}

impl Listed for LayerNormGradient {
    fn samples() -> Vec<Sample> {
        let sample = |x: &[usize], count, parameter: &[usize]| {
            let op = LayerNormGradient(LayerNorm { count, epsilon: 0.1 });
            Sample::new(op, [SampleInput::float(x), SampleInput::float(parameter), SampleInput::float(x)])
        };
        vec![
            sample(&[2, 4], 1, &[4]),
            sample(&[2, 3, 4], 2, &[3, 4]),
            sample(&[2, 3, 4], 2, &[4]),
            sample(&[3], 1, &[]),
        ]
    }
}
