//! Batch normalisation over the batches of all replicas.

use std::sync::Arc;

use crate::error::Result;
use crate::init::Initializer;
use crate::metrics::Metric;
use crate::module::{Forward, Once};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::batch_statistics::{BatchNormCall, Normalise, must_be_told};
use super::channel_parameters::channel_setters;

/// Batch normalisation by the statistics of the batches of all replicas that train together:
/// `y = (x - mean) / sqrt(variance + eps) * scale + offset`.
///
/// A program that trains one replica has its own batch alone. The layer differs from
/// [`BaseBatchNorm`](super::BaseBatchNorm) in that the moving variance takes the biased variance whatever the rank.
///
/// ```
/// use couplet::prelude::*;
/// use couplet::nn::CrossReplicaBatchNorm;
/// let average = || ExponentialMovingAverage::new(0.9);
/// let norm = CrossReplicaBatchNorm::new(true, true, average(), average());
/// let y = norm.forward_t(&Tensor::from([[1.0f32], [3.0]]), true)?;
/// assert!((y.to_vec::<f32>()?[1] - 1.0).abs() < 1e-4);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct CrossReplicaBatchNorm {
    scope: Scope,
    create_scale: bool,
    create_offset: bool,
    moving_mean: Box<dyn Metric>,
    moving_variance: Box<dyn Metric>,
    #[module(default = 1e-5)]
    eps: f64,
    scale_init: Option<Arc<dyn Initializer>>,
    offset_init: Option<Arc<dyn Initializer>>,
    #[module(default = "channels_last".to_owned())]
    data_format: String,
    scale: Once<Variable>,
    offset: Once<Variable>,
}

impl CrossReplicaBatchNorm {
    /// A layer that trains a scale and an offset, or not, and keeps the statistics of its batches in two metrics.
    pub fn new(
        create_scale: bool,
        create_offset: bool,
        moving_mean: impl Metric + 'static,
        moving_variance: impl Metric + 'static,
    ) -> Self {
        CrossReplicaBatchNorm {
            scope: Scope::of::<Self>(),
            create_scale,
            create_offset,
            moving_mean: Box::new(moving_mean),
            moving_variance: Box::new(moving_variance),
            eps: 1e-5,
            scale_init: None,
            offset_init: None,
            data_format: "channels_last".into(),
            scale: Once::new(),
            offset: Once::new(),
        }
    }
}

channel_setters!(CrossReplicaBatchNorm);

#[scoped]
impl CrossReplicaBatchNorm {
    /// The normalised input, with all that a call may say.
    ///
    /// # Errors
    /// The channels or the dtype of `x` are not those of the first call, or `call` passes what the layer owns. Nothing
    /// is created or moved then.
    pub fn forward_with(&self, x: &Tensor, call: BatchNormCall<'_>) -> Result<Tensor> {
        let parts = Normalise {
            op: "cross_replica_batch_norm",
            eps: self.eps,
            data_format: &self.data_format,
            parameters: self.parameters(call.scale, call.offset),
            moving_mean: &self.moving_mean,
            moving_variance: &self.moving_variance,
            unbiased_for_images: false,
        };
        parts.forward(x, &call)
    }
}

#[scoped]
impl Forward for CrossReplicaBatchNorm {
    /// # Errors
    /// Always: a batch normalisation must be told whether it is trained, by [`forward_t`](Forward::forward_t).
    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        Err(must_be_told("cross_replica_batch_norm"))
    }

    /// # Errors
    /// The channels or the dtype of `x` are not those of the first call. Nothing is created or moved then.
    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        self.forward_with(x, BatchNormCall { is_training, ..BatchNormCall::default() })
    }
}
