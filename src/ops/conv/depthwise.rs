//! Convolutions of each channel by itself.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::depthwise;
use crate::ops::gradient::Gradient;
use crate::ops::op::{Computed, Input, Inputs, Mask, Op, Saved, Saves};
use crate::ops::registry::{Listed, Sample, SampleInput};
use crate::ops::{Operand, apply};
use crate::tensor::{Shape, Tensor};

use super::options::ConvOptions;
use super::window::{Window, around, factors, filled, float_kernel, ready, same_floats, samples, spatial};

const NAME: &str = "depthwise_convolve";

/// Refuses a kernel that has not the window's dims and one weight a channel.
fn check_kernel(window: &Window, w: &Tensor, channels: usize) -> Result<()> {
    let expected: Shape = window.kernel.iter().copied().chain([channels]).collect();
    if *w.shape() != expected {
        return Err(Error::shape(NAME, "w", w.shape(), expected.to_string()));
    }
    Ok(())
}

/// Multiply-adds: one product a result and tap.
fn products(window: &Window, y: &Shape) -> u64 {
    (y.size() as u64).saturating_mul(window.kernel.iter().product::<usize>() as u64)
}

/// `y[b, o, c] = sum_k x[b, o stride + k rate - before, c] w[k, c]`, x being 0 outside.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DepthwiseConvolve(Window);

impl Op for DepthwiseConvolve {
    fn name(&self) -> &'static str {
        NAME
    }

    fn saves(&self, tracked: Mask) -> Saves {
        factors(tracked)
    }

    fn multiply_adds(&self, _: &[Shape], outputs: &[Shape]) -> u64 {
        outputs.first().map_or(0, |y| products(&self.0, y))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, w) = (inputs.get(0)?, inputs.get(1)?);
        let (batch, channels) = self.0.split("x", x, &self.0.input)?;
        check_kernel(&self.0, w, channels)?;
        let dtype = same_floats(NAME, x, "w", w)?;
        let g = self.0.geometry(batch, channels, channels);
        let y = float_kernel!(NAME, dtype, T => filled::<T>(around(batch, &self.0.output, channels), |y| {
            let (x, w) = (ready::<T>(x)?, ready::<T>(w)?);
            depthwise::forward(&g, x.as_slice::<T>()?.unwrap_or(&[]), w.as_slice::<T>()?.unwrap_or(&[]), y);
            Ok(())
        }))?;
        Ok(y.into())
    }

    /// `dx` is the adjoint at `dy`, `dw` correlates `x` with `dy` channel by channel.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None, None]) };
        let (mut dx, mut dw) = (None, None);
        if needs.has(0) {
            dx = Some(apply(DepthwiseInputGradient(self.0.clone()), [dy, saved.input(1)?])?);
        }
        if needs.has(1) {
            dw = Some(apply(DepthwiseFilterGradient(self.0.clone()), [saved.input(0)?, dy])?);
        }
        Ok(vec![dx.map(Gradient::Dense), dw.map(Gradient::Dense)])
    }
}

/// The adjoint with respect to the input: from `dy` and `w` to `dx`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DepthwiseInputGradient(Window);

impl Op for DepthwiseInputGradient {
    fn name(&self) -> &'static str {
        "depthwise_input_gradient"
    }

    fn saves(&self, tracked: Mask) -> Saves {
        factors(tracked)
    }

    fn multiply_adds(&self, inputs: &[Shape], _: &[Shape]) -> u64 {
        inputs.first().map_or(0, |dy| products(&self.0, dy))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (dy, w) = (inputs.get(0)?, inputs.get(1)?);
        let (batch, channels) = self.0.split("dy", dy, &self.0.output)?;
        check_kernel(&self.0, w, channels)?;
        let dtype = same_floats(NAME, dy, "w", w)?;
        let g = self.0.geometry(batch, channels, channels);
        let dx = float_kernel!(NAME, dtype, T => filled::<T>(around(batch, &self.0.input, channels), |dx| {
            let (dy, w) = (ready::<T>(dy)?, ready::<T>(w)?);
            let (dy, w) = (dy.as_slice::<T>()?.unwrap_or(&[]), w.as_slice::<T>()?.unwrap_or(&[]));
            depthwise::input_gradient(&g, dy, w, dx);
            Ok(())
        }))?;
        Ok(dx.into())
    }

    /// With `u` from above: `d(dy)` is the convolution of `u`, and `dw` correlates `u` with `dy`.
    fn gradient(&self, saved: &Saved, u: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(u)) = u.first() else { return Ok(vec![None, None]) };
        let (mut d_dy, mut dw) = (None, None);
        if needs.has(0) {
            d_dy = Some(apply(DepthwiseConvolve(self.0.clone()), [u, saved.input(1)?])?);
        }
        if needs.has(1) {
            dw = Some(apply(DepthwiseFilterGradient(self.0.clone()), [u, saved.input(0)?])?);
        }
        Ok(vec![d_dy.map(Gradient::Dense), dw.map(Gradient::Dense)])
    }
}

/// The adjoint with respect to the kernel: from `x` and `dy` to `dw`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DepthwiseFilterGradient(Window);

impl Op for DepthwiseFilterGradient {
    fn name(&self) -> &'static str {
        "depthwise_filter_gradient"
    }

    fn saves(&self, tracked: Mask) -> Saves {
        factors(tracked)
    }

    fn multiply_adds(&self, inputs: &[Shape], _: &[Shape]) -> u64 {
        inputs.get(1).map_or(0, |dy| products(&self.0, dy))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, dy) = (inputs.get(0)?, inputs.get(1)?);
        let (batch, channels) = self.0.split("x", x, &self.0.input)?;
        if self.0.split("dy", dy, &self.0.output)? != (batch, channels) {
            let expected = format!("a batch of {batch} and {channels} channels, as x has");
            return Err(Error::shape(NAME, "dy", dy.shape(), expected));
        }
        let dtype = same_floats(NAME, x, "dy", dy)?;
        let g = self.0.geometry(batch, channels, channels);
        let shape: Shape = self.0.kernel.iter().copied().chain([channels]).collect();
        let dw = float_kernel!(NAME, dtype, T => filled::<T>(shape, |dw| {
            let (x, dy) = (ready::<T>(x)?, ready::<T>(dy)?);
            let (x, dy) = (x.as_slice::<T>()?.unwrap_or(&[]), dy.as_slice::<T>()?.unwrap_or(&[]));
            depthwise::filter_gradient(&g, x, dy, dw);
            Ok(())
        }))?;
        Ok(dw.into())
    }

    /// With `u` from above: `dx` is the adjoint at `dy` with kernel `u`, `d(dy)` the convolution of `x` with `u`.
    fn gradient(&self, saved: &Saved, u: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(u)) = u.first() else { return Ok(vec![None, None]) };
        let (mut dx, mut d_dy) = (None, None);
        if needs.has(0) {
            dx = Some(apply(DepthwiseInputGradient(self.0.clone()), [saved.input(1)?, u])?);
        }
        if needs.has(1) {
            d_dy = Some(apply(DepthwiseConvolve(self.0.clone()), [saved.input(0)?, u])?);
        }
        Ok(vec![dx.map(Gradient::Dense), d_dy.map(Gradient::Dense)])
    }
}

/// The samples of a convolution, with one weight a channel.
fn depthwise_samples(make: impl Fn(Window, &[usize], &[usize], &[usize]) -> Sample) -> Vec<Sample> {
    samples(|window, x, w, _| {
        let kernel: Vec<usize> = w[..w.len() - 2].iter().copied().chain([x[x.len() - 1]]).collect();
        let y: Vec<usize> = around(x[0], &window.output, x[x.len() - 1]).to_vec();
        vec![make(window, x, &kernel, &y)]
    })
}

impl Listed for DepthwiseConvolve {
    fn samples() -> Vec<Sample> {
        depthwise_samples(|window, x, w, _| {
            Sample::new(DepthwiseConvolve(window), [SampleInput::float(x), SampleInput::float(w)])
        })
    }
}

impl Listed for DepthwiseInputGradient {
    fn samples() -> Vec<Sample> {
        depthwise_samples(|window, _, w, y| {
            Sample::new(DepthwiseInputGradient(window), [SampleInput::float(y), SampleInput::float(w)])
        })
    }
}

impl Listed for DepthwiseFilterGradient {
    fn samples() -> Vec<Sample> {
        depthwise_samples(|window, x, _, y| {
            Sample::new(DepthwiseFilterGradient(window), [SampleInput::float(x), SampleInput::float(y)])
        })
    }
}

impl Tensor {
    /// Convolution of each channel by itself, over one to three spatial dims, with `multiplier` kernels a channel:
    /// `y[b, o, c multiplier + m] = sum_k x[b, o stride + k rate - before, c] w[k, c, m]`.
    ///
    /// | tensor | shape |
    /// |---|---|
    /// | `x` | `[batch, spatial.., channels]` |
    /// | `w` | `[kernel.., channels, multiplier]` |
    /// | `y` | `[batch, spatial'.., channels * multiplier]` |
    ///
    /// With a multiplier above 1 the channels of `x` are repeated in memory.
    ///
    /// ```
    /// use couplet::{Tensor, ops::ConvOptions};
    /// let x = Tensor::from([[[1.0f32, 10.0], [2.0, 20.0], [3.0, 30.0]]]); // one example of three positions
    /// let w = Tensor::from([[[1.0f32], [0.0]], [[1.0], [1.0]], [[1.0], [0.0]]]); // sums, and the middle
    /// let y = x.depthwise_convolve(&w, &ConvOptions::default())?;
    /// assert_eq!(y.to_vec::<f32>()?, [3.0, 10.0, 6.0, 20.0, 5.0, 30.0]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes, channels or dtypes that do not fit; a stride, rate or kernel of 0; stride and rate both above 1.
    pub fn depthwise_convolve<'a>(&self, w: impl Operand<'a>, options: &ConvOptions) -> Result<Tensor> {
        let w = w.into_input(self)?;
        let dims = spatial(NAME, "x", self)?;
        let (n, of_w) = (dims.len(), w.tensor().shape());
        let channels = self.shape()[n + 1];
        if of_w.rank() != n + 2 || of_w[n] != channels {
            let expected = format!("[{n} kernel dims, {channels} channels, multiplier]");
            return Err(Error::shape(NAME, "w", of_w, expected));
        }
        let (kernel, multiplier) = (of_w[..n].to_vec(), of_w[n + 1]);
        let window = Window::new(NAME, &dims, &kernel, options)?;
        let flat: Shape = kernel.into_iter().chain([channels * multiplier]).collect();
        let w = w.tensor().reshape(flat)?;
        let op = DepthwiseConvolve(window);
        match multiplier {
            1 => apply(op, [Input::Ref(self), Input::Own(w)]),
            _ => apply(op, [self.repeat(multiplier, -1)?, w]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiplier_gives_each_channel_its_kernels_side_by_side() -> Result<()> {
        let x = Tensor::from([[[1.0f64, 2.0]]]);
        let w = Tensor::from([[[1.0f64, 10.0, 100.0], [2.0, 20.0, 200.0]]]);
        let y = x.depthwise_convolve(&w, &ConvOptions::default())?;
        assert_eq!(y.to_vec::<f64>()?, [1.0, 10.0, 100.0, 4.0, 40.0, 400.0]);
        Ok(())
    }

    #[test]
    fn misfits_are_errors_and_nothing_gives_nothing() {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32).unwrap();
        let (x, options) = (zeros(&[1, 4, 4, 2]), ConvOptions::default());
        let message = x.depthwise_convolve(zeros(&[3, 3, 5, 1]), &options).unwrap_err().to_string();
        assert!(message.contains("2 channels") && message.contains("[3, 3, 5, 1]"), "{message}");
        assert!(x.depthwise_convolve(zeros(&[3, 2, 1]), &options).is_err());
        assert!(x.depthwise_convolve(zeros(&[0, 3, 2, 1]), &options).is_err());
        assert!(zeros(&[4]).depthwise_convolve(zeros(&[1]), &options).is_err());
        let w = zeros(&[3, 3, 2, 2]);
        assert_eq!(zeros(&[0, 4, 4, 2]).depthwise_convolve(&w, &options).unwrap().shape(), &[0, 4, 4, 4]);
        assert_eq!(zeros(&[1, 0, 4, 2]).depthwise_convolve(&w, &options).unwrap().shape(), &[1, 0, 4, 4]);
        let none = zeros(&[1, 4, 4, 0]).depthwise_convolve(zeros(&[3, 3, 0, 1]), &options).unwrap();
        assert_eq!(none.shape(), &[1, 4, 4, 0]);
        assert_eq!(x.depthwise_convolve(zeros(&[3, 3, 2, 0]), &options).unwrap().shape(), &[1, 4, 4, 0]);
    }
}
