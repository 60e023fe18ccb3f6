//! Group normalisation.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::module::{Forward, Once};
use crate::scope::Scope;
use crate::tensor::{Shape, Tensor};
use crate::variable::Variable;
use crate::{Module, scoped};

use super::channel_parameters::{channel_setters, parameter_shape};
use super::instance_norm::flat;
use super::norm_axes::NormAxes;

/// Normalises each group of neighbouring channels of each input, then scales and shifts each channel (Wu and He 2018,
/// "Group normalization"): `y = (x - mean) / sqrt(variance + eps) * scale + offset`, with the biased variance.
///
/// | tensor | shape |
/// |---|---|
/// | `x`, `y` | `[batch, positions.., channels]`, or `[batch, channels, positions..]` channels first |
/// | `scale`, `offset` | `[channels]`, or `[channels, 1, ..]` channels first |
///
/// `groups` must divide the channels; 1 group is layer normalisation over all but the batch, as many groups as channels
/// instance normalisation. `scale` starts at 1 and `offset` at 0.
///
/// ```
/// use couplet::prelude::*;
/// let norm = GroupNorm::new(2);
/// let x = Tensor::arange(0.0, 8.0, 1.0, DType::F64)?.reshape([1, 2, 4])?;
/// let y = norm.forward(&x)?.to_vec::<f64>()?;
/// assert!((y[0] + 1.2126768).abs() < 1e-6); // (0 - 2.5) / sqrt(4.25 + 1e-5): the group of 0, 1, 4 and 5
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct GroupNorm {
    scope: Scope,
    groups: usize,
    #[module(default = NormAxes::from(1..))]
    axis: NormAxes,
    #[module(default = true)]
    create_scale: bool,
    #[module(default = true)]
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

impl GroupNorm {
    /// Normalisation in `groups` groups of channels, with a scale and an offset of its own.
    pub fn new(groups: usize) -> Self {
        GroupNorm {
            scope: Scope::of::<Self>(),
            groups,
            axis: NormAxes::from(1..),
            create_scale: true,
            create_offset: true,
            eps: 1e-5,
            scale_init: None,
            offset_init: None,
            data_format: "channels_last".into(),
            scale: Once::new(),
            offset: Once::new(),
        }
    }

    /// The axes of the statistics; that of the channels stands for those of a group. Default: all but the batch.
    #[must_use]
    pub fn axis(mut self, axis: impl Into<NormAxes>) -> Self {
        self.axis = axis.into();
        self
    }

    /// Whether the layer has a scale of its own. Default: yes.
    #[must_use]
    pub fn create_scale(mut self, create_scale: bool) -> Self {
        self.create_scale = create_scale;
        self
    }

    /// Whether the layer has an offset of its own. Default: yes.
    #[must_use]
    pub fn create_offset(mut self, create_offset: bool) -> Self {
        self.create_offset = create_offset;
        self
    }
}

channel_setters!(GroupNorm);

#[scoped]
impl GroupNorm {
    /// The normalised input, with a scale and an offset for this call, which broadcast to `x`; a layer that has its own
    /// takes none.
    ///
    /// # Errors
    /// `groups` does not divide the channels, `x` is not of a float dtype, has a rank below 2 or not the channels of the first
    /// call, or a setting or passed tensor does not go with the others. Nothing is created then.
    pub fn forward_with(
        &self,
        x: &Tensor,
        scale: Option<&Tensor>,
        offset: Option<&Tensor>,
    ) -> Result<Tensor> {
        const OP: &str = "group_norm";
        let parameters = self.parameters(scale, offset);
        let (channel, shape) = parameter_shape(OP, x, &self.data_format, 2)?;
        if self.groups == 0 || shape[0] % self.groups != 0 {
            let expected = format!("a number of channels that {} groups divide", self.groups);
            return Err(Error::shape(OP, "x", x.shape(), expected));
        }
        let axes = self.axis.resolve(x.rank())?;
        for parameter in &parameters {
            parameter.check(OP)?;
            parameter.check_shape(OP, x, &shape)?;
        }
        let [scale, offset] = &parameters;
        let (scale, offset) = (scale.value(x, &shape)?, offset.value(x, &shape)?);
        let channelwise = flat(scale.as_ref(), offset.as_ref(), shape[0])?;
        if let (Some((scale, offset)), true) = (channelwise, axes.iter().copied().eq(1..x.rank())) {
            return x.group_norm(self.groups, channel as isize, scale.as_ref(), offset.as_ref(), self.eps);
        }
        // The channels as two axes, groups and those within; the second takes the place of the channels.
        let dims = x.shape().iter().enumerate().flat_map(|(axis, &dim)| {
            let within = dim / self.groups;
            if axis == channel { vec![self.groups, within] } else { vec![dim] }
        });
        let grouped = x.reshape(dims.collect::<Shape>())?;
        let moved = axes.iter().map(|&axis| (if axis >= channel { axis + 1 } else { axis }) as isize);
        let y = grouped
            .layer_norm(moved.collect::<Vec<_>>(), None, None, self.eps)?
            .reshape(x.shape().clone())?;
        let y = scale.map_or(Ok(y.clone()), |scale| y * scale)?;
        offset.map_or(Ok(y.clone()), |offset| y + offset)
    }
}

#[scoped]
impl Forward for GroupNorm {
    /// # Errors
    /// As for [`forward_with`](GroupNorm::forward_with).
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.forward_with(x, None, None)
    }
}
