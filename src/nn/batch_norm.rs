//! Batch normalisation.

use std::sync::Arc;

use crate::autodiff::no_grad;
use crate::error::{Error, Result};
use crate::init::{self, Initializer};
use crate::metrics::{ExponentialMovingAverage, Metric};
use crate::module::{Forward, Once};
use crate::scope::Scope;
use crate::tensor::{Shape, Tensor};
use crate::variable::Variable;
use crate::{Module, scoped};

use super::data_format::{ChannelAxis, channel_axis};
use super::linear::zeros_init;

/// Normalises each channel by statistics of the batch in training, and by their moving averages in evaluation:
/// `y = (x - mean) / sqrt(variance + eps) * scale + offset` (Ioffe & Szegedy 2015, algorithms 1 and 2).
///
/// | tensor | shape |
/// |---|---|
/// | `x`, `y` | `[batch, .., channels]`, or `[batch, channels, ..]` channels first |
/// | `scale`, `offset` | `[channels]`, or `[channels, 1, ..]` channels first |
/// | the averages | 1 everywhere but at the channels |
///
/// The variance is the biased one; the moving variance of inputs of rank 4, channels last, takes the unbiased one, as the
/// reference does. `scale` starts at 1 and `offset` at 0. With `create_scale` (or `create_offset`) false the variable
/// still exists, is saved and applied, but is not trained.
///
/// [`forward_t`](Forward::forward_t) says whether it is trained; plain `forward` is an error. Evaluating before any
/// training divides by `sqrt(eps)`: the averages are still 0.
///
/// ```
/// use couplet::prelude::*;
/// let norm = BatchNorm::new(true, true);
/// let y = norm.forward_t(&Tensor::from([[1.0f32, 10.0], [3.0, 30.0]]), true)?;
/// assert!((y.to_vec::<f32>()?[3] - 1.0).abs() < 1e-4);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct BatchNorm {
    scope: Scope,
    create_scale: bool,
    create_offset: bool,
    #[module(default = 0.999)]
    decay_rate: f64,
    #[module(default = 1e-5)]
    eps: f64,
    scale_init: Option<Arc<dyn Initializer>>,
    offset_init: Option<Arc<dyn Initializer>>,
    #[module(default = "channels_last".to_owned())]
    data_format: String,
    #[module(hidden)]
    moving_mean: ExponentialMovingAverage,
    #[module(hidden)]
    moving_variance: ExponentialMovingAverage,
    scale: Once<Variable>,
    offset: Once<Variable>,
}

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

impl BatchNorm {
    /// A layer that trains a scale and an offset, or not.
    pub fn new(create_scale: bool, create_offset: bool) -> Self {
        let scope = Scope::of::<Self>();
        let average = |name| {
            let _in = scope.enter();
            ExponentialMovingAverage::new(0.999).name(name)
        };
        let (moving_mean, moving_variance) = (average("moving_mean"), average("moving_variance"));
        BatchNorm {
            scope,
            create_scale,
            create_offset,
            decay_rate: 0.999,
            eps: 1e-5,
            scale_init: None,
            offset_init: None,
            data_format: "channels_last".into(),
            moving_mean,
            moving_variance,
            scale: Once::new(),
            offset: Once::new(),
        }
    }

    /// Share of the past that the averages keep at each step, in `[0, 1)`. Default: 0.999.
    #[must_use]
    pub fn decay_rate(mut self, decay_rate: f64) -> Self {
        self.decay_rate = decay_rate;
        self.moving_mean = self.moving_mean.decay(decay_rate);
        self.moving_variance = self.moving_variance.decay(decay_rate);
        self
    }

    /// Added to the variance, so that constant channels do not divide by 0. Default: 1e-5.
    #[must_use]
    pub fn eps(mut self, eps: f64) -> Self {
        self.eps = eps;
        self
    }

    /// Initialiser of `scale`, only with `create_scale`. Default: `Ones`.
    #[must_use]
    pub fn scale_init(mut self, init: impl Initializer) -> Self {
        self.scale_init = Some(Arc::new(init));
        self
    }

    /// Initialiser of `offset`, only with `create_offset`. Default: `Zeros`.
    #[must_use]
    pub fn offset_init(mut self, init: impl Initializer) -> Self {
        self.offset_init = Some(Arc::new(init));
        self
    }

    /// Where the channels stand: `channels_last`, `channels_first`, or letters such as `NHWC` and `NCHW`.
    #[must_use]
    pub fn data_format(mut self, data_format: &str) -> Self {
        self.data_format = data_format.into();
        self
    }

    fn check(&self, call: &BatchNormCall<'_>) -> Result<()> {
        let flags = [
            ("scale", self.create_scale, self.scale_init.is_some(), call.scale.is_some()),
            ("offset", self.create_offset, self.offset_init.is_some(), call.offset.is_some()),
        ];
        for (name, create, has_init, passed) in flags {
            if has_init && !create {
                let problem = format!("{name}_init is given although create_{name} is false");
                return Err(Error::usage("batch_norm", problem, "leave one of them out"));
            }
            if passed && create {
                let problem = format!("a {name} is passed although create_{name} is true");
                return Err(Error::usage("batch_norm", problem, "leave one of them out"));
            }
        }
        Ok(())
    }
}

/// Position of the channels and the other axes of an input.
fn axes(x: &Tensor, data_format: &str) -> Result<(usize, Vec<isize>)> {
    let channels = match channel_axis("batch_norm", data_format)? {
        ChannelAxis::First if x.rank() < 2 => {
            return Err(Error::shape("batch_norm", "x", x.shape(), "rank 2 or more with channels first"));
        }
        ChannelAxis::First => 1,
        ChannelAxis::Last if x.rank() == 0 => {
            return Err(Error::shape("batch_norm", "x", x.shape(), "rank 1 or more"));
        }
        ChannelAxis::Last => x.rank() - 1,
    };
    Ok((channels, (0..x.rank()).filter(|&a| a != channels).map(|a| a as isize).collect()))
}

#[scoped]
impl BatchNorm {
    /// The normalised input, with all that a call may say.
    ///
    /// # Errors
    /// The channels or the dtype of `x` are not those of the first call, or `call` passes what the layer owns. Nothing
    /// is created or moved then.
    pub fn forward_with(&self, x: &Tensor, call: BatchNormCall<'_>) -> Result<Tensor> {
        self.check(&call)?;
        if !x.dtype().is_float() {
            return Err(Error::dtype("batch_norm", "x", x.dtype(), "a float dtype"));
        }
        let (channel, others) = axes(x, &self.data_format)?;
        let channels = x.shape()[channel];
        let mut parameter = vec![1; x.rank() - channel];
        parameter[0] = channels;
        if let Some(scale) = self.scale.get().filter(|scale| *scale.shape() != parameter[..]) {
            let expected =
                format!("an input that fits the scale of shape {} of the first call", scale.shape());
            return Err(Error::shape("batch_norm", "x", x.shape(), expected));
        }
        let make = |name: &str, init: Arc<dyn Initializer>, trainable: bool| match trainable {
            true => Variable::new(name, &parameter, x.dtype(), init),
            false => Variable::non_trainable(name, &parameter, x.dtype(), init),
        };
        let ones = || self.scale_init.clone().unwrap_or_else(|| Arc::new(init::Ones));
        let scale = self.scale.get_or_init(|| make("scale", ones(), self.create_scale))?;
        let zeros = || zeros_init(self.offset_init.as_ref());
        let offset = self.offset.get_or_init(|| make("offset", zeros(), self.create_offset))?;
        let statistics: Shape = (0..x.rank()).map(|a| if a == channel { channels } else { 1 }).collect();
        let empty = Tensor::zeros(statistics.clone(), x.dtype())?;
        self.moving_mean.initialize(&empty)?;
        self.moving_variance.initialize(&empty)?;

        let scale = call.scale.cloned().unwrap_or_else(|| scale.value());
        let offset = call.offset.cloned().unwrap_or_else(|| offset.value());
        if !call.is_training && !call.test_local_stats {
            let (mean, variance) = (self.moving_mean.value()?, self.moving_variance.value()?);
            return x.batch_normalization(&mean, &variance, Some(&scale), Some(&offset), self.eps);
        }
        let per_channel = |t: &Tensor| t.size() == channels && *t.shape() == parameter[..];
        let (y, mean, variance) = if per_channel(&scale) && per_channel(&offset) {
            let (scale, offset) = (scale.reshape([channels])?, offset.reshape([channels])?);
            let (y, mean, variance) = x.batch_norm(channel as isize, &scale, &offset, self.eps)?;
            (y, mean.reshape(statistics.clone())?, variance.reshape(statistics)?)
        } else {
            let (mean, variance) = x.moments(others, true)?;
            let y = x.batch_normalization(&mean, &variance, Some(&scale), Some(&offset), self.eps)?;
            (y, mean, variance)
        };
        if call.is_training && x.size() > 0 {
            no_grad(|| {
                // The reference's fused path, rank 4 with channels last, feeds the unbiased variance.
                let count = (x.size() / channels.max(1)) as f64;
                let fused = x.rank() == 4 && channel == 3;
                let factor = if fused { count / (count - 1.0).max(1.0) } else { 1.0 };
                self.moving_mean.update(&mean)?;
                self.moving_variance.update(&(&variance * factor)?)
            })?;
        }
        Ok(y)
    }
}

#[scoped]
impl Forward for BatchNorm {
    /// # Errors
    /// Always: a batch normalisation must be told whether it is trained, by [`forward_t`](Forward::forward_t).
    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        let problem = "it behaves differently in training and in evaluation";
        Err(Error::usage("batch_norm", problem, "call forward_t(x, is_training)"))
    }

    /// # Errors
    /// The channels or the dtype of `x` are not those of the first call. Nothing is created or moved then.
    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        self.forward_with(x, BatchNormCall { is_training, ..BatchNormCall::default() })
    }
}
