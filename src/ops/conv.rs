//! Convolutions over one to three spatial dims, channels last.

use serde::{Deserialize, Serialize};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::conv::{ConvGeometry, conv_filter_gradient, conv_forward, conv_input_gradient};
use crate::kernels::gemm::Real;
use crate::tensor::{Shape, Tensor, take};

use super::gradient::Gradient;
use super::op::{Computed, Input, Inputs, Mask, Op, Saved, Saves};
use super::registry::{Listed, Sample, SampleInput};
use super::{Operand, apply, apply_many};

/// Zeros put around the input of a convolution or pooling, along each spatial axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Padding {
    /// `out = ceil(in / stride)`; what is lacking is split evenly, one more after than before if it is odd.
    Same,
    /// None: the kernel stays inside the input.
    Valid,
    /// Before and after, for each spatial axis.
    Explicit(Vec<(usize, usize)>),
}

/// How a kernel slides: one number for all spatial axes, or one for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvOptions {
    /// Steps between outputs, each 1 or more.
    pub stride: Vec<usize>,
    /// Distance between the taps of the kernel (dilation), each 1 or more.
    pub rate: Vec<usize>,
    /// Zeros around the input.
    pub padding: Padding,
}

impl Default for ConvOptions {
    /// Stride 1, rate 1, [`Padding::Same`].
    fn default() -> Self {
        ConvOptions { stride: vec![1], rate: vec![1], padding: Padding::Same }
    }
}

impl ConvOptions {
    /// Refuses zeros, and a stride together with a rate.
    pub(crate) fn check(&self, op: &'static str) -> Result<()> {
        for (argument, list) in [("stride", &self.stride), ("rate", &self.rate)] {
            if list.contains(&0) {
                return Err(Error::argument(op, argument, format!("{list:?}"), "1 or more"));
            }
        }
        if self.stride.iter().any(|&s| s > 1) && self.rate.iter().any(|&r| r > 1) {
            let got = format!("{:?} with stride {:?}", self.rate, self.stride);
            return Err(Error::argument(op, "rate", got, "1 where a stride is above 1, or stride 1"));
        }
        Ok(())
    }
}

/// Size of the output and zeros before the input along one axis.
pub(crate) fn window(
    input: usize,
    kernel: usize,
    stride: usize,
    rate: usize,
    padding: &Padding,
    axis: usize,
) -> (usize, usize) {
    let reach = kernel.saturating_sub(1).saturating_mul(rate).saturating_add(1);
    match padding {
        Padding::Same => {
            let output = input.div_ceil(stride);
            let needed = (output.saturating_sub(1) * stride).saturating_add(reach);
            (output, needed.saturating_sub(input) / 2)
        }
        Padding::Valid => ((input + 1).saturating_sub(reach).div_ceil(stride), 0),
        Padding::Explicit(pads) => {
            let (before, after) = pads.get(axis).copied().unwrap_or((0, 0));
            let padded = input.saturating_add(before).saturating_add(after);
            (if padded < reach { 0 } else { (padded - reach) / stride + 1 }, before)
        }
    }
}

/// Repeats a single number for each of `n` axes and checks that none is 0.
pub(crate) fn per_axis(
    op: &'static str,
    argument: &'static str,
    given: &[usize],
    n: usize,
) -> Result<Vec<usize>> {
    let list = match given {
        [one] => vec![*one; n],
        list if list.len() == n => list.to_vec(),
        list => {
            let expected = format!("one number, or one for each of the {n} spatial axes");
            return Err(Error::argument(op, argument, format!("{list:?}"), expected));
        }
    };
    if list.contains(&0) {
        return Err(Error::argument(op, argument, format!("{given:?}"), "1 or more"));
    }
    Ok(list)
}

/// The numbers of one convolution; all three ops of a convolution and its gradients share them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Window {
    /// Spatial dims of the input.
    input: Vec<usize>,
    kernel: Vec<usize>,
    stride: Vec<usize>,
    rate: Vec<usize>,
    before: Vec<usize>,
    /// Spatial dims of the output.
    output: Vec<usize>,
}

const NAMES: [&str; 3] = ["conv1d", "conv2d", "conv3d"];

impl Window {
    fn new(op: &'static str, input: &[usize], kernel: &[usize], options: &ConvOptions) -> Result<Self> {
        let n = input.len();
        let stride = per_axis(op, "stride", &options.stride, n)?;
        let rate = per_axis(op, "rate", &options.rate, n)?;
        options.check(op)?;
        if kernel.contains(&0) {
            return Err(Error::argument(op, "kernel_shape", format!("{kernel:?}"), "1 or more"));
        }
        if let Padding::Explicit(pads) = &options.padding
            && pads.len() != n
        {
            let expected = format!("one pair for each of the {n} spatial axes");
            return Err(Error::argument(op, "padding", format!("{pads:?}"), expected));
        }
        let sizes = (0..n).map(|a| window(input[a], kernel[a], stride[a], rate[a], &options.padding, a));
        let (output, before) = sizes.unzip();
        Ok(Window { input: input.to_vec(), kernel: kernel.to_vec(), stride, rate, before, output })
    }

    /// The name of the op for messages.
    fn name(&self) -> &'static str {
        NAMES[self.input.len().clamp(1, 3) - 1]
    }

    fn geometry(&self, batch: usize, in_channels: usize, out_channels: usize) -> ConvGeometry {
        let three = |list: &[usize], fill: usize| {
            let mut all = [fill; 3];
            all[3 - list.len()..].copy_from_slice(list);
            all
        };
        ConvGeometry {
            batch,
            input: three(&self.input, 1),
            in_channels,
            kernel: three(&self.kernel, 1),
            out_channels,
            output: three(&self.output, 1),
            stride: three(&self.stride, 1),
            rate: three(&self.rate, 1),
            before: three(&self.before, 0).map(|before| before as isize),
        }
    }

    /// Batch and channels of an input (or output) whose spatial dims must be `spatial`.
    fn split(&self, what: &'static str, x: &Tensor, spatial: &[usize]) -> Result<(usize, usize)> {
        let rank = spatial.len() + 2;
        if x.rank() != rank || x.shape()[1..rank - 1] != *spatial {
            let expected = format!("[batch, {spatial:?}, channels]");
            return Err(Error::shape(self.name(), what, x.shape(), expected));
        }
        Ok((x.shape()[0], x.shape()[rank - 1]))
    }

    /// Input and output channels of a kernel.
    fn channels(&self, w: &Tensor) -> Result<(usize, usize)> {
        let n = self.kernel.len();
        if w.rank() != n + 2 || w.shape()[..n] != self.kernel[..] {
            return Err(Error::shape(self.name(), "w", w.shape(), format!("[{:?}, in, out]", self.kernel)));
        }
        Ok((w.shape()[n], w.shape()[n + 1]))
    }
}

/// Runs the body with `$T` as f64 or f32; half floats go through f32.
macro_rules! float_kernel {
    ($op:expr, $dtype:expr, $T:ident => $body:expr) => {{
        match $dtype {
            DType::F64 => {
                type $T = f64;
                $body
            }
            dtype if dtype.is_float() => {
                type $T = f32;
                let y: Result<Tensor> = $body;
                y?.converted(dtype)
            }
            dtype => Err(Error::dtype($op, "x", dtype, "a float dtype")),
        }
    }};
}

/// A tensor's elements in the type of a kernel, contiguous.
fn ready<T: Element>(x: &Tensor) -> Result<Tensor> {
    Ok(x.converted(T::DTYPE)?.to_contiguous())
}

fn filled<T: Real + Element>(shape: Shape, f: impl FnOnce(&mut [T]) -> Result<()>) -> Result<Tensor> {
    crate::tensor::checked_size("convolution", &shape, T::DTYPE)?;
    let mut y = take::<T>(shape.size());
    f(&mut y)?;
    Ok(Tensor::from_taken(y, shape))
}

fn same_floats(op: &'static str, a: &Tensor, named: &str, b: &Tensor) -> Result<DType> {
    if a.dtype() != b.dtype() {
        return Err(Error::dtype(op, named, b.dtype(), format!("{}, that of x", a.dtype())));
    }
    Ok(a.dtype())
}

fn around(batch: usize, spatial: &[usize], channels: usize) -> Shape {
    std::iter::once(batch).chain(spatial.iter().copied()).chain([channels]).collect()
}

/// `y[b, o, co] = bias[co] + sum_{k, ci} x[b, o stride + k rate - before, ci] w[k, ci, co]`, x being 0 outside.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Convolve {
    window: Window,
    with_bias: bool,
}

/// What a product of two factors saves: each for the gradient of the other.
fn factors(tracked: Mask) -> Saves {
    let a = if tracked.has(1) { Mask::only(0) } else { Mask::NONE };
    let b = if tracked.has(0) { Mask::only(1) } else { Mask::NONE };
    Saves::inputs(a.and(b))
}

/// Multiply-adds of a convolution with outputs `y` and kernel `w [.., in, out]`: a dot product with the kernel for each
/// output. The two gradients take as many.
fn products(y: &Shape, w: &Shape) -> u64 {
    let one = w.size() / w.last().copied().unwrap_or(1).max(1);
    (y.size() as u64).saturating_mul(one as u64)
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

/// Small windows of one to three spatial dims, with their input, kernel and output shapes.
fn samples(make: impl Fn(Window, &[usize], &[usize], &[usize]) -> Vec<Sample>) -> Vec<Sample> {
    let cases: [(&[usize], &[usize], usize, usize, Padding); 5] = [
        (&[5], &[3], 1, 2, Padding::Same),
        (&[5, 4], &[3, 2], 2, 1, Padding::Same),
        (&[4, 5], &[2, 3], 1, 1, Padding::Valid),
        (&[4], &[3], 1, 1, Padding::Explicit(vec![(2, 0)])),
        (&[3, 2, 3], &[2, 2, 2], 1, 1, Padding::Same),
    ];
    let mut list = Vec::new();
    for (input, kernel, stride, rate, padding) in cases {
        let options = ConvOptions { stride: vec![stride], rate: vec![rate], padding };
        if let Ok(window) = Window::new("sample", input, kernel, &options) {
            let x = around(2, input, 2);
            let w: Vec<usize> = kernel.iter().copied().chain([2, 3]).collect();
            let y = around(2, &window.output, 3);
            list.extend(make(window, &x, &w, &y));
        }
    }
    list
}

/// The adjoint of a convolution with respect to its input: from `dy` and `w` to `dx`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ConvInputGradient(Window);

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
    window: Window,
    with_bias: bool,
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

/// The spatial dims of a tensor of rank 3 to 5.
fn spatial(op: &'static str, what: &'static str, x: &Tensor) -> Result<Vec<usize>> {
    if !(3..=5).contains(&x.rank()) {
        return Err(Error::shape(
            op,
            what,
            x.shape(),
            "rank 3 to 5: [batch, one to three spatial dims, channels]",
        ));
    }
    Ok(x.shape()[1..x.rank() - 1].to_vec())
}

fn kernel_dims(op: &'static str, w: &Tensor, n: usize) -> Result<Vec<usize>> {
    if w.rank() != n + 2 {
        return Err(Error::shape(op, "w", w.shape(), format!("rank {}: [kernel, in, out]", n + 2)));
    }
    Ok(w.shape()[..n].to_vec())
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
    /// A kernel larger than a [`Padding::Valid`] input gives an empty output.
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
        let window = Window::new("convolve_transpose", output, &kernel, options)?;
        if window.output != dims {
            let expected =
                format!("dims whose convolution gives {dims:?}; this one gives {:?}", window.output);
            return Err(Error::argument(
                "convolve_transpose",
                "output_shape",
                format!("{output:?}"),
                expected,
            ));
        }
        apply(ConvInputGradient(window), [Input::Ref(self), w])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_sizes_follow_the_formulas() {
        // in 5, kernel 3, stride 2: SAME gives 3 with 1 before; VALID gives 2; a kernel too large gives 0.
        assert_eq!(window(5, 3, 2, 1, &Padding::Same, 0), (3, 1));
        assert_eq!(window(5, 3, 2, 1, &Padding::Valid, 0), (2, 0));
        assert_eq!(window(2, 3, 1, 1, &Padding::Valid, 0), (0, 0));
        assert_eq!(window(4, 2, 1, 1, &Padding::Explicit(vec![(1, 0)]), 0), (4, 1));
        assert_eq!(window(0, 3, 1, 1, &Padding::Same, 0).0, 0);
    }

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
        let wrong = Tensor::zeros([3, 3, 4, 5], DType::F32).unwrap();
        let message = x.convolve(&wrong, None, &ConvOptions::default()).unwrap_err().to_string();
        assert!(message.contains("4 channels"), "{message}");
        let empty = Tensor::zeros([0, 4, 4, 2], DType::F32).unwrap();
        assert_eq!(empty.convolve(&w, None, &ConvOptions::default()).unwrap().shape(), &[0, 4, 4, 5]);
    }
}
