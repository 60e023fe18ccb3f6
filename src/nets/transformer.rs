//! The block that transformers are stacks of.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::module::Forward;
use crate::nn::{LayerNorm, Linear, MultiHeadAttention, Rotary};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::{Module, scoped};

/// A pre-norm transformer block (Xiong et al. 2020, "On layer normalization in the transformer architecture"; Radford et al.
/// 2019): self-attention, then a network of one hidden layer for each position, both added to what they read.
///
/// ```text
/// h = x + dropout(attention(norm(x)))
/// y = h + dropout(down(activation(up(norm(h)))))
/// ```
///
/// `x` and `y` are `[.., positions, model_size]`; `model_size` is `num_heads * key_size` unless it is given. The parts are called
/// `attention_norm`, `attention`, `mlp_norm`, `up` and `down`.
///
/// ```
/// use couplet::nn::Rotary;
/// use couplet::prelude::*;
/// let blocks = Sequential::new()
///     .push(Embed::new(100).embed_dim(32))
///     .push(TransformerBlock::new(4, 8).causal(true).rotary(Rotary::default()))
///     .push(TransformerBlock::new(4, 8).causal(true).rotary(Rotary::default()))
///     .push(Linear::new(100));
/// let logits = blocks.forward(&Tensor::from([[7i64, 42, 7]]))?;
/// assert_eq!(logits.shape(), &[1, 3, 100]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct TransformerBlock {
    scope: Scope,
    num_heads: usize,
    key_size: usize,
    model_size: Option<usize>,
    hidden_size: Option<usize>,
    #[module(default = false)]
    causal: bool,
    rotary: Option<Rotary>,
    dropout_rate: Option<f64>,
    activation: Arc<dyn Forward>,
    w_init: Option<Arc<dyn Initializer>>,
    #[module(hidden)]
    attention_norm: LayerNorm,
    #[module(hidden)]
    attention: MultiHeadAttention,
    #[module(hidden)]
    mlp_norm: LayerNorm,
    #[module(hidden)]
    up: Linear,
    #[module(hidden)]
    down: Linear,
}

impl TransformerBlock {
    /// A block with `num_heads` heads of `key_size` channels.
    pub fn new(num_heads: usize, key_size: usize) -> Self {
        let (scope, model_size) = (Scope::of::<Self>(), num_heads.saturating_mul(key_size));
        let _in = scope.enter();
        let norm = |name: &str| LayerNorm::new(-1, true, true).name(name);
        let (attention_norm, mlp_norm) = (norm("attention_norm"), norm("mlp_norm"));
        let attention = MultiHeadAttention::new(num_heads, key_size).name("attention");
        let up = Linear::new(model_size.saturating_mul(4)).name("up");
        let down = Linear::new(model_size).name("down");
        drop(_in);
        TransformerBlock {
            scope,
            num_heads,
            key_size,
            model_size: None,
            hidden_size: None,
            causal: false,
            rotary: None,
            dropout_rate: None,
            activation: Arc::new(Tensor::gelu),
            w_init: None,
            attention_norm,
            attention,
            mlp_norm,
            up,
            down,
        }
    }

    fn channels(&self) -> usize {
        self.model_size.unwrap_or(self.num_heads.saturating_mul(self.key_size))
    }

    /// Channels of input and output. Default: `num_heads * key_size`.
    #[must_use]
    pub fn model_size(mut self, model_size: usize) -> Self {
        self.model_size = Some(model_size);
        self.attention = self.attention.model_size(model_size);
        self.down = self.down.with_output_size(model_size);
        if self.hidden_size.is_none() {
            self.up = self.up.with_output_size(model_size.saturating_mul(4));
        }
        self
    }

    /// Units of the hidden layer. Default: four times `model_size`.
    #[must_use]
    pub fn hidden_size(mut self, hidden_size: usize) -> Self {
        self.hidden_size = Some(hidden_size);
        self.up = self.up.with_output_size(hidden_size);
        self
    }

    /// Whether a position sees those up to itself alone. Default: no.
    #[must_use]
    pub fn causal(mut self, causal: bool) -> Self {
        self.causal = causal;
        self.attention = self.attention.causal(causal);
        self
    }

    /// Turns queries and keys by their positions, see [`Rotary`]. Default: not.
    #[must_use]
    pub fn rotary(mut self, rotary: Rotary) -> Self {
        self.rotary = Some(rotary);
        self.attention = self.attention.rotary(rotary);
        self
    }

    /// Probability with which training drops an element before each sum, in `[0, 1)`. Default: no dropout.
    #[must_use]
    pub fn dropout_rate(mut self, rate: f64) -> Self {
        self.dropout_rate = Some(rate);
        self
    }

    /// The function of the hidden layer. Default: `Tensor::gelu`.
    #[must_use]
    pub fn activation(mut self, activation: impl Forward + 'static) -> Self {
        self.activation = Arc::new(activation);
        self
    }

    /// Initialiser of all weights. Default: as for [`Linear`].
    #[must_use]
    pub fn w_init(mut self, init: impl Initializer) -> Self {
        let init: Arc<dyn Initializer> = Arc::new(init);
        self.w_init = Some(init.clone());
        self.attention = self.attention.w_init(init.clone());
        self.up = self.up.w_init(init.clone());
        self.down = self.down.w_init(init);
        self
    }

    fn drops(&self) -> Option<f64> {
        self.dropout_rate.filter(|&rate| rate != 0.0)
    }
}

#[scoped]
impl TransformerBlock {
    /// The block in training or not, with a bool `mask` that says which positions each one may see; its shape broadcasts to
    /// `[.., heads, positions, positions]`.
    ///
    /// # Errors
    /// `x` has a rank below 2 or not `model_size` channels, or the mask does not fit. Nothing is created then.
    pub fn forward_with(&self, x: &Tensor, mask: Option<&Tensor>, is_training: bool) -> Result<Tensor> {
        if x.rank() < 2 || x.dim(-1)? != self.channels() {
            let expected = format!("[.., positions, {}]", self.channels());
            return Err(Error::shape("transformer_block", "x", x.shape(), expected));
        }
        let drop = |y: Tensor| match self.drops() {
            Some(rate) if is_training => y.dropout(rate, None, true),
            _ => Ok(y),
        };
        let z = self.attention_norm.forward(x)?;
        let h = (x + drop(self.attention.attend(&z, &z, &z, mask)?)?)?;
        let hidden = self.up.forward(&self.mlp_norm.forward(&h)?)?;
        let hidden = self.activation.forward_t_owned(hidden, is_training)?;
        &h + drop(self.down.forward(&hidden)?)?
    }
}

#[scoped]
impl Forward for TransformerBlock {
    /// # Errors
    /// As for [`forward_with`](TransformerBlock::forward_with), or the block has dropout and must be told whether it is
    /// trained: then call [`forward_t`](Forward::forward_t).
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if self.drops().is_some() {
            let problem = "with dropout it behaves differently in training and in evaluation";
            return Err(Error::usage("transformer_block", problem, "call forward_t(x, is_training)"));
        }
        self.forward_with(x, None, false)
    }

    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        self.forward_with(x, None, is_training)
    }
}
