//! Batch normalisation.

use std::sync::Arc;

use crate::error::Result;
use crate::init::Initializer;
use crate::metrics::ExponentialMovingAverage;
use crate::module::{Forward, Once};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::batch_statistics::{BatchNormCall, Normalise, must_be_told};
use super::channel_parameters::channel_setters;

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
}

channel_setters!(BatchNorm);

#[scoped]
impl BatchNorm {
    /// The normalised input, with all that a call may say.
    ///
    /// # Errors
    /// The channels or the dtype of `x` are not those of the first call, or `call` passes what the layer owns. Nothing
    /// is created or moved then.
    pub fn forward_with(&self, x: &Tensor, call: BatchNormCall<'_>) -> Result<Tensor> {
        let parts = Normalise {
            op: "batch_norm",
            eps: self.eps,
            data_format: &self.data_format,
            parameters: self.parameters(call.scale, call.offset),
            moving_mean: &self.moving_mean,
            moving_variance: &self.moving_variance,
            unbiased_for_images: true,
        };
        parts.forward(x, &call)
    }
}

#[scoped]
impl Forward for BatchNorm {
    /// # Errors
    /// Always: a batch normalisation must be told whether it is trained, by [`forward_t`](Forward::forward_t).
    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        Err(must_be_told("batch_norm"))
    }

    /// # Errors
    /// The channels or the dtype of `x` are not those of the first call. Nothing is created or moved then.
    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        self.forward_with(x, BatchNormCall { is_training, ..BatchNormCall::default() })
    }
}
