//! Pooling: the largest or the mean value of windows, in one, two and three dimensions.

mod average;
mod global;
mod max;

pub(crate) use average::{AveragePool, AveragePoolGradient};
pub(crate) use max::{MaxPool, MaxPoolGradient, MaxPoolSelect};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::kernels::pool::PoolGeometry;
use crate::tensor::{Shape, Strides, Tensor};

use super::apply;
use super::conv::{Padding, per_axis, window};

/// The windows of a pooling: their size, and how they are laid out over one to three spatial axes.
///
/// Sizes and strides are one number for all spatial axes or one for each. By default windows lie side by side (the stride
/// is the size), inside the input ([`Padding::Valid`]), whose channels are its last axis.
///
/// ```
/// use couplet::{Padding, Pool, Tensor};
/// let x = Tensor::from([[[1.0f32], [3.0], [2.0], [0.0], [5.0]]]);
/// assert_eq!(x.max_pool(&Pool::new([2]))?.to_vec::<f32>()?, [3.0, 2.0]);
/// assert_eq!(x.max_pool(&Pool::new([2]).padding(Padding::Same))?.to_vec::<f32>()?, [3.0, 2.0, 5.0]);
/// assert_eq!(x.average_pool(&Pool::new([2]).stride([3]))?.to_vec::<f32>()?, [2.0, 2.5]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    window: Vec<usize>,
    stride: Option<Vec<usize>>,
    padding: Padding,
    channels_first: bool,
}

impl Pool {
    /// Windows of this size.
    pub fn new(window: impl Into<Vec<usize>>) -> Self {
        Pool { window: window.into(), stride: None, padding: Padding::Valid, channels_first: false }
    }

    /// Steps from one window to the next. Default: the size of the windows.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Vec<usize>>) -> Self {
        self.stride = Some(stride.into());
        self
    }

    /// How far windows reach over the edge; what lies outside takes no part: it is never the largest and does not count
    /// for the mean. Explicit padding is smaller than the window. Default: [`Padding::Valid`].
    #[must_use]
    pub fn padding(mut self, padding: Padding) -> Self {
        self.padding = padding;
        self
    }

    /// The channels are axis 1, as in NCHW. Default: the last axis, as in NHWC.
    #[must_use]
    pub fn channels_first(mut self) -> Self {
        self.channels_first = true;
        self
    }

    /// The geometry for an input of shape `x`, and the shape of the output with the channels last.
    fn geometry(&self, op: &'static str, x: &Shape) -> Result<(PoolGeometry, Shape)> {
        const LARGEST: usize = u32::MAX as usize - 1;
        if !(3..=5).contains(&x.rank()) {
            return Err(Error::shape(
                op,
                "x",
                x,
                "rank 3 to 5: batch, channels and one to three spatial axes",
            ));
        }
        let axes = x.rank() - 2;
        let windows = per_axis(op, "window", &self.window, axes)?;
        let strides = per_axis(op, "stride", self.stride.as_ref().unwrap_or(&self.window), axes)?;
        if let Some(n) = windows.iter().chain(&strides).find(|&&n| n > LARGEST) {
            return Err(Error::argument(op, "window", n, "sizes and strides below 2^32"));
        }
        if let Padding::Explicit(pads) = &self.padding {
            let fits =
                pads.len() == axes && pads.iter().zip(&windows).all(|(pad, w)| pad.0 < *w && pad.1 < *w);
            if !fits {
                let expected =
                    format!("one pair for each of {axes} axes, smaller than the window {windows:?}");
                return Err(Error::argument(op, "padding", format!("{pads:?}"), expected));
            }
        }
        let (first, channels) = if self.channels_first { (2, x[1]) } else { (1, x[axes + 1]) };
        let mut g = PoolGeometry {
            batch: x[0],
            input: [1; 3],
            channels,
            window: [1; 3],
            output: [1; 3],
            stride: [1; 3],
            before: [0; 3],
        };
        let mut shape = vec![x[0]];
        for (i, (&size, &stride)) in windows.iter().zip(&strides).enumerate() {
            let (input, at) = (x[first + i], 3 - axes + i);
            let (output, before) = window(input, size, stride, 1, &self.padding, i);
            if output == 0 && input > 0 {
                let expected =
                    format!("{size} or more at axis {}, the size of the window, or Padding::Same", first + i);
                return Err(Error::shape(op, "x", x, expected));
            }
            (g.input[at], g.window[at], g.stride[at], g.output[at]) = (input, size, stride, output);
            g.before[at] = before as isize;
            shape.push(output);
        }
        shape.push(channels);
        if g.input.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).is_none_or(|n| n > LARGEST) {
            return Err(Error::shape(op, "x", x, "fewer than 2^32 - 1 positions"));
        }
        Ok((g, shape.into()))
    }

    /// The shape of an input with the channels last.
    fn channels_last_shape(&self, x: &Shape) -> Shape {
        if !self.channels_first {
            return x.clone();
        }
        x[..1].iter().chain(&x[2..]).chain(&x[1..2]).copied().collect()
    }

    /// A view of `x` with the channels last; whoever calls checks its shape.
    fn channels_last(&self, x: &Tensor) -> Tensor {
        if self.channels_first && x.rank() > 2 { moved(x, 1, x.rank() - 1) } else { x.clone() }
    }

    /// A view of `y`, whose channels are last, in this layout.
    fn in_layout(&self, y: &Tensor) -> Tensor {
        if self.channels_first { moved(y, y.rank() - 1, 1) } else { y.clone() }
    }
}

/// A view of `x` with its axis `from` at position `to`; not recorded.
fn moved(x: &Tensor, from: usize, to: usize) -> Tensor {
    let (mut shape, mut strides) = (x.shape().to_vec(), x.strides().to_vec());
    let (dim, stride) = (shape.remove(from), strides.remove(from));
    shape.insert(to, dim);
    strides.insert(to, stride);
    x.view_as(x.offset(), shape.into(), Strides::new(&strides))
}

/// Refuses a tensor that has not the expected shape.
fn expect_shape(op: &'static str, what: &'static str, x: &Tensor, shape: &Shape) -> Result<()> {
    if x.shape() != shape {
        return Err(Error::shape(op, what, x.shape(), format!("{shape}")));
    }
    Ok(())
}

impl Tensor {
    /// The largest value of each window; of equal ones the first gets the gradient, and a NaN is the largest.
    ///
    /// | tensor | shape                                                               |
    /// |--------|---------------------------------------------------------------------|
    /// | `x`    | `[batch, spatial.., channels]`, or `[batch, channels, spatial..]`   |
    /// | `y`    | the same layout, spatial axes as [`Pool`] says                      |
    ///
    /// # Errors
    /// The rank is not 3 to 5, a size or stride is 0 or lacks an axis, a window is larger than the padded input, or the
    /// dtype is not a float.
    pub fn max_pool(&self, pool: &Pool) -> Result<Tensor> {
        apply(MaxPool { pool: pool.clone(), from: self.shape().clone() }, [self])
    }

    /// The mean value of each window, over its positions inside the input.
    ///
    /// # Errors
    /// As for [`max_pool`](Tensor::max_pool).
    pub fn average_pool(&self, pool: &Pool) -> Result<Tensor> {
        apply(AveragePool { pool: pool.clone(), from: self.shape().clone() }, [self])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, GradientTape};

    fn image() -> Tensor {
        Tensor::arange(0.0, 24.0, 1.0, DType::F64).unwrap().reshape([1, 3, 4, 2]).unwrap()
    }

    #[test]
    fn channels_first_gives_the_transposed_numbers() {
        let x = image();
        let first = x.transpose(&[0, 3, 1, 2]).unwrap();
        let pool = Pool::new([2, 3]).stride([1, 2]).padding(Padding::Same);
        for op in [Tensor::max_pool, Tensor::average_pool] {
            let want = op(&x, &pool).unwrap();
            let got = op(&first, &pool.clone().channels_first()).unwrap().transpose(&[0, 2, 3, 1]).unwrap();
            assert_eq!(got.shape(), want.shape());
            assert_eq!(got.to_vec::<f64>().unwrap(), want.to_vec::<f64>().unwrap());
        }
    }

    #[test]
    fn the_first_of_equal_values_gets_the_gradient() {
        let x = Tensor::from([[[1.0f32], [1.0], [0.0], [0.0]]]);
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = x.max_pool(&Pool::new([2])).unwrap();
        let ones = Tensor::ones(y.shape().clone(), DType::F32).unwrap();
        let dx = tape.gradient_with_seed(&y, &ones, &[&x]).unwrap().remove(0).unwrap();
        assert_eq!(dx.dense().unwrap().to_vec::<f32>().unwrap(), [1.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn bad_windows_and_inputs_are_refused() {
        let x = image();
        let message = |pool: Pool| x.max_pool(&pool).unwrap_err().to_string();
        assert!(message(Pool::new([2, 2]).stride([0, 1])).contains("stride is [0, 1], expected 1 or more"));
        assert!(message(Pool::new([2, 2]).stride([1, 1, 1])).contains("stride"));
        assert!(message(Pool::new([0, 2])).contains("window"));
        assert!(message(Pool::new([])).contains("window"));
        assert!(message(Pool::new([2]).padding(Padding::Explicit(vec![(2, 0), (0, 0)]))).contains("padding"));
        assert!(message(Pool::new([4, 2])).contains("expected 4 or more at axis 1"));
        assert!(message(Pool::new([usize::MAX, 2]).padding(Padding::Same)).contains("window"));
        assert!(Tensor::from([[1.0f32]]).max_pool(&Pool::new([1])).is_err());
        assert!(x.cast(DType::I32).unwrap().average_pool(&Pool::new([2, 2])).is_err());
    }

    #[test]
    fn an_empty_batch_gives_an_empty_output() {
        let x = Tensor::zeros([0, 4, 4, 3], DType::F32).unwrap();
        assert_eq!(x.max_pool(&Pool::new([2, 2])).unwrap().shape(), &[0, 2, 2, 3]);
        let x = Tensor::zeros([2, 0, 4, 3], DType::F32).unwrap();
        assert_eq!(x.average_pool(&Pool::new([2, 2]).padding(Padding::Same)).unwrap().shape(), &[2, 0, 2, 3]);
    }
}
