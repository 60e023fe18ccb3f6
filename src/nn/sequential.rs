//! Layers one after the other.

use crate::error::Result;
use crate::module::Forward;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::{Module, scoped};

/// Feeds each layer's output to the next; without layers it returns its input.
///
/// Layers are modules, functions such as `Tensor::relu`, or closures (through [`map`](Sequential::map)). In files a layer
/// is known by its position, functions counted: `_layers/0/w`, `_layers/2/w` around a ReLU.
///
/// ```
/// use couplet::prelude::*;
/// let net = Sequential::new().push(Linear::new(8)).push(Tensor::relu).push(Linear::new(2));
/// assert_eq!(net.forward(&Tensor::ones([3, 4], DType::F32)?)?.shape(), &[3, 2]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct Sequential {
    scope: Scope,
    #[module(name = "_layers")]
    layers: Vec<Box<dyn Forward>>,
}

impl Default for Sequential {
    fn default() -> Self {
        Self::new()
    }
}

impl Sequential {
    /// A network without layers.
    pub fn new() -> Self {
        Sequential { scope: Scope::of::<Self>(), layers: Vec::new() }
    }

    /// Adds a layer at the end.
    #[must_use]
    pub fn push(mut self, layer: impl Forward + 'static) -> Self {
        self.layers.push(Box::new(layer));
        self
    }

    /// Adds a closure at the end; unlike [`push`](Sequential::push) it needs no type annotation: `.map(|x| x * 2.0)`.
    #[must_use]
    pub fn map(self, f: impl Fn(&Tensor) -> Result<Tensor> + Clone + Send + Sync + 'static) -> Self {
        self.push(f)
    }

    /// Number of layers.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The layers, first to last.
    pub fn layers(&self) -> &[Box<dyn Forward>] {
        &self.layers
    }

    /// Runs the layers; each gives its input away, so that memory nobody else holds is used again.
    fn run(&self, x: &Tensor, layer: impl Fn(&dyn Forward, Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let mut y = x.clone();
        for (i, module) in self.layers.iter().enumerate() {
            y = layer(module.as_ref(), y).map_err(|e| e.at_edge(&format!("_layers/{i}")))?;
        }
        Ok(y)
    }
}

#[scoped]
impl Forward for Sequential {
    /// # Errors
    /// A layer refuses its input, or must know whether it is trained: then call
    /// [`forward_t`](Forward::forward_t).
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.run(x, |layer, x| layer.forward_owned(x))
    }

    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        self.run(x, |layer, x| layer.forward_t_owned(x, is_training))
    }
}
