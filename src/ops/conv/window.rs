//! What the ops of a convolution share: its numbers, and the checks of its operands.

use serde::{Deserialize, Serialize};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::conv::ConvGeometry;
use crate::kernels::gemm::Real;
use crate::ops::op::{Mask, Saves};
use crate::ops::registry::Sample;
use crate::tensor::{Shape, Tensor, take};

use super::options::{ConvOptions, Padding, per_axis, window};

/// The numbers of one convolution; all three ops of a convolution and its gradients share them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Window {
    /// Spatial dims of the input.
    pub(super) input: Vec<usize>,
    pub(super) kernel: Vec<usize>,
    pub(super) stride: Vec<usize>,
    pub(super) rate: Vec<usize>,
    pub(super) before: Vec<usize>,
    /// Spatial dims of the output.
    pub(super) output: Vec<usize>,
}

pub(super) const NAMES: [&str; 3] = ["conv1d", "conv2d", "conv3d"];

impl Window {
    pub(super) fn new(
        op: &'static str,
        input: &[usize],
        kernel: &[usize],
        options: &ConvOptions,
    ) -> Result<Self> {
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
    pub(super) fn name(&self) -> &'static str {
        NAMES[self.input.len().clamp(1, 3) - 1]
    }

    pub(super) fn geometry(&self, batch: usize, in_channels: usize, out_channels: usize) -> ConvGeometry {
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
    pub(super) fn split(&self, what: &'static str, x: &Tensor, spatial: &[usize]) -> Result<(usize, usize)> {
        let rank = spatial.len() + 2;
        if x.rank() != rank || x.shape()[1..rank - 1] != *spatial {
            let expected = format!("[batch, {spatial:?}, channels]");
            return Err(Error::shape(self.name(), what, x.shape(), expected));
        }
        Ok((x.shape()[0], x.shape()[rank - 1]))
    }

    /// Input and output channels of a kernel.
    pub(super) fn channels(&self, w: &Tensor) -> Result<(usize, usize)> {
        let n = self.kernel.len();
        if w.rank() != n + 2 || w.shape()[..n] != self.kernel[..] {
            return Err(Error::shape(self.name(), "w", w.shape(), format!("[{:?}, in, out]", self.kernel)));
        }
        Ok((w.shape()[n], w.shape()[n + 1]))
    }
}

impl ConvOptions {
    /// The convolution of `output` with these options, which must give `input`: then its adjoint takes `input` to `output`.
    pub(crate) fn check_transpose(
        &self,
        op: &'static str,
        input: &[usize],
        kernel: &[usize],
        output: &[usize],
    ) -> Result<Window> {
        let window = Window::new(op, output, kernel, self)?;
        if window.output != input {
            let expected =
                format!("dims whose convolution gives {input:?}; this one gives {:?}", window.output);
            return Err(Error::argument(op, "output_shape", format!("{output:?}"), expected));
        }
        Ok(window)
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

pub(super) use float_kernel;

/// A tensor's elements in the type of a kernel, contiguous.
pub(super) fn ready<T: Element>(x: &Tensor) -> Result<Tensor> {
    Ok(x.converted(T::DTYPE)?.to_contiguous())
}

pub(super) fn filled<T: Real + Element>(
    shape: Shape,
    f: impl FnOnce(&mut [T]) -> Result<()>,
) -> Result<Tensor> {
    crate::tensor::checked_size("convolution", &shape, T::DTYPE)?;
    let mut y = take::<T>(shape.size());
    f(&mut y)?;
    Ok(Tensor::from_taken(y, shape))
}

pub(super) fn same_floats(op: &'static str, a: &Tensor, named: &str, b: &Tensor) -> Result<DType> {
    if a.dtype() != b.dtype() {
        return Err(Error::dtype(op, named, b.dtype(), format!("{}, that of x", a.dtype())));
    }
    Ok(a.dtype())
}

pub(super) fn around(batch: usize, spatial: &[usize], channels: usize) -> Shape {
    std::iter::once(batch).chain(spatial.iter().copied()).chain([channels]).collect()
}

/// What a product of two factors saves: each for the gradient of the other.
pub(super) fn factors(tracked: Mask) -> Saves {
    let a = if tracked.has(1) { Mask::only(0) } else { Mask::NONE };
    let b = if tracked.has(0) { Mask::only(1) } else { Mask::NONE };
    Saves::inputs(a.and(b))
}

/// Multiply-adds of a convolution with outputs `y` and kernel `w [.., in, out]`: a dot product with the kernel for each
/// output. The two gradients take as many.
pub(super) fn products(y: &Shape, w: &Shape) -> u64 {
    let one = w.size() / w.last().copied().unwrap_or(1).max(1);
    (y.size() as u64).saturating_mul(one as u64)
}

/// Small windows of one to three spatial dims, with their input, kernel and output shapes.
pub(super) fn samples(make: impl Fn(Window, &[usize], &[usize], &[usize]) -> Vec<Sample>) -> Vec<Sample> {
    let cases: [(&[usize], &[usize], usize, usize, Padding); 6] = [
        (&[5], &[3], 1, 2, Padding::Same),
        (&[5, 4], &[3, 2], 2, 1, Padding::Same),
        (&[4, 5], &[2, 3], 1, 1, Padding::Valid),
        (&[4], &[3], 1, 1, Padding::Explicit(vec![(2, 0)])),
        (&[3, 2, 3], &[2, 2, 2], 1, 1, Padding::Same),
        (&[1], &[1], 1, 1, Padding::Same),
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

/// The spatial dims of a tensor of rank 3 to 5.
pub(super) fn spatial(op: &'static str, what: &'static str, x: &Tensor) -> Result<Vec<usize>> {
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

pub(super) fn kernel_dims(op: &'static str, w: &Tensor, n: usize) -> Result<Vec<usize>> {
    if w.rank() != n + 2 {
        return Err(Error::shape(op, "w", w.shape(), format!("rank {}: [kernel, in, out]", n + 2)));
    }
    Ok(w.shape()[..n].to_vec())
}
