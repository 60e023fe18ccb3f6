//! Normalisation: over the batch, over the last axes, and with statistics that are given.

mod batch;
mod layer;

pub(crate) use batch::{BatchNorm, BatchNormGradient};
pub(crate) use layer::{LayerNorm, LayerNormGradient};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{Tensor, resolve_axis};

use super::sum::Axes;
use super::{apply, apply_many};

/// Contiguous elements in the dtype to compute in; not recorded.
fn ready(x: &Tensor, real: DType) -> Result<Tensor> {
    Ok(x.converted(real)?.to_contiguous())
}

/// Normalised values `z` and the axes of their statistics.
struct Statistics<'a> {
    z: &'a Tensor,
    axes: &'a [isize],
}

impl Statistics<'_> {
    fn mean(&self, u: &Tensor) -> Result<Tensor> {
        u.mean_axes(self.axes, true)
    }

    /// `P(u) = u - mean(u) - z mean(u z)`: what of a change `u` of the input survives the normalisation.
    fn project(&self, u: &Tensor) -> Result<Tensor> {
        (u - self.mean(u)?)? - (self.z * self.mean(&(u * self.z)?)?)?
    }
}

fn check_epsilon(op: &'static str, epsilon: f64) -> Result<()> {
    if !(epsilon.is_finite() && epsilon >= 0.0) {
        return Err(Error::argument(op, "epsilon", epsilon, "a finite number, 0 or more"));
    }
    Ok(())
}

impl Tensor {
    /// Batch normalisation with the statistics of the batch, and those statistics: `(y, mean, variance)`.
    ///
    /// `y = (x - mean) scale / sqrt(variance + epsilon) + offset`; mean and variance (the biased one, the mean of the
    /// squared distances from the mean) are taken over all axes but `channel_axis`.
    ///
    /// | tensor                                | shape                                              |
    /// |---------------------------------------|----------------------------------------------------|
    /// | `self`, `y`                           | any of rank 1 or more                              |
    /// | `scale`, `offset`, `mean`, `variance` | `[channels]`, the dim of `self` at `channel_axis`  |
    ///
    /// One op; its gradient flows through `y` and through both statistics. Source: Ioffe and Szegedy 2015.
    ///
    /// # Errors
    /// The axis is out of range, `scale` or `offset` is not `[channels]`, dtypes differ or are not floats, or `epsilon` is
    /// negative or not finite.
    pub fn batch_norm(
        &self,
        channel_axis: isize,
        scale: &Tensor,
        offset: &Tensor,
        epsilon: f64,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        check_epsilon("batch_norm", epsilon)?;
        let axis = resolve_axis("batch_norm", channel_axis, self.rank())?;
        let mut list = apply_many(BatchNorm { axis, epsilon }, [self, scale, offset])?.into_iter();
        match (list.next(), list.next(), list.next()) {
            (Some(y), Some(mean), Some(variance)) => Ok((y, mean, variance)),
            _ => Err(Error::usage("batch_norm", "an output is missing", "report this as a bug")),
        }
    }

    /// Normalisation with given statistics: `y = x i + (offset - mean i)` with `i = scale / sqrt(variance + epsilon)`.
    ///
    /// `mean`, `variance`, `scale` (1 if there is none) and `offset` (0 if there is none) broadcast to the tensor.
    ///
    /// # Errors
    /// Shapes do not broadcast, dtypes differ or are not floats, or `epsilon` is negative or not finite.
    pub fn batch_normalization(
        &self,
        mean: &Tensor,
        variance: &Tensor,
        scale: Option<&Tensor>,
        offset: Option<&Tensor>,
        epsilon: f64,
    ) -> Result<Tensor> {
        check_epsilon("batch_normalization", epsilon)?;
        let inv = (variance + epsilon)?.rsqrt()?;
        let inv = scale.map_or(Ok(inv.clone()), |scale| inv * scale)?;
        let shift = (mean * &inv)?;
        let shift = offset.map_or_else(|| -&shift, |offset| offset - &shift)?;
        (self * inv)? + shift
    }

    /// Layer normalisation: `y = (x - mean) scale / sqrt(variance + epsilon) + offset`, mean and biased variance being those
    /// over `axes` of each part of the tensor.
    ///
    /// `scale` (1 if there is none) and `offset` (0 if there is none) broadcast to the tensor. One op if `axes` are the
    /// last ones and scale and offset do not differ between the parts. Source: Ba, Kiros and Hinton 2016.
    ///
    /// # Errors
    /// An axis is out of range or named twice, shapes do not broadcast, dtypes differ or are not floats, or `epsilon` is
    /// negative or not finite.
    pub fn layer_norm(
        &self,
        axes: impl Axes,
        scale: Option<&Tensor>,
        offset: Option<&Tensor>,
        epsilon: f64,
    ) -> Result<Tensor> {
        check_epsilon("layer_norm", epsilon)?;
        let reduced = axes.reduced("layer_norm", self.rank())?;
        let count = reduced.iter().filter(|&&r| r).count();
        let last = reduced.iter().rev().take(count).all(|&r| r);
        let in_row = |v: Option<&Tensor>| v.is_none_or(|v| v.rank() <= count);
        if count > 0 && last && in_row(scale) && in_row(offset) {
            let constant = |v: Option<&Tensor>, default| match v {
                Some(v) => v.clone(),
                None => Tensor::scalar(default, self.dtype()),
            };
            let (scale, offset) = (constant(scale, 1.0), constant(offset, 0.0));
            return apply(LayerNorm { count, epsilon }, [self, &scale, &offset]);
        }
        let axes: Vec<isize> = (0..self.rank() as isize).filter(|&axis| reduced[axis as usize]).collect();
        let (mean, variance) = self.moments(axes, true)?;
        self.batch_normalization(&mean, &variance, scale, offset, epsilon)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GradientTape;

    fn close(got: &Tensor, want: &[f64], within: f64) {
        let got = got.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() <= within, "{got} is not {want}");
        }
    }

    fn ones(n: usize) -> Tensor {
        Tensor::ones([n], DType::F64).unwrap()
    }

    fn numbers(shape: &[usize]) -> Tensor {
        let size = shape.iter().product::<usize>();
        let list: Vec<f64> = (0..size).map(|i| ((i * 37 + 11) % 23) as f64 / 7.0).collect();
        Tensor::from_vec(list, shape).unwrap()
    }

    #[test]
    fn a_column_of_two_becomes_minus_one_and_one() {
        let x = Tensor::from([[1.0f64, 10.0], [3.0, 30.0]]);
        let zeros = Tensor::zeros([2], DType::F64).unwrap();
        let (y, mean, variance) = x.batch_norm(-1, &ones(2), &zeros, 1e-5).unwrap();
        close(&mean, &[2.0, 20.0], 0.0);
        close(&variance, &[1.0, 100.0], 0.0);
        let (a, b) = (1.0 / 1.00001f64.sqrt(), 10.0 / 100.00001f64.sqrt());
        close(&y, &[-a, -b, a, b], 1e-14);
    }

    #[test]
    fn the_gradient_through_the_statistics_is_that_of_the_formula() {
        let x = Tensor::from([[1.0f64], [2.0], [4.0]]);
        let seed = Tensor::from([[1.0f64], [0.0], [0.0]]);
        let (scale, offset) = (ones(1), Tensor::from([0.5f64]));
        let tape = GradientTape::new();
        [&x, &scale, &offset].into_iter().for_each(|v| tape.watch(v));
        let (y, ..) = x.batch_norm(1, &scale, &offset, 1e-5).unwrap();
        let list = tape.gradient_with_seed(&y, &seed, &[&x, &scale, &offset]).unwrap();
        // The reference's own numbers for this column, to five digits.
        for (got, want) in list.iter().zip([&[0.22908, -0.34362, 0.11454][..], &[-1.06904], &[1.0]]) {
            close(got.as_ref().unwrap().dense().unwrap(), want, 5e-6);
        }
    }

    #[test]
    fn any_axis_and_layout_agree_with_the_formula_written_out() {
        let x = numbers(&[2, 3, 4]).transpose(&[0, 2, 1]).unwrap();
        for axis in 0..3isize {
            let channels = x.dim(axis).unwrap();
            let (scale, offset) = (numbers(&[channels]), (numbers(&[channels]) * 0.3).unwrap());
            let (y, mean, variance) = x.batch_norm(axis, &scale, &offset, 0.01).unwrap();
            let others: Vec<isize> = (0..3).filter(|&a| a != axis).collect();
            let (m, v) = x.moments(others, true).unwrap();
            let mut shape = [1; 3];
            shape[axis as usize] = channels;
            let (s, o) = (scale.reshape(&shape[..]).unwrap(), offset.reshape(&shape[..]).unwrap());
            let want = x.batch_normalization(&m, &v, Some(&s), Some(&o), 0.01).unwrap();
            close(&y, &want.to_vec::<f64>().unwrap(), 1e-13);
            close(&mean, &m.to_vec::<f64>().unwrap(), 1e-14);
            close(&variance, &v.to_vec::<f64>().unwrap(), 1e-14);
        }
    }

    #[test]
    fn the_fused_layer_norm_agrees_with_the_composed_one() {
        let x = numbers(&[2, 3, 4]);
        let (scale, offset) = (numbers(&[4]), (numbers(&[4]) * 0.3).unwrap());
        let fused = x.layer_norm([1, 2], Some(&scale), Some(&offset), 0.01).unwrap();
        // Parameters of a higher rank than the normalised axes take the composed path.
        let wide = |v: &Tensor| v.reshape([1, 1, 4]).unwrap();
        let composed = x.layer_norm([1, 2], Some(&wide(&scale)), Some(&wide(&offset)), 0.01).unwrap();
        close(&fused, &composed.to_vec::<f64>().unwrap(), 1e-13);
    }

    #[test]
    fn rows_of_known_numbers() {
        let x = Tensor::from([[1.0f32, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0]]);
        let (scale, offset) = (Tensor::from([2.0f32; 4]), Tensor::from([1.0f32; 4]));
        // Mean 2.5 and variance 1.25: (x - 2.5) / sqrt(1.25001); the second row has twice both.
        let row = |x: f64, mean: f64, variance: f64| (x - mean) / (variance + 1e-5).sqrt();
        let mut want: Vec<f64> = (1..=4).map(|i| row(i as f64, 2.5, 1.25)).collect();
        want.extend((1..=4).map(|i| row(2.0 * i as f64, 5.0, 5.0)));
        close(&x.layer_norm(-1, None, None, 1e-5).unwrap(), &want, 1e-6);
        let scaled: Vec<f64> = want.iter().map(|y| 2.0 * y + 1.0).collect();
        close(&x.layer_norm(-1, Some(&scale), Some(&offset), 1e-5).unwrap(), &scaled, 1e-6);
    }

    #[test]
    fn a_constant_input_gives_the_offset() {
        let x = Tensor::full([3, 4], 7.0, DType::F32).unwrap();
        let offset = Tensor::from([0.25f32; 4]);
        let scale = Tensor::from([3.0f32; 4]);
        let y = x.layer_norm(1, Some(&scale), Some(&offset), 1e-5).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [0.25; 12]);
        let (y, _, variance) = x.batch_norm(1, &scale, &offset, 1e-5).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [0.25; 12]);
        assert_eq!(variance.to_vec::<f32>().unwrap(), [0.0; 4]);
    }

    #[test]
    fn misfits_are_refused() {
        let x = Tensor::zeros([2, 3], DType::F32).unwrap();
        let three = Tensor::zeros([3], DType::F32).unwrap();
        let two = Tensor::zeros([2], DType::F32).unwrap();
        let message = x.batch_norm(-1, &two, &three, 1e-3).unwrap_err().to_string();
        assert_eq!(message, "batch_norm: scale has shape [2], expected [3], one number a channel");
        assert!(x.batch_norm(2, &three, &three, 1e-3).is_err());
        assert!(x.batch_norm(1, &three, &three, -1.0).is_err());
        assert!(x.batch_norm(1, &three, &three.cast(DType::F64).unwrap(), 1e-3).is_err());
        assert!(x.cast(DType::I32).unwrap().layer_norm(-1, None, None, 1e-3).is_err());
        assert!(x.layer_norm(-1, Some(&two), None, 1e-3).is_err());
    }

    #[test]
    fn empty_batches_give_empty_outputs() {
        let x = Tensor::zeros([0, 3], DType::F32).unwrap();
        let three = Tensor::zeros([3], DType::F32).unwrap();
        assert_eq!(x.batch_norm(1, &three, &three, 1e-3).unwrap().0.shape(), &[0, 3]);
        assert_eq!(x.layer_norm(1, None, None, 1e-3).unwrap().shape(), &[0, 3]);
    }
}
