//! What the batch normalisations share: statistics of the batch or of two metrics, and the call.

use crate::autodiff::no_grad;
use crate::error::{Error, Result};
use crate::metrics::Metric;
use crate::tensor::{Shape, Tensor};

use super::channel_parameters::{Parameter, parameter_shape};

/// What one call of a batch normalisation may say beyond its input.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchNormCall<'a> {
    /// Whether to normalise by the batch and move the averages.
    pub is_training: bool,
    /// Whether evaluation uses the statistics of its batch.
    pub test_local_stats: bool,
    /// A scale for this call, only with `create_scale` false.
    pub scale: Option<&'a Tensor>,
    /// An offset for this call, only with `create_offset` false.
    pub offset: Option<&'a Tensor>,
}

/// The parts of a batch normalisation.
pub(super) struct Normalise<'a> {
    pub(super) op: &'static str,
    pub(super) eps: f64,
    pub(super) data_format: &'a str,
    /// Scale and offset.
    pub(super) parameters: [Parameter<'a>; 2],
    pub(super) moving_mean: &'a dyn Metric,
    pub(super) moving_variance: &'a dyn Metric,
    /// Whether the metric takes the unbiased variance of inputs of rank 4, channels last, as the reference's fused path
    /// does.
    pub(super) unbiased_for_images: bool,
}

impl Normalise<'_> {
    /// The normalised input. In training the metrics are updated.
    pub(super) fn forward(&self, x: &Tensor, call: &BatchNormCall<'_>) -> Result<Tensor> {
        self.parameters.iter().try_for_each(|parameter| parameter.check(self.op))?;
        let (channel, shape) = parameter_shape(self.op, x, self.data_format, 1)?;
        self.parameters.iter().try_for_each(|parameter| parameter.check_shape(self.op, x, &shape))?;
        let [scale, offset] = &self.parameters;
        let (scale, offset) = (scale.always(x, &shape)?, offset.always(x, &shape)?);
        let channels = shape[0];
        let statistics: Shape =
            (0..x.rank()).map(|axis| if axis == channel { channels } else { 1 }).collect();
        let empty = Tensor::zeros(statistics.clone(), x.dtype())?;
        self.moving_mean.initialize(&empty)?;
        self.moving_variance.initialize(&empty)?;

        if !call.is_training && !call.test_local_stats {
            let (mean, variance) = (self.moving_mean.value()?, self.moving_variance.value()?);
            return x.batch_normalization(&mean, &variance, Some(&scale), Some(&offset), self.eps);
        }
        let per_channel = |t: &Tensor| *t.shape() == shape[..];
        let (y, mean, variance) = if per_channel(&scale) && per_channel(&offset) {
            let (scale, offset) = (scale.reshape([channels])?, offset.reshape([channels])?);
            let (y, mean, variance) = x.batch_norm(channel as isize, &scale, &offset, self.eps)?;
            (y, mean.reshape(statistics.clone())?, variance.reshape(statistics)?)
        } else {
            let others: Vec<isize> =
                (0..x.rank()).filter(|&axis| axis != channel).map(|axis| axis as isize).collect();
            let (mean, variance) = x.moments(others, true)?;
            let y = x.batch_normalization(&mean, &variance, Some(&scale), Some(&offset), self.eps)?;
            (y, mean, variance)
        };
        if call.is_training && x.size() > 0 {
            // In mixed precision the layer computes in another dtype than its metrics hold.
            let dtype = self.parameters[0].dtype().unwrap_or(x.dtype());
            no_grad(|| {
                let count = (x.size() / channels) as f64;
                let unbiased = self.unbiased_for_images && x.rank() == 4 && channel == 3;
                let factor = if unbiased { count / (count - 1.0).max(1.0) } else { 1.0 };
                self.moving_mean.update(&mean.cast(dtype)?)?;
                self.moving_variance.update(&(variance.cast(dtype)? * factor)?)
            })?;
        }
        Ok(y)
    }
}

/// The error of a call that does not say whether the layer is trained.
pub(super) fn must_be_told(op: &'static str) -> Error {
    let problem = "it behaves differently in training and in evaluation";
    Error::usage(op, problem, "call forward_t(x, is_training)")
}
