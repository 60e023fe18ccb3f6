//! Instance normalisation.

use std::sync::Arc;

use crate::error::Result;
use crate::init::Initializer;
use crate::module::{Forward, Once};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::channel_parameters::{channel_setters, parameter_shape};

/// Normalises each channel of each input over its positions, then scales and shifts it (Ulyanov, Vedaldi and Lempitsky 2016,
/// "Instance normalization"): `y = (x - mean) / sqrt(variance + eps) * scale + offset`, with the biased variance.
///
/// | tensor | shape |
/// |---|---|
/// | `x`, `y` | `[batch, positions.., channels]`, or `[batch, channels, positions..]` channels first |
/// | `scale`, `offset` | `[channels]`, or `[channels, 1, ..]` channels first |
///
/// `scale` starts at 1 and `offset` at 0. Without positions each number is its own mean, so `y` is the offset.
///
/// ```
/// use couplet::prelude::*;
/// let norm = InstanceNorm::new(false, false);
/// let y = norm.forward(&Tensor::from([[[0.0f64], [4.0], [8.0]]]))?;
/// assert!((y.to_vec::<f64>()?[2] - 1.224744).abs() < 1e-5); // 4 / sqrt(32/3 + 1e-5)
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct InstanceNorm {
    scope: Scope,
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

impl InstanceNorm {
    /// Normalisation with or without a scale and an offset of its own.
    pub fn new(create_scale: bool, create_offset: bool) -> Self {
        InstanceNorm {
            scope: Scope::of::<Self>(),
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

channel_setters!(InstanceNorm);

#[scoped]
impl InstanceNorm {
    /// The normalised input, with a scale and an offset for this call, which broadcast to `x`; a layer that has its own
    /// takes none.
    ///
    /// # Errors
    /// `x` is not of a float dtype, has a rank below 2 or not the channels of the first call, or a setting or passed tensor
    /// does not go with the others. Nothing is created then.
    pub fn forward_with(
        &self,
        x: &Tensor,
        scale: Option<&Tensor>,
        offset: Option<&Tensor>,
    ) -> Result<Tensor> {
        const OP: &str = "instance_norm";
        let parameters = self.parameters(scale, offset);
        let (axis, shape) = parameter_shape(OP, x, &self.data_format, 2)?;
        for parameter in &parameters {
            parameter.check(OP)?;
            parameter.check_shape(OP, x, &shape)?;
        }
        let [scale, offset] = &parameters;
        let (scale, offset) = (scale.value(x, &shape)?, offset.value(x, &shape)?);
        if let Some((scale, offset)) = flat(scale.as_ref(), offset.as_ref(), shape[0])? {
            return x.instance_norm(axis as isize, scale.as_ref(), offset.as_ref(), self.eps);
        }
        let positions: Vec<isize> = (1..x.rank()).filter(|&a| a != axis).map(|a| a as isize).collect();
        x.layer_norm(positions, scale.as_ref(), offset.as_ref(), self.eps)
    }
}

/// Both parameters as `[channels]`, if they are one number a channel.
pub(super) fn flat(
    scale: Option<&Tensor>,
    offset: Option<&Tensor>,
    channels: usize,
) -> Result<Option<(Option<Tensor>, Option<Tensor>)>> {
    let whole = |v: &Tensor| v.size() == channels && v.shape().first() == Some(&channels);
    if ![scale, offset].into_iter().flatten().all(whole) {
        return Ok(None);
    }
    let one = |v: Option<&Tensor>| v.map(|v| v.reshape([channels])).transpose();
    Ok(Some((one(scale)?, one(offset)?)))
}

#[scoped]
impl Forward for InstanceNorm {
    /// # Errors
    /// As for [`forward_with`](InstanceNorm::forward_with).
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_with(x, None, None)
    }
}
