//! Cores on top of each other.

use crate::error::{Error, Result};
use crate::module::Forward;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::{Module, Visit, scoped};

use super::nest::{Nest, join};
use super::residual::Residual;
use super::rnn_core::RNNCore;
use super::unroll::all_steps;

const OP: &str = "deep_rnn";

/// A list of cores and other layers, each of which takes the output of the one before.
///
/// The state is a tuple with one part for each core, in their order; the other layers have none. With no layers the output is
/// the input. In files, layers are `_layers/0`, `_layers/1`, ..
///
/// ```
/// use couplet::prelude::*;
/// let core = DeepRNN::new().push(LSTM::new(8)).push(Tensor::tanh).push(GRU::new(4)).push(Linear::new(1));
/// let xs = Tensor::ones([5, 2, 3], DType::F32)?;
/// let (ys, state) = dynamic_unroll(&core, &xs, &core.initial_state(2)?, None)?;
/// assert_eq!(ys.shape(), &[5, 2, 1]);
/// assert_eq!(state.to_string(), "(LSTMState(hidden=f32[2, 8], cell=f32[2, 8]), f32[2, 4])");
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct DeepRNN {
    scope: Scope,
    #[module(name = "_layers")]
    layers: Vec<Layer>,
    #[module(default = false)]
    skip_connections: bool,
    #[module(default = true)]
    concat_final_output: bool,
    #[module(default = false)]
    residual_connections: bool,
}

/// One layer of a [`DeepRNN`].
#[derive(Visit)]
pub enum Layer {
    /// A core, which has a state.
    Core(Box<dyn RNNCore>),
    /// Any other layer.
    Plain(Box<dyn Forward>),
}

/// What [`DeepRNN::push`] takes: a core, or a layer without a state; the parameter tells the two apart.
pub trait IntoLayer<Kind> {
    /// The layer.
    fn into_layer(self) -> Layer;
}

impl<C: RNNCore + 'static> IntoLayer<Box<dyn RNNCore>> for C {
    fn into_layer(self) -> Layer {
        Layer::Core(Box::new(self))
    }
}

impl<F: Forward + 'static> IntoLayer<Box<dyn Forward>> for F {
    fn into_layer(self) -> Layer {
        Layer::Plain(Box::new(self))
    }
}

impl Default for DeepRNN {
    fn default() -> Self {
        Self::new()
    }
}

/// A [`DeepRNN`] of cores each of which sees the network's input beside the output of the core before: the first takes `x`,
/// each other one `concat([x, y before])` along the last axis. The output is that of all cores, concatenated (Graves 2013).
///
/// ```
/// use couplet::prelude::*;
/// let core = deep_rnn_with_skip_connections().push(LSTM::new(8)).push(LSTM::new(4));
/// let (y, _) = core.step(&Tensor::ones([2, 3], DType::F32)?, &core.initial_state(2)?)?;
/// assert_eq!(y.shape(), &[2, 12]);
/// # Ok::<(), couplet::Error>(())
/// ```
pub fn deep_rnn_with_skip_connections() -> DeepRNN {
    let scope = Scope::new("deep_rnn_with_skip_connections");
    DeepRNN { scope, skip_connections: true, ..DeepRNN::new() }
}

/// A [`DeepRNN`] of cores each of which has its input added to its output, see [`Residual`]; all must give outputs of the
/// shape of their input.
///
/// ```
/// use couplet::prelude::*;
/// let core = deep_rnn_with_residual_connections().push(LSTM::new(3)).push(GRU::new(3));
/// let (y, _) = core.step(&Tensor::ones([2, 3], DType::F32)?, &core.initial_state(2)?)?;
/// assert_eq!(y.shape(), &[2, 3]);
/// # Ok::<(), couplet::Error>(())
/// ```
pub fn deep_rnn_with_residual_connections() -> DeepRNN {
    let scope = Scope::new("deep_rnn_with_residual_connections");
    DeepRNN { scope, residual_connections: true, ..DeepRNN::new() }
}

impl DeepRNN {
    /// No layers.
    pub fn new() -> Self {
        DeepRNN {
            scope: Scope::of::<Self>(),
            layers: Vec::new(),
            skip_connections: false,
            concat_final_output: true,
            residual_connections: false,
        }
    }

    /// Adds a core or another layer at the end. With skip or residual connections all layers must be cores; that is checked at
    /// the first call.
    #[must_use]
    pub fn push<Kind>(mut self, layer: impl IntoLayer<Kind>) -> Self {
        self.layers.push(match layer.into_layer() {
            Layer::Core(core) if self.residual_connections => Layer::Core(Box::new(Residual::new(core))),
            layer => layer,
        });
        self
    }

    /// Adds a closure at the end; unlike [`push`](DeepRNN::push) it needs no type annotation: `.map(|x| x * 2.0)`.
    #[must_use]
    pub fn map(self, f: impl Fn(&Tensor) -> Result<Tensor> + Clone + Send + Sync + 'static) -> Self {
        self.push(f)
    }

    /// With skip connections, whether the output is that of all cores (the default) or of the last one alone.
    #[must_use]
    pub fn concat_final_output(mut self, concat_final_output: bool) -> Self {
        self.concat_final_output = concat_final_output;
        self
    }

    /// The layers, first to last.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    fn cores(&self) -> impl Iterator<Item = &dyn RNNCore> {
        self.layers.iter().filter_map(|layer| match layer {
            Layer::Core(core) => Some(&**core),
            Layer::Plain(_) => None,
        })
    }

    /// The parts of the state, one for each core.
    fn parts<'a>(&self, state: &'a Nest) -> Result<&'a [Nest]> {
        let connected = self.skip_connections || self.residual_connections;
        if connected && let Some(i) = self.layers.iter().position(|layer| matches!(layer, Layer::Plain(_))) {
            let problem =
                format!("layer {i} has no state, and with skip or residual connections all must be cores");
            return Err(Error::usage(OP, problem, "put it outside, or inside of a core"));
        }
        if self.skip_connections && self.layers.is_empty() {
            return Err(Error::usage(OP, "there are no outputs to concatenate", "push at least one core"));
        }
        let count = self.cores().count();
        match state {
            Nest::Tuple(parts) if parts.len() == count => Ok(parts),
            other => {
                let expected = format!("a tuple of {count}, one part for each core");
                Err(Error::argument(OP, "the state", other.form(), expected))
            }
        }
    }

    /// Runs the layers with the connections between them; `step` is one core on one input.
    fn run(
        &self,
        x: &Nest,
        state: &Nest,
        step: impl Fn(&dyn RNNCore, &Nest, &Nest) -> Result<(Nest, Nest)>,
    ) -> Result<(Nest, Nest)> {
        let mut parts = self.parts(state)?.iter();
        let (mut y, mut next, mut outputs) = (x.clone(), Vec::new(), Vec::new());
        for (i, layer) in self.layers.iter().enumerate() {
            let input = match self.skip_connections && i > 0 {
                true => concat(&[x.clone(), y])?,
                false => y,
            };
            let output = match layer {
                Layer::Core(core) => {
                    let part = parts.next().expect("there are as many parts as cores");
                    step(&**core, &input, part).map(|(output, part)| {
                        next.push(part);
                        output
                    })
                }
                Layer::Plain(layer) => input.leaf().and_then(|x| layer.forward(x)).map(Nest::Leaf),
            };
            y = output.map_err(|e| e.at_edge(&format!("_layers/{i}")))?;
            if self.skip_connections && self.concat_final_output {
                outputs.push(y.clone());
            }
        }
        Ok((if outputs.is_empty() { y } else { concat(&outputs)? }, Nest::Tuple(next)))
    }
}

/// The leaves of several structures of one form along their last axis.
fn concat(list: &[Nest]) -> Result<Nest> {
    join(list, |parts| Tensor::concat(parts, -1))
}

#[scoped]
impl RNNCore for DeepRNN {
    /// # Errors
    /// Those of the layers, the state is not a tuple with one part for each core, or a layer that is no core stands in a
    /// network with skip or residual connections.
    fn step(&self, x: &Tensor, state: &Nest) -> Result<(Tensor, Nest)> {
        let (y, state) = self.run(&x.into(), state, |core, x, part| core.step_nested(x, part))?;
        Ok((y.leaf()?.clone(), state))
    }

    fn initial_state(&self, batch_size: usize) -> Result<Nest> {
        Ok(Nest::Tuple(self.cores().map(|core| core.initial_state(batch_size)).collect::<Result<_>>()?))
    }

    fn step_nested(&self, x: &Nest, state: &Nest) -> Result<(Nest, Nest)> {
        self.run(x, state, |core, x, part| core.step_nested(x, part))
    }

    /// Layer by layer, if all are cores: what a layer gives at one step depends on nothing that comes later.
    fn sequence(&self, xs: &Tensor, state: &Nest) -> Result<Option<(Tensor, Nest)>> {
        if self.layers.is_empty() || self.cores().count() < self.layers.len() {
            return Ok(None);
        }
        let (ys, states) = self.run(&xs.into(), state, |core, xs, part| {
            let xs = xs.leaf()?;
            let (ys, states) = match core.sequence(xs, part)? {
                Some(found) => found,
                None => all_steps(core, xs, part)?,
            };
            Ok((ys.into(), states))
        })?;
        Ok(Some((ys.leaf()?.clone(), states)))
    }
}

#[cfg(test)]
mod tests;
