//! The two adjoints of a convolution: with respect to its input and to its kernel.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::conv::{conv_filter_gradient, conv_input_gradient};
use crate::ops::apply;
use crate::ops::gradient::Gradient;
use crate::ops::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::tensor::{Shape, Tensor, take};

use super::convolve::Convolve;
use super::window::{Window, around, factors, filled, float_kernel, products, ready, same_floats, samples};

/// The adjoint of a convolution with respect to its input: from `dy` and `w` to `dx`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ConvInputGradient(pub(super) Window);

impl Op for ConvInputGradient {
    fn name(&self) -> &'static str {
        "conv_input_gradient"
    }

    fn saves(&self, tracked: Mask) -> Saves {
        factors(tracked)
    }

    fn multiply_adds(&self, inputs: &[Shape], outputs: &[Shape]) -> u64 {
        match (inputs, outputs) {
            ([dy, w], _) => products(dy, w),
            _ => 0,
        }
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (dy, w) = (inputs.get(0)?, inputs.get(1)?);
        let (batch, c_out) = self.0.split("dy", dy, &self.0.output)?;
        let (c_in, w_out) = self.0.channels(w)?;
        if c_out != w_out {
            let expected = format!("{w_out} channels, as the kernel has");
            return Err(Error::shape(self.0.name(), "dy", dy.shape(), expected));
        }
        let dtype = same_floats(self.0.name(), dy, "w", w)?;
        let g = self.0.geometry(batch, c_in, c_out);
        let dx = float_kernel!(self.0.name(), dtype, T => filled::<T>(around(batch, &self.0.input, c_in), |dx| {
            let (dy, w) = (ready::<T>(dy)?, ready::<T>(w)?);
            conv_input_gradient(&g, dy.as_slice::<T>()?.unwrap_or(&[]), w.as_slice::<T>()?.unwrap_or(&[]), dx);
            Ok(())
        }))?;
        Ok(dx.into())
    }

    /// With `u` from above: `d(dy)` is the convolution of `u`, and `dw` correlates `u` with `dy`.
    fn gradient(&self, saved: &Saved, u: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(u)) = u.first() else { return Ok(vec![None, None]) };
        let d_dy = match needs.has(0) {
            true => Some(Gradient::Dense(apply(
                Convolve { window: self.0.clone(), with_bias: false },
                [u, saved.input(1)?],
            )?)),
            false => None,
        };
        let dw = match needs.has(1) {
            true => Some(Gradient::Dense(apply(
                ConvFilterGradient { window: self.0.clone(), with_bias: false },
                [u, saved.input(0)?],
            )?)),
            false => None,
        };
        Ok(vec![d_dy, dw])
    }
}

impl Listed for ConvInputGradient {
    fn samples() -> Vec<Sample> {
        samples(|window, _, w, y| {
            vec![Sample::new(ConvInputGradient(window), [SampleInput::float(y), SampleInput::float(w)])]
        })
    }
}

/// The gradient of a convolution with respect to its kernel: from `x` and `dy` to `dw`, and to the sum of `dy` over all
/// but the channels if there is a bias.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ConvFilterGradient {
    pub(super) window: Window,
    pub(super) with_bias: bool,
}

impl Op for ConvFilterGradient {
    fn name(&self) -> &'static str {
        "conv_filter_gradient"
    }

    fn saves(&self, tracked: Mask) -> Saves {
        let bias = if self.with_bias { Mask::only(1) } else { Mask::NONE };
        Saves::inputs(factors(tracked).inputs.and(bias))
    }

    fn multiply_adds(&self, inputs: &[Shape], outputs: &[Shape]) -> u64 {
        match (inputs, outputs) {
            ([_, dy], [dw]) => products(dy, dw),
            _ => 0,
        }
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, dy) = (inputs.get(0)?, inputs.get(1)?);
        let (batch, c_in) = self.window.split("x", x, &self.window.input)?;
        let (batch_dy, c_out) = self.window.split("dy", dy, &self.window.output)?;
        if batch != batch_dy {
            return Err(Error::shape(
                self.window.name(),
                "dy",
                dy.shape(),
                format!("a batch of {batch}, that of x"),
            ));
        }
        let dtype = same_floats(self.window.name(), x, "dy", dy)?;
        let g = self.window.geometry(batch, c_in, c_out);
        let shape: Shape = self.window.kernel.iter().copied().chain([c_in, c_out]).collect();
        let mut db = None;
        let dw = float_kernel!(self.window.name(), dtype, T => filled::<T>(shape.clone(), |dw| {
            let (x, dy) = (ready::<T>(x)?, ready::<T>(dy)?);
            let mut sums = if self.with_bias { Some(take::<T>(c_out)) } else { None };
            let (x, dy) = (x.as_slice::<T>()?.unwrap_or(&[]), dy.as_slice::<T>()?.unwrap_or(&[]));
            conv_filter_gradient(&g, x, dy, dw, sums.as_deref_mut());
            db = sums.map(|sums| Tensor::from_taken(sums, Shape::from([c_out])));
            Ok(())
        }))?;
        match db {
            None => Ok(dw.into()),
            Some(db) => Ok(Computed::many(vec![dw, db.converted(dtype)?])),
        }
    }

    /// With `u` from above: `dx` is the adjoint at `dy` with kernel `u`, `d(dy)` the convolution of `x` with `u` plus
    /// what comes from above for the bias.
    fn gradient(&self, saved: &Saved, u: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let (mut dx, mut d_dy) = (None, None);
        if let Some(Some(u)) = u.first() {
            if needs.has(0) {
                dx = Some(apply(ConvInputGradient(self.window.clone()), [saved.input(1)?, u])?);
            }
            if needs.has(1) {
                let op = Convolve { window: self.window.clone(), with_bias: false };
                d_dy = Some(apply(op, [saved.input(0)?, u])?);
            }
        }
        if let (Some(Some(u)), true) = (u.get(1), needs.has(1)) {
            let shape = saved.input(1)?.shape().clone();
            d_dy = Some(match d_dy {
                None => u.broadcast_to(shape)?,
                Some(sum) => (sum + u)?,
            });
        }
        Ok(vec![dx.map(Gradient::Dense), d_dy.map(Gradient::Dense)])
    }
}

impl Listed for ConvFilterGradient {
    fn samples() -> Vec<Sample> {
        samples(|window, x, _, y| {
            let inputs = || [SampleInput::float(x), SampleInput::float(y)];
            let plain = ConvFilterGradient { window: window.clone(), with_bias: false };
            vec![
                Sample::new(plain, inputs()),
                Sample::new(ConvFilterGradient { window, with_bias: true }, inputs()),
            ]
        })
    }
}
