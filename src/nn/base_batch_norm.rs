//! Batch normalisation with statistics kept by any metrics.

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

/// Batch normalisation, as [`BatchNorm`](super::BatchNorm), whose evaluation uses the statistics that two given metrics keep:
/// `y = (x - mean) / sqrt(variance + eps) * scale + offset` (Ioffe & Szegedy 2015).
///
/// In training each metric is updated once with the mean or the variance of the batch, of rank `x.rank()` and 1
/// everywhere but at the channels; the variance of inputs of rank 4, channels last, is the unbiased one, as in the
/// reference. A metric that weighs all batches alike, for evaluation after a pass over the data without training:
///
/// ```
/// use couplet::prelude::*;
/// use couplet::metrics::Mean;
/// use couplet::nn::BaseBatchNorm;
/// let norm = BaseBatchNorm::new(true, true, Mean::new(), Mean::new()).eps(0.0);
/// norm.forward_t(&Tensor::from([[1.0f64], [3.0]]), true)?; // mean 2, variance 1
/// norm.forward_t(&Tensor::from([[3.0f64], [9.0]]), true)?; // mean 6, variance 9
/// let y = norm.forward_t(&Tensor::from([[9.0f64]]), false)?;
/// assert!((y.item::<f64>()? - 5.0 / 5.0f64.sqrt()).abs() < 1e-15); // (9 - 4) / sqrt(5)
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct BaseBatchNorm {
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

impl BaseBatchNorm {
    /// A layer that trains a scale and an offset, or not, and keeps the statistics of its batches in two metrics.
    pub fn new(
        create_scale: bool,
        create_offset: bool,
        moving_mean: impl Metric + 'static,
        moving_variance: impl Metric + 'static,
    ) -> Self {
        BaseBatchNorm {
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

channel_setters!(BaseBatchNorm);

#[scoped]
impl BaseBatchNorm {
    /// The normalised input, with all that a call may say.
    ///
    /// # Errors
    /// The channels or the dtype of `x` are not those of the first call, or `call` passes what the layer owns. Nothing
    /// is created or moved then.
    pub fn forward_with(&self, x: &Tensor, call: BatchNormCall<'_>) -> Result<Tensor> {
        let parts = Normalise {
            op: "base_batch_norm",
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
impl Forward for BaseBatchNorm {
    /// # Errors
    /// Always: a batch normalisation must be told whether it is trained, by [`forward_t`](Forward::forward_t).
    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        Err(must_be_told("base_batch_norm"))
    }

    /// # Errors
    /// The channels or the dtype of `x` are not those of the first call. Nothing is created or moved then.
    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        self.forward_with(x, BatchNormCall { is_training, ..BatchNormCall::default() })
    }
}
