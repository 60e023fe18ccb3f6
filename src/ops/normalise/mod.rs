//! Normalisation: over the batch, over groups of channels, over the last axes, and with statistics that are given.

mod batch;
mod group;
mod layer;

pub(crate) use batch::{BatchNorm, BatchNormGradient};
pub(crate) use group::{GroupNorm, GroupNormGradient};
pub(crate) use layer::{LayerNorm, LayerNormGradient};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor, resolve_axis};

use super::op::Mask;
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

/// What reaches `x`, `scale` and `dy` through the gradients `dx`, `dscale` and `doffset` of a normalisation with means over
/// `axes`; the last two and `scale` have the shape `row`, which broadcasts to that of `x`.
///
/// With `g` the gradients `gx`, `gs` and `go` of the three, `r = 1 / sqrt(v + epsilon)`, `z = (x - m) r`, `h = scale dy`,
/// `P(u) = u - mean(u) - z mean(u z)` (which is symmetric) and `n` elements a mean, the sum of all three is
///
/// `L = sum(r gx P(h)) + sum(gs dy z) + sum(go dy)`.
///
/// Its slope along `h` is `r P(gx)`, along `z` it is `q = gs dy - r (h mean(gx z) + gx mean(h z))`, and along the `r`
/// in front `s = sum(gx P(h))` for each mean. As `z` depends on `x` like the output of the normalisation itself, and
/// `dr/dx = -r^2 z / n`: `r P(q) - s r^2 z / n` for `x`, `sum(dy r P(gx))` for `scale` (without the sum in what is
/// returned) and `scale r P(gx) + gs z + go` for `dy`.
fn second_gradients(
    [x, scale, dy]: [&Tensor; 3],
    g: &[Option<Tensor>],
    axes: &[isize],
    row: &Shape,
    epsilon: f64,
    needs: Mask,
) -> Result<[Option<Tensor>; 3]> {
    let [gx, gs, go] = g else { return Ok([const { None }; 3]) };
    let (mean, variance) = x.moments(axes, true)?;
    let r = (variance + epsilon)?.rsqrt()?;
    let z = ((x - mean)? * &r)?;
    let along = Statistics { z: &z, axes };
    let given = |g: &Option<Tensor>, shape: &Shape| match g {
        Some(g) => g.reshape(shape.clone()),
        None => Tensor::zeros(shape.clone(), x.dtype()),
    };
    let (gx, gs, go) = (given(gx, x.shape())?, given(gs, row)?, given(go, row)?);
    let h = (scale * dy)?;
    let projected = (&r * along.project(&gx)?)?;
    let mut list = [const { None }; 3];
    if needs.has(0) {
        let mixed = ((&h * along.mean(&(&gx * &z)?)?)? + (&gx * along.mean(&(&h * &z)?)?)?)?;
        let q = ((&gs * dy)? - (&r * mixed)?)?;
        let s = along.mean(&(&gx * along.project(&h)?)?)?;
        list[0] = Some(((&r * along.project(&q)?)? - (((s * &r)? * &r)? * &z)?)?);
    }
    if needs.has(1) {
        list[1] = Some((dy * &projected)?);
    }
    if needs.has(2) {
        list[2] = Some((((scale * projected)? + (gs * &z)?)? + go)?);
    }
    Ok(list)
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

    /// Group normalisation: `y = (x - mean) scale / sqrt(variance + epsilon) + offset`, mean and biased variance being
    /// those of each item of the batch over all its positions and one of `groups` groups of neighbouring channels.
    ///
    /// | tensor            | shape                                                              |
    /// |-------------------|--------------------------------------------------------------------|
    /// | `self`, `y`       | `[batch, ..]` of rank 2 or more, the channels at `channel_axis`    |
    /// | `scale`, `offset` | `[channels]`, 1 and 0 if there is none                             |
    ///
    /// One op. Source: Wu and He 2018.
    ///
    /// # Errors
    /// The axis is out of range or 0, that of the batch, `groups` does not divide the channels, `scale` or `offset` is not
    /// `[channels]`, dtypes differ or are not floats, or `epsilon` is negative or not finite.
    pub fn group_norm(
        &self,
        groups: usize,
        channel_axis: isize,
        scale: Option<&Tensor>,
        offset: Option<&Tensor>,
        epsilon: f64,
    ) -> Result<Tensor> {
        check_epsilon("group_norm", epsilon)?;
        let axis = resolve_axis("group_norm", channel_axis, self.rank())?;
        let all = |v: Option<&Tensor>, value| match v {
            Some(v) => Ok(v.clone()),
            None => Tensor::full([self.shape()[axis]], value, self.dtype()),
        };
        apply(GroupNorm { axis, groups, epsilon }, [self, &all(scale, 1.0)?, &all(offset, 0.0)?])
    }

    /// Instance normalisation: [`group_norm`](Tensor::group_norm) with each channel a group of its own, so that mean and
    /// variance are those of one channel of one item. Source: Ulyanov, Vedaldi and Lempitsky 2016.
    ///
    /// # Errors
    /// As there.
    pub fn instance_norm(
        &self,
        channel_axis: isize,
        scale: Option<&Tensor>,
        offset: Option<&Tensor>,
        epsilon: f64,
    ) -> Result<Tensor> {
        let channels = self.shape()[resolve_axis("instance_norm", channel_axis, self.rank())?];
        self.group_norm(channels.max(1), channel_axis, scale, offset, epsilon)
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
    fn groups_on_any_axis_agree_with_the_formula_written_out() {
        let x = numbers(&[2, 3, 6, 4]);
        for (axis, groups) in [(-1, 2), (2, 3), (2, 6), (1, 1)] {
            let channels = x.dim(axis).unwrap();
            let (scale, offset) = (numbers(&[channels]), (numbers(&[channels]) * 0.3).unwrap());
            let y = x.group_norm(groups, axis, Some(&scale), Some(&offset), 0.01).unwrap();
            // With the channels last and cut in two axes, the statistics are those over positions and the last axis.
            let to_last = |x: &Tensor| match axis {
                1 => x.transpose(&[0, 3, 2, 1]).unwrap(),
                2 => x.transpose(&[0, 1, 3, 2]).unwrap(),
                _ => x.clone(),
            };
            let parts = to_last(&x).reshape([2, x.size() / channels / 2, groups, channels / groups]).unwrap();
            let (mean, variance) = parts.moments([1, 3], true).unwrap();
            let row = |v: &Tensor| v.reshape([groups, channels / groups]).unwrap();
            let want = parts
                .batch_normalization(&mean, &variance, Some(&row(&scale)), Some(&row(&offset)), 0.01)
                .unwrap();
            close(&to_last(&y), &want.to_vec::<f64>().unwrap(), 1e-13);
        }
        let y = x.instance_norm(-1, None, None, 1e-5).unwrap();
        let (mean, variance) = y.moments([1, 2], false).unwrap();
        close(&mean, &[0.0; 8], 1e-14);
        close(&variance, &[1.0; 8], 1e-3);
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
        let message = x.group_norm(2, -1, None, None, 1e-3).unwrap_err().to_string();
        assert_eq!(message, "group_norm: groups is 2, expected a divisor of 3, the number of channels");
        assert!(
            x.group_norm(0, -1, None, None, 1e-3).is_err() && x.group_norm(1, 0, None, None, 1e-3).is_err()
        );
        assert!(x.group_norm(3, 1, Some(&two), None, 1e-3).is_err());
        assert!(x.instance_norm(1, None, None, f64::NAN).is_err());
    }

    #[test]
    fn empty_batches_give_empty_outputs() {
        let x = Tensor::zeros([0, 3], DType::F32).unwrap();
        let three = Tensor::zeros([3], DType::F32).unwrap();
        assert_eq!(x.batch_norm(1, &three, &three, 1e-3).unwrap().0.shape(), &[0, 3]);
        assert_eq!(x.layer_norm(1, None, None, 1e-3).unwrap().shape(), &[0, 3]);
        assert_eq!(x.instance_norm(1, None, None, 1e-3).unwrap().shape(), &[0, 3]);
        let x = Tensor::zeros([2, 4, 0], DType::F32).unwrap();
        assert_eq!(x.instance_norm(-1, None, None, 1e-3).unwrap().shape(), &[2, 4, 0]);
    }
}
