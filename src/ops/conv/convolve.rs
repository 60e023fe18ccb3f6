//! Convolutions over one to three spatial dims, channels last.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::conv::conv_forward;
use crate::ops::gradient::Gradient;
use crate::ops::op::{Computed, Input, Inputs, Mask, Op, Saved, Saves};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::ops::{Operand, apply, apply_many};
use crate::tensor::{Shape, Tensor};

use super::adjoint::{ConvFilterGradient, ConvInputGradient};
use super::options::ConvOptions;
use super::window::{
    NAMES, Window, around, factors, filled, float_kernel, kernel_dims, products, ready, same_floats, samples,
    spatial,
};

/// `y[b, o, co] = bias[co] + sum_{k, ci} x[b, o stride + k rate - before, ci] w[k, ci, co]`, x being 0 outside.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Convolve {
    pub(super) window: Window,
    pub(super) with_bias: bool,
}

impl Op for Convolve {
    fn name(&self) -> &'static str {
        "convolve"
    }

    fn saves(&self, tracked: Mask) -> Saves {
        factors(tracked)
    }

    fn multiply_adds(&self, inputs: &[Shape], outputs: &[Shape]) -> u64 {
        match (inputs, outputs) {
            ([_, w, ..], [y]) => products(y, w),
            _ => 0,
        }
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, w) = (inputs.get(0)?, inputs.get(1)?);
        let bias = if self.with_bias { Some(inputs.get(2)?) } else { None };
        let name = self.window.name();
        let (batch, c_in) = self.window.split("x", x, &self.window.input)?;
        let (w_in, c_out) = self.window.channels(w)?;
        if c_in != w_in {
            return Err(Error::shape(name, "x", x.shape(), format!("{w_in} channels, as the kernel has")));
        }
        let dtype = same_floats(name, x, "w", w)?;
        if let Some(b) = bias {
            same_floats(name, x, "b", b)?;
            if b.shape() != &[c_out] {
                return Err(Error::shape(name, "b", b.shape(), format!("[{c_out}]")));
            }
        }
        let g = self.window.geometry(batch, c_in, c_out);
        let y = float_kernel!(name, dtype, T => filled::<T>(around(batch, &self.window.output, c_out), |y| {
            let (x, w) = (ready::<T>(x)?, ready::<T>(w)?);
            let b = bias.map(ready::<T>).transpose()?;
            let b = b.as_ref().map(|b| b.as_slice::<T>()).transpose()?.flatten();
            conv_forward(&g, x.as_slice::<T>()?.unwrap_or(&[]), w.as_slice::<T>()?.unwrap_or(&[]), b, y);
            Ok(())
        }))?;
        Ok(y.into())
    }

    /// `dx` is the adjoint of the convolution at `dy`, `dw` correlates `x` with `dy`, `db` sums `dy`.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let mut gradients = vec![None; 2 + usize::from(self.with_bias)];
        let Some(Some(dy)) = dy.first() else { return Ok(gradients) };
        if needs.has(0) {
            let dx = apply(ConvInputGradient(self.window.clone()), [dy, saved.input(1)?])?;
            gradients[0] = Some(Gradient::Dense(dx));
        }
        let with_bias = self.with_bias && needs.has(2);
        if needs.has(1) {
            let op = ConvFilterGradient { window: self.window.clone(), with_bias };
            let parts = apply_many(op, [saved.input(0)?, dy])?;
            for (gradient, part) in gradients[1..].iter_mut().zip(parts) {
                *gradient = Some(Gradient::Dense(part));
            }
        } else if with_bias {
            let axes: Vec<isize> = (0..dy.rank() as isize - 1).collect();
            gradients[2] = Some(Gradient::Dense(dy.sum_axes(axes, false)?));
        }
        Ok(gradients)
    }
}

impl Listed for Convolve {
    fn samples() -> Vec<Sample> {
        samples(|window, x, w, _| {
            let out = w[w.len() - 1];
            vec![
                Sample::new(
                    Convolve { window: window.clone(), with_bias: false },
                    [SampleInput::float(x), SampleInput::float(w)],
                ),
                Sample::new(
                    Convolve { window, with_bias: true },
                    [SampleInput::float(x), SampleInput::float(w), SampleInput::float(&[out])],
                ),
            ]
        })
    }
}

impl Tensor {
    /// Convolution (cross-correlation: the kernel is not flipped) over one to three spatial dims, channels last:
    /// `y[b, o, co] = b[co] + sum_{k, ci} x[b, o stride + k rate - before, ci] w[k, ci, co]`.
    ///
    /// | tensor | shape |
    /// |---|---|
    /// | `x` | `[batch, spatial.., in]` |
    /// | `w` | `[kernel.., in, out]` |
    /// | `b` | `[out]` |
    /// | `y` | `[batch, spatial'.., out]` |
    ///
    /// A kernel larger than a [`Padding::Valid`](crate::ops::Padding::Valid) input gives an empty output.
    ///
    /// # Errors
    /// Shapes, channels or dtypes that do not fit; a stride, rate or kernel of 0; stride and rate both above 1.
    pub fn convolve<'a>(
        &self,
        w: impl Operand<'a>,
        b: Option<&Tensor>,
        options: &ConvOptions,
    ) -> Result<Tensor> {
        let w = w.into_input(self)?;
        let dims = spatial("convolve", "x", self)?;
        let kernel = kernel_dims(NAMES[dims.len() - 1], w.tensor(), dims.len())?;
        let window = Window::new(NAMES[dims.len() - 1], &dims, &kernel, options)?;
        let op = Convolve { window, with_bias: b.is_some() };
        match b {
            None => apply(op, [Input::Ref(self), w]),
            Some(b) => apply(op, [Input::Ref(self), w, Input::Ref(b)]),
        }
    }

    /// Transposed convolution, the adjoint of [`convolve`](Tensor::convolve): `self` plays the part of its output.
    ///
    /// `w` is `[kernel.., out, in]`, and the result `[batch, output.., out]`.
    ///
    /// # Errors
    /// As there, or a convolution of `output` would not give the spatial dims of `self`.
    pub fn convolve_transpose<'a>(
        &self,
        w: impl Operand<'a>,
        output: &[usize],
        options: &ConvOptions,
    ) -> Result<Tensor> {
        let w = w.into_input(self)?;
        let dims = spatial("convolve_transpose", "x", self)?;
        let kernel = kernel_dims("convolve_transpose", w.tensor(), dims.len())?;
        if output.len() != dims.len() {
            let expected = format!("{} numbers, one for each spatial axis", dims.len());
            return Err(Error::argument(
                "convolve_transpose",
                "output_shape",
                format!("{output:?}"),
                expected,
            ));
        }
        let window = options.check_transpose("convolve_transpose", &dims, &kernel, output)?;
        apply(ConvInputGradient(window), [Input::Ref(self), w])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::conv::Padding;

    #[test]
    fn bad_strides_rates_and_channels_are_errors() {
        let x = Tensor::zeros([1, 4, 4, 2], DType::F32).unwrap();
        let w = Tensor::zeros([3, 3, 2, 5], DType::F32).unwrap();
        let with = |stride: &[usize], rate: &[usize]| ConvOptions {
            stride: stride.to_vec(),
            rate: rate.to_vec(),
            ..ConvOptions::default()
        };
        assert!(x.convolve(&w, None, &with(&[0], &[1])).unwrap_err().to_string().contains("stride"));
        assert!(x.convolve(&w, None, &with(&[2], &[2])).unwrap_err().to_string().contains("rate"));
        assert!(x.convolve(&w, None, &with(&[1, 1, 1], &[1])).is_err());
        for huge in [1 << 40, usize::MAX] {
            assert!(x.convolve(&w, None, &with(&[huge], &[1])).unwrap_err().to_string().contains("2^32"));
            assert!(x.convolve(&w, None, &with(&[1], &[huge])).unwrap_err().to_string().contains("2^32"));
            let padding = Padding::Explicit(vec![(0, 1), (huge, 0)]);
            assert!(x.convolve(&w, None, &ConvOptions { padding, ..ConvOptions::default() }).is_err());
        }
        let wrong = Tensor::zeros([3, 3, 4, 5], DType::F32).unwrap();
        let message = x.convolve(&wrong, None, &ConvOptions::default()).unwrap_err().to_string();
        assert!(message.contains("4 channels"), "{message}");
        let empty = Tensor::zeros([0, 4, 4, 2], DType::F32).unwrap();
        assert_eq!(empty.convolve(&w, None, &ConvOptions::default()).unwrap().shape(), &[0, 4, 4, 5]);
    }
}
