//! Scale and offset of the channels, owned or passed, as the normalisation layers share them.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::init::{self, Initializer};
use crate::module::Once;
use crate::tensor::Tensor;
use crate::variable::Variable;

use super::data_format::{ChannelAxis, channel_axis};

/// One of the two.
pub(super) struct Parameter<'a> {
    pub(super) name: &'static str,
    pub(super) create: bool,
    pub(super) init: Option<&'a Arc<dyn Initializer>>,
    /// The default initialiser.
    pub(super) one: bool,
    pub(super) cell: &'a Once<Variable>,
    /// What the call passed.
    pub(super) given: Option<&'a Tensor>,
}

impl Parameter<'_> {
    /// Refuses an initialiser, or a value of the call, that does not go with `create`.
    pub(super) fn check(&self, op: &'static str) -> Result<()> {
        let name = self.name;
        if self.init.is_some() && !self.create {
            let problem = format!("{name}_init is given although create_{name} is false");
            return Err(Error::usage(op, problem, "leave one of them out"));
        }
        if self.given.is_some() && self.create {
            let problem = format!("a {name} is passed although create_{name} is true");
            return Err(Error::usage(op, problem, "leave one of them out"));
        }
        Ok(())
    }

    /// Refuses an input whose parameters have not the shape that they were made with.
    pub(super) fn check_shape(&self, op: &'static str, x: &Tensor, shape: &[usize]) -> Result<()> {
        match self.cell.get().filter(|v| *v.shape() != *shape) {
            None => Ok(()),
            Some(v) => {
                let expected =
                    format!("an input that fits the {} of shape {} of the first call", self.name, v.shape());
                Err(Error::shape(op, "x", x.shape(), expected))
            }
        }
    }

    /// The value to use, made at the first call if it is the layer's own.
    pub(super) fn value(&self, x: &Tensor, shape: &[usize]) -> Result<Option<Tensor>> {
        if !self.create {
            return Ok(self.given.cloned());
        }
        let init = || match self.init {
            Some(init) => init.clone(),
            None if self.one => Arc::new(init::Ones),
            None => Arc::new(init::Zeros) as Arc<dyn Initializer>,
        };
        let made = self.cell.get_or_init(|| Variable::new(self.name, shape, x.dtype(), init()))?;
        Ok(Some(made.value()))
    }
}

/// The settings of scale and offset, which all layers with both have.
macro_rules! channel_setters {
    ($layer:ident) => {
        impl $layer {
            /// Added to the variance, so that constant parts do not divide by 0. Default: 1e-5.
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

            /// Where the channels stand: `channels_last`, `channels_first`, or letters such as `NHWC` and `NCHW`. Default:
            /// `channels_last`.
            #[must_use]
            pub fn data_format(mut self, data_format: &str) -> Self {
                self.data_format = data_format.into();
                self
            }

            fn parameters<'a>(
                &'a self,
                scale: Option<&'a Tensor>,
                offset: Option<&'a Tensor>,
            ) -> [$crate::nn::channel_parameters::Parameter<'a>; 2] {
                let scale = $crate::nn::channel_parameters::Parameter {
                    name: "scale",
                    create: self.create_scale,
                    init: self.scale_init.as_ref(),
                    one: true,
                    cell: &self.scale,
                    given: scale,
                };
                let offset = $crate::nn::channel_parameters::Parameter {
                    name: "offset",
                    create: self.create_offset,
                    init: self.offset_init.as_ref(),
                    one: false,
                    cell: &self.offset,
                    given: offset,
                };
                [scale, offset]
            }
        }
    };
}
pub(super) use channel_setters;

/// The channel axis of `x`, and the shape of a parameter that broadcasts to it: `[channels]`, or with channels first
/// `[channels, 1, ..]`.
pub(super) fn parameter_shape(
    op: &'static str,
    x: &Tensor,
    data_format: &str,
    least_rank: usize,
) -> Result<(usize, Vec<usize>)> {
    let axis = match channel_axis(op, data_format)? {
        ChannelAxis::First => 1,
        ChannelAxis::Last => x.rank().saturating_sub(1),
    };
    let least = least_rank.max(if axis == 1 && data_format != "channels_last" { 2 } else { 1 });
    if x.rank() < least || axis >= x.rank() {
        return Err(Error::shape(op, "x", x.shape(), format!("rank {} or more", least.max(1))));
    }
    if !x.dtype().is_float() {
        return Err(Error::dtype(op, "x", x.dtype(), "a float dtype"));
    }
    let mut shape = vec![1; x.rank() - axis];
    shape[0] = x.shape()[axis];
    Ok((axis, shape))
}
