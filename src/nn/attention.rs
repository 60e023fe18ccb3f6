//! Attention with several heads.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::module::Forward;
use crate::ops::AttentionOptions;
use crate::scope::Scope;
use crate::tensor::{Shape, Tensor};
use crate::{Module, scoped};

use super::rotary::Rotary;
use super::{Linear, linear::check_bias_init};

/// Attention of several heads side by side (Vaswani et al. 2017, "Attention is all you need", 3.2.2).
///
/// Queries, keys and values are linear maps of the inputs, cut into `num_heads` heads; the results of all heads, one after
/// the other, pass through a last linear map:
///
/// ```text
/// head_i = softmax(q_i k_i^T / sqrt(key_size)) v_i,   y = [head_1, .., head_n] w + b
/// ```
///
/// | tensor | shape |
/// |---|---|
/// | query | `[.., queries, channels]`, rank 2 or more |
/// | key, value | `[.., keys, channels]` |
/// | `y` | `[.., queries, model_size]` |
///
/// As a layer it is self-attention: query, key and value are all `x`. The scores of all pairs are never held in memory.
/// The linear maps are called `query`, `key`, `value` and `linear`.
///
/// ```
/// use couplet::prelude::*;
/// let attention = MultiHeadAttention::new(4, 8).causal(true);
/// let x = Tensor::ones([2, 10, 32], DType::F32)?; // [batch, sequence, channels]
/// assert_eq!(attention.forward(&x)?.shape(), &[2, 10, 32]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct MultiHeadAttention {
    scope: Scope,
    num_heads: usize,
    key_size: usize,
    value_size: Option<usize>,
    model_size: Option<usize>,
    #[module(default = true)]
    with_bias: bool,
    #[module(default = false)]
    causal: bool,
    rotary: Option<Rotary>,
    w_init: Option<Arc<dyn Initializer>>,
    b_init: Option<Arc<dyn Initializer>>,
    #[module(hidden)]
    query: Linear,
    #[module(hidden)]
    key: Linear,
    #[module(hidden)]
    value: Linear,
    #[module(hidden)]
    linear: Linear,
}

impl MultiHeadAttention {
    /// `num_heads` heads whose queries and keys have `key_size` channels each.
    pub fn new(num_heads: usize, key_size: usize) -> Self {
        let scope = Scope::of::<Self>();
        let [query, key, value, linear] = {
            let _in = scope.enter();
            ["query", "key", "value", "linear"]
                .map(|name| Linear::new(num_heads.saturating_mul(key_size)).name(name))
        };
        MultiHeadAttention {
            scope,
            num_heads,
            key_size,
            value_size: None,
            model_size: None,
            with_bias: true,
            causal: false,
            rotary: None,
            w_init: None,
            b_init: None,
            query,
            key,
            value,
            linear,
        }
    }

    fn each_map(mut self, change: impl Fn(Linear) -> Linear) -> Self {
        (self.query, self.key) = (change(self.query), change(self.key));
        (self.value, self.linear) = (change(self.value), change(self.linear));
        self
    }

    /// Channels of the values of each head. Default: `key_size`.
    #[must_use]
    pub fn value_size(mut self, value_size: usize) -> Self {
        self.value_size = Some(value_size);
        self.value = self.value.with_output_size(self.num_heads.saturating_mul(value_size));
        self
    }

    /// Channels of the result. Default: `num_heads * key_size`.
    #[must_use]
    pub fn model_size(mut self, model_size: usize) -> Self {
        self.model_size = Some(model_size);
        self.linear = self.linear.with_output_size(model_size);
        self
    }

    /// Whether the linear maps add a bias. Default: yes.
    #[must_use]
    pub fn with_bias(mut self, with_bias: bool) -> Self {
        self.with_bias = with_bias;
        self.each_map(|map| map.with_bias(with_bias))
    }

    /// Whether a query sees the keys up to its own place alone. Default: no.
    #[must_use]
    pub fn causal(mut self, causal: bool) -> Self {
        self.causal = causal;
        self
    }

    /// Turns queries and keys by their positions, see [`Rotary`]. Default: not.
    #[must_use]
    pub fn rotary(mut self, rotary: Rotary) -> Self {
        self.rotary = Some(rotary);
        self
    }

    /// Initialiser of all weights. Default: as for [`Linear`].
    #[must_use]
    pub fn w_init(mut self, init: impl Initializer) -> Self {
        let init: Arc<dyn Initializer> = Arc::new(init);
        self.w_init = Some(init.clone());
        self.each_map(|map| map.w_init(init.clone()))
    }

    /// Initialiser of all biases. Default: `Zeros`. It is an error with `with_bias(false)`.
    #[must_use]
    pub fn b_init(mut self, init: impl Initializer) -> Self {
        let init: Arc<dyn Initializer> = Arc::new(init);
        self.b_init = Some(init.clone());
        self.each_map(|map| map.b_init(init.clone()))
    }

    /// `[.., sequence, heads * size]` as `[.., heads, sequence, size]`, a view.
    fn heads(&self, x: &Tensor, size: usize) -> Result<Tensor> {
        let rank = x.rank();
        let mut split: Shape = x.shape().iter().copied().chain([size]).collect();
        split.dims_mut()[rank - 1] = self.num_heads;
        x.reshape(split)?.transpose(&exchanged(rank + 1))
    }
}

/// The order of `rank` axes with the two before the last exchanged.
fn exchanged(rank: usize) -> Vec<isize> {
    let mut axes: Vec<isize> = (0..rank as isize).collect();
    axes.swap(rank - 3, rank - 2);
    axes
}

#[scoped]
impl MultiHeadAttention {
    /// Attention of `query` to `key` and `value`. A bool `mask`, of a shape that broadcasts to `[.., heads, queries, keys]`,
    /// says which keys a query may see: `[batch, 1, 1, keys]` leaves out padding.
    ///
    /// # Errors
    /// A rank below 2, other channels or another dtype than in the first call, lengths of `key` and `value` that differ, or a
    /// mask that does not fit. Nothing is created then.
    pub fn attend(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        mask: Option<&Tensor>,
    ) -> Result<Tensor> {
        const OP: &str = "multi_head_attention";
        check_bias_init(OP, self.with_bias, self.b_init.as_ref())?;
        for (argument, number) in [("num_heads", self.num_heads), ("key_size", self.key_size)] {
            if number == 0 {
                return Err(Error::argument(OP, argument, number, "1 or more"));
            }
        }
        if self.rotary.is_some() && !self.key_size.is_multiple_of(2) {
            return Err(Error::argument(
                OP,
                "key_size",
                self.key_size,
                "an even number, for rotary positions",
            ));
        }
        for (what, x) in [("query", query), ("key", key), ("value", value)] {
            if x.rank() < 2 {
                return Err(Error::shape(OP, what, x.shape(), "rank 2 or more: [.., sequence, channels]"));
            }
        }
        if key.dim(-2)? != value.dim(-2)? {
            let expected = format!("{} rows, as the key of shape {} has", key.dim(-2)?, key.shape());
            return Err(Error::shape(OP, "value", value.shape(), expected));
        }
        let q = self.heads(&self.query.forward(query)?, self.key_size)?;
        let k = self.heads(&self.key.forward(key)?, self.key_size)?;
        let v = self.heads(&self.value.forward(value)?, self.value_size.unwrap_or(self.key_size))?;
        let (q, k) = match &self.rotary {
            // The last query stands at the last key.
            Some(rotary) => (rotary.turn(&q, k.dim(-2)?.saturating_sub(q.dim(-2)?))?, rotary.turn(&k, 0)?),
            None => (q, k),
        };
        let options = AttentionOptions::default().causal(self.causal);
        let options = match mask {
            Some(mask) => options.mask(mask),
            None => options,
        };
        let y = q.scaled_dot_product_attention(&k, &v, options)?;
        let y = y.transpose(&exchanged(y.rank()))?;
        let joined: Shape =
            y.shape()[..y.rank() - 2].iter().copied().chain([self.num_heads * y.dim(-1)?]).collect();
        self.linear.forward(&y.reshape(joined)?)
    }
}

#[scoped]
impl Forward for MultiHeadAttention {
    /// Self-attention of `x`.
    ///
    /// # Errors
    /// As for [`attend`](MultiHeadAttention::attend).
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.attend(x, x, x, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{self, Generator};
    use crate::{DType, GradientTape};

    fn normal(shape: &[usize]) -> Tensor {
        random::current().normal(shape, 0.0, 1.0, DType::F64).unwrap()
    }

    fn close(a: &Tensor, b: &Tensor) -> bool {
        let list = |x: &Tensor| x.to_vec::<f64>().unwrap();
        a.shape() == b.shape() && list(a).iter().zip(list(b)).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    #[test]
    fn each_head_attends_with_its_own_channels() -> Result<()> {
        random::with(&Generator::seed(2), || {
            let attention = MultiHeadAttention::new(2, 3).value_size(4).model_size(5);
            let (x, z) = (normal(&[2, 3, 6]), normal(&[2, 4, 7]));
            let y = attention.attend(&x, &z, &z, None)?;
            assert_eq!(y.shape(), &[2, 3, 5]);
            let (q, k, v) =
                (attention.query.forward(&x)?, attention.key.forward(&z)?, attention.value.forward(&z)?);
            let of_head = |x: &Tensor, head: usize, size: usize| x.narrow(-1, head * size, size);
            let mut heads = Vec::new();
            for head in 0..2 {
                let (q, k, v) = (of_head(&q, head, 3)?, of_head(&k, head, 3)?, of_head(&v, head, 4)?);
                let scores = (q.matmul(k.transpose(&[0, 2, 1])?)? / 3f64.sqrt())?;
                heads.push(scores.softmax(-1)?.matmul(v)?);
            }
            let joined = Tensor::concat(&heads.iter().collect::<Vec<_>>(), -1)?;
            assert!(close(&y, &attention.linear.forward(&joined)?));
            let names: Vec<String> =
                attention.variables()?.iter().map(|v| format!("{} {}", v.name(), v.shape())).collect();
            assert_eq!(names[..2], ["multi_head_attention/key/b [6]", "multi_head_attention/key/w [7, 6]"]);
            assert_eq!(names.len(), 8);
            Ok(())
        })
    }

    #[test]
    fn what_is_masked_or_comes_later_has_no_influence() -> Result<()> {
        random::with(&Generator::seed(3), || {
            let x = normal(&[1, 5, 4]);
            let longer = Tensor::concat(&[&x, &normal(&[1, 2, 4])], 1)?;
            let causal = MultiHeadAttention::new(2, 2).causal(true).rotary(Rotary::default());
            assert!(close(&causal.forward(&longer)?.narrow(1, 0, 5)?, &causal.forward(&x)?));
            let plain = MultiHeadAttention::new(2, 2);
            let mask = Tensor::arange(0.0, 7.0, 1.0, DType::I64)?.less(5)?.reshape([1, 1, 1, 7])?;
            assert!(close(&plain.attend(&x, &longer, &longer, Some(&mask))?, &plain.forward(&x)?));
            Ok(())
        })
    }

    #[test]
    fn gradients_flow_to_every_variable_and_misfits_create_nothing() -> Result<()> {
        let attention = MultiHeadAttention::new(2, 2);
        let message = attention.forward(&normal(&[4])).unwrap_err().to_string();
        assert!(message.contains("in multi_head_attention") && message.contains("rank 2"), "{message}");
        assert!(attention.attend(&normal(&[2, 4]), &normal(&[3, 4]), &normal(&[5, 4]), None).is_err());
        assert!(attention.query.input_size().is_none());
        let tape = GradientTape::new();
        let y = attention.forward(&normal(&[2, 3, 4]))?;
        let params = attention.trainable_variables()?;
        let gradients = tape.gradient(&(&y * &y)?.sum()?, &params)?;
        assert!(gradients.iter().all(Option::is_some));
        Ok(())
    }
}
