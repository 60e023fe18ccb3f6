//! Layer normalisation.

use std::sync::Arc;

use crate::error::Result;
use crate::init::Initializer;
use crate::module::{Forward, Once};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::channel_parameters::{channel_setters, parameter_shape};
use super::norm_axes::NormAxes;

/// Normalises over given axes of each input, then scales and shifts each channel (Ba, Kiros and Hinton 2016, "Layer
/// normalization"): `y = (x - mean) / sqrt(variance + eps) * scale + offset`, with the biased variance.
///
/// | tensor | shape |
/// |---|---|
/// | `x`, `y` | any of rank 1 or more |
/// | `scale`, `offset` | `[channels]`, or `[channels, 1, ..]` channels first, whatever the axes are |
///
/// `scale` starts at 1 and `offset` at 0. Statistics never depend on the other inputs of a batch unless its axis is named.
///
/// ```
/// use couplet::prelude::*;
/// let norm = LayerNorm::new(-1, true, true);
/// let y = norm.forward(&Tensor::from([[1.0f64, 2.0, 3.0, 4.0]]))?;
/// assert!((y.to_vec::<f64>()?[3] - 1.3416355).abs() < 1e-6); // 1.5 / sqrt(1.25 + 1e-5)
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct LayerNorm {
    scope: Scope,
    axis: NormAxes,
    create_scale: bool,
    create_offset: bool,
    #[module(default = 1e-5)]
    eps: f64,
    scale_init: Option<Arc<dyn Initializer>>,
    offset_init: Option<Arc<dyn Initializer>>,
    #[module(default = "channels_last".to_owned())]
    data_format: String,
    scale: Once<Variable>,
    offset: Once<Variable>,
}

impl LayerNorm {
    /// Normalisation over `axis` (`-1`, `[1, 2]`, `1..`), with or without a scale and an offset of its own.
    pub fn new(axis: impl Into<NormAxes>, create_scale: bool, create_offset: bool) -> Self {
        LayerNorm {
            scope: Scope::of::<Self>(),
            axis: axis.into(),
            create_scale,
            create_offset,
            eps: 1e-5,
            scale_init: None,
            offset_init: None,
            data_format: "channels_last".into(),
            scale: Once::new(),
            offset: Once::new(),
        }
    }
}

channel_setters!(LayerNorm);

#[scoped]
impl LayerNorm {
    /// The normalised input, with a scale and an offset for this call, which broadcast to `x`; a layer that has its own
    /// takes none.
    ///
    /// # Errors
    /// `x` is not of a float dtype, has not the axes or the channels of the first call, or a setting or passed tensor does not
    /// go with the others. Nothing is created then.
    pub fn forward_with(
        &self,
        x: &Tensor,
        scale: Option<&Tensor>,
        offset: Option<&Tensor>,
    ) -> Result<Tensor> {
        const OP: &str = "layer_norm";
        let parameters = self.parameters(scale, offset);
        let (_, shape) = parameter_shape(OP, x, &self.data_format, 1)?;
        let axes: Vec<isize> = self.axis.resolve(x.rank())?.into_iter().map(|axis| axis as isize).collect();
        for parameter in &parameters {
            parameter.check(OP)?;
            parameter.check_shape(OP, x, &shape)?;
        }
        let [scale, offset] = &parameters;
        let (scale, offset) = (scale.value(x, &shape)?, offset.value(x, &shape)?);
        x.layer_norm(axes, scale.as_ref(), offset.as_ref(), self.eps)
    }
}

#[scoped]
impl Forward for LayerNorm {
    /// # Errors
    /// As for [`forward_with`](LayerNorm::forward_with).
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_with(x, None, None)
    }
}
