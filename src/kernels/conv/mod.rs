//! Convolutions in one, two and three dimensions, channels last.
//!
//! A convolution is a matrix product whose left operand is never built: a row of it is the part of the input under the
//! filter, which the inner loop of [`super::micro`] reads where it lies. Only tiles that reach over the edge of the
//! input are copied first, with zeros around them.

mod correlate;
mod filter;
mod plan;

use super::gemm::{Matrix, Real, gemm};
use super::micro::Start;
use super::scratch::with_scratch;
use correlate::correlate;
use plan::Plan;

/// `y[b, o, co] = bias[co] + sum over k and ci of x[b, o * stride + k * rate - before, ci] * w[k, ci, co]`.
///
/// | tensor | shape                                    |
/// |--------|------------------------------------------|
/// | `x`    | `[batch, *input, in_channels]`           |
/// | `w`    | `[*kernel, in_channels, out_channels]`   |
/// | `y`    | `[batch, *output, out_channels]`         |
///
/// `x` is zero outside of its bounds. There are always three spatial dims; those that are missing have size 1 in
/// `input`, `kernel` and `output`. All tensors are contiguous.
#[derive(Debug, Clone)]
pub(crate) struct ConvGeometry {
    pub batch: usize,
    pub input: [usize; 3],
    pub in_channels: usize,
    pub kernel: [usize; 3],
    pub out_channels: usize,
    pub output: [usize; 3],
    /// At least 1.
    pub stride: [usize; 3],
    /// At least 1.
    pub rate: [usize; 3],
    /// Zeros in front of the input.
    pub before: [isize; 3],
}

impl ConvGeometry {
    fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    fn x_positions(&self) -> usize {
        self.batch * self.input.iter().product::<usize>()
    }

    fn y_positions(&self) -> usize {
        self.batch * self.output.iter().product::<usize>()
    }

    /// Checks the lengths of all three tensors, on which every unsafe access rests.
    fn check<T>(&self, x: &[T], w: &[T], y: &[T]) {
        assert!(self.stride.iter().chain(&self.rate).all(|&n| n > 0), "stride and rate of {self:?}");
        assert_eq!(x.len(), self.x_positions() * self.in_channels, "elements of x for {self:?}");
        assert_eq!(w.len(), self.taps() * self.in_channels * self.out_channels, "elements of w for {self:?}");
        assert_eq!(y.len(), self.y_positions() * self.out_channels, "elements of y for {self:?}");
    }

    /// Whether each result reads the input at its own position only, so that the convolution is a matrix product.
    fn is_product(&self) -> bool {
        self.kernel == [1; 3] && self.stride == [1; 3] && self.before == [0; 3] && self.input == self.output
    }
}

/// `y` from `x`, `w` and, if there is one, the bias.
///
/// # Panics
/// A length does not fit the geometry.
pub(crate) fn conv_forward<T: Real>(g: &ConvGeometry, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) {
    g.check(x, w, y);
    assert!(bias.is_none_or(|bias| bias.len() == g.out_channels), "elements of the bias for {g:?}");
    if g.is_product() {
        let x = Matrix::row_major(x, g.x_positions(), g.in_channels);
        return gemm(x, Matrix::row_major(w, g.in_channels, g.out_channels), y, false, bias);
    }
    let start = bias.map_or(Start::Zero, |bias| Start::Bias(bias.as_ptr()));
    // SAFETY: `check` has compared all lengths with the geometry.
    unsafe { correlate(&Plan::forward(g), x, w, start, y) }
}

/// `dx`, the adjoint of the convolution: `dx[b, i, ci] = sum of dy[b, o, co] * w[k, ci, co]` over all `o`, `k` and `co`
/// with `o * stride + k * rate - before = i`. A transposed convolution is this with `dy` for its input.
///
/// # Panics
/// A length does not fit the geometry.
pub(crate) fn conv_input_gradient<T: Real>(g: &ConvGeometry, dy: &[T], w: &[T], dx: &mut [T]) {
    g.check(dx, w, dy);
    if g.is_product() {
        let dy = Matrix::row_major(dy, g.y_positions(), g.out_channels);
        return gemm(dy, Matrix::row_major(w, g.in_channels, g.out_channels).transposed(), dx, false, None);
    }
    // Inputs at a distance of `stride` from each other are reached by the same taps: each such set is a convolution of
    // `dy` with stride 1, whose filter is turned around and transposed.
    let (mut phase, stride) = ([0; 3], g.stride);
    with_scratch(w.len(), |turned: &mut [T]| {
        loop {
            let (plan, taps) = Plan::backward(g, phase);
            plan::turn_filter(g, &taps, w, turned);
            // SAFETY: `check` has compared all lengths with the geometry; `turned` holds the taps of this phase.
            unsafe { correlate(&plan, dy, turned, Start::Zero, dx) };
            let Some(axis) = (0..3).find(|&d| phase[d] + 1 < stride[d].min(g.input[d])) else { break };
            phase[axis] += 1;
            phase[..axis].fill(0);
        }
    });
}

/// `dw[k, ci, co] = sum over b and o of x[b, o * stride + k * rate - before, ci] * dy[b, o, co]` and, if asked for,
/// `db[co]`, the sum of `dy` over all positions.
///
/// # Panics
/// A length does not fit the geometry.
pub(crate) fn conv_filter_gradient<T: Real>(
    g: &ConvGeometry,
    x: &[T],
    dy: &[T],
    dw: &mut [T],
    db: Option<&mut [T]>,
) {
    g.check(x, dw, dy);
    assert!(
        db.as_ref().is_none_or(|db| db.len() == g.out_channels),
        "elements of the bias gradient for {g:?}"
    );
    // SAFETY: `check` has compared all lengths with the geometry.
    unsafe { filter::filter_gradient(&Plan::forward(g), x, dy, dw, db) }
}

#[cfg(test)]
mod tests;
