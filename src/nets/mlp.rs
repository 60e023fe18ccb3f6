//! Multi-layer perceptron.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::module::Forward;
use crate::nn::Linear;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::{Module, scoped};

/// Linear layers with an activation between them.
///
/// After each layer comes dropout (in training, if there is a rate) and then the activation; after the last one only with
/// `activate_final`. Layers are called `linear_0`, `linear_1`, ..; in files `_layers/0`, `_layers/1`, ..
///
/// ```
/// use couplet::prelude::*;
/// let mlp = MLP::new([300, 100, 10]).activation(Tensor::tanh);
/// assert_eq!(mlp.forward(&Tensor::ones([2, 784], DType::F32)?)?.shape(), &[2, 10]);
/// assert_eq!(mlp.reverse()?.forward(&Tensor::ones([2, 10], DType::F32)?)?.shape(), &[2, 784]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct MLP {
    scope: Scope,
    output_sizes: Vec<usize>,
    w_init: Option<Arc<dyn Initializer>>,
    b_init: Option<Arc<dyn Initializer>>,
    #[module(default = true)]
    with_bias: bool,
    #[module(name = "_activation")]
    activation: Arc<dyn Forward>,
    dropout_rate: Option<f64>,
    #[module(default = false)]
    activate_final: bool,
    #[module(name = "_layers", hidden)]
    layers: Vec<Linear>,
}

impl MLP {
    /// Layers of the given sizes with ReLU between them; no sizes: the identity.
    pub fn new(output_sizes: impl Into<Vec<usize>>) -> Self {
        let (scope, output_sizes) = (Scope::of::<Self>(), output_sizes.into());
        let layers = {
            let _in = scope.enter();
            let layer = |(i, &size): (usize, &usize)| Linear::new(size).name(&format!("linear_{i}"));
            output_sizes.iter().enumerate().map(layer).collect()
        };
        MLP {
            scope,
            output_sizes,
            w_init: None,
            b_init: None,
            with_bias: true,
            activation: Arc::new(Tensor::relu),
            dropout_rate: None,
            activate_final: false,
            layers,
        }
    }

    fn each_layer(mut self, change: impl Fn(Linear) -> Linear) -> Self {
        self.layers = self.layers.into_iter().map(change).collect();
        self
    }

    /// Initialiser of all weights. Default: as for [`Linear`].
    #[must_use]
    pub fn w_init(mut self, init: impl Initializer) -> Self {
        let init: Arc<dyn Initializer> = Arc::new(init);
        self.w_init = Some(init.clone());
        self.each_layer(|layer| layer.w_init(init.clone()))
    }

    /// Initialiser of all biases. Default: `Zeros`. It is an error with `with_bias(false)`.
    #[must_use]
    pub fn b_init(mut self, init: impl Initializer) -> Self {
        let init: Arc<dyn Initializer> = Arc::new(init);
        self.b_init = Some(init.clone());
        self.each_layer(|layer| layer.b_init(init.clone()))
    }

    /// Whether the layers add a bias. Default: yes.
    #[must_use]
    pub fn with_bias(mut self, with_bias: bool) -> Self {
        self.with_bias = with_bias;
        self.each_layer(|layer| layer.with_bias(with_bias))
    }

    /// The function between the layers. Default: `Tensor::relu`.
    #[must_use]
    pub fn activation(mut self, activation: impl Forward + 'static) -> Self {
        self.activation = Arc::new(activation);
        self
    }

    /// Probability with which training drops an element before the activation, in `[0, 1)`. Default: no dropout.
    #[must_use]
    pub fn dropout_rate(mut self, rate: f64) -> Self {
        self.dropout_rate = Some(rate);
        self
    }

    /// Whether the last layer is followed by dropout and activation too. Default: no.
    #[must_use]
    pub fn activate_final(mut self, activate_final: bool) -> Self {
        self.activate_final = activate_final;
        self
    }

    /// The layers, first to last.
    pub fn layers(&self) -> &[Linear] {
        &self.layers
    }

    fn drops(&self) -> Option<f64> {
        self.dropout_rate.filter(|&rate| rate != 0.0)
    }

    fn run(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        let mut y = x.clone();
        for (i, layer) in self.layers.iter().enumerate() {
            y = layer.forward(&y)?;
            if i + 1 < self.layers.len() || self.activate_final {
                if let Some(rate) = self.drops().filter(|_| is_training) {
                    y = y.dropout(rate, None, true)?;
                }
                y = self.activation.forward_t_owned(y, is_training)?;
            }
        }
        Ok(y)
    }
}

#[scoped]
impl MLP {
    /// A network from this one's output size back to its input size, with the same settings and weights of its own,
    /// called `<name>_reversed` below this one.
    ///
    /// # Errors
    /// The network was not called yet, so that its input sizes are not known.
    pub fn reverse(&self) -> Result<MLP> {
        let size = |layer: &Linear| {
            layer.input_size().ok_or_else(|| {
                let problem = format!("{} was not called yet", self.scope.name());
                Error::usage(
                    "reverse",
                    problem,
                    "call it on an input first, so that it knows its input sizes",
                )
            })
        };
        let sizes: Vec<usize> = self.layers.iter().rev().map(size).collect::<Result<_>>()?;
        let mut mlp = MLP::new(sizes).with_bias(self.with_bias).activate_final(self.activate_final);
        if let Some(init) = &self.w_init {
            mlp = mlp.w_init(init.clone());
        }
        if let Some(init) = &self.b_init {
            mlp = mlp.b_init(init.clone());
        }
        mlp.activation = self.activation.clone();
        mlp.dropout_rate = self.dropout_rate;
        Ok(mlp.name(&format!("{}_reversed", self.scope.name())))
    }
}

#[scoped]
impl Forward for MLP {
    /// # Errors
    /// `x` has a rank below 2 or another last dim than in the first call, or the network has dropout and must be told
    /// whether it is trained: then call [`forward_t`](Forward::forward_t).
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if self.drops().is_some() {
            let problem = "with dropout it behaves differently in training and in evaluation";
            return Err(Error::usage("mlp", problem, "call forward_t(x, is_training)"));
        }
        self.run(x, false)
    }

    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        self.run(x, is_training)
    }
}
