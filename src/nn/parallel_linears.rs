//! Several fully connected layers side by side.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::init::Initializer;
use crate::module::Once;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Forward, Module, scoped};

use super::linear::{check_bias_init, fan_in_init, zeros_init};

/// `n` independent affine maps in one batched product: `y[i] = x[i] w[i] + b[i]`.
///
/// | tensor | shape |
/// |---|---|
/// | `x` | `[n, batch, input_size]` |
/// | `w` | `[n, input_size, output_size]` |
/// | `b` | `[n, 1, output_size]` |
/// | `y` | `[n, batch, output_size]` |
///
/// `n` and `input_size` are read from the first input. `w` starts as for [`Linear`](super::Linear), `b` at 0.
///
/// ```
/// use couplet::prelude::*;
/// use couplet::nn::ParallelLinears;
/// let maps = ParallelLinears::new(1).w_init(init::Ones);
/// let y = maps.forward(&Tensor::from([[[1.0f32, 2.0]], [[3.0, 4.0]]]))?;
/// assert_eq!(y.to_vec::<f32>()?, [3.0, 7.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct ParallelLinears {
    scope: Scope,
    output_size: usize,
    #[module(default = true)]
    with_bias: bool,
    w_init: Option<Arc<dyn Initializer>>,
    b_init: Option<Arc<dyn Initializer>>,
    w: Once<Variable>,
    b: Once<Variable>,
}

impl ParallelLinears {
    /// Maps to `output_size` units each.
    pub fn new(output_size: usize) -> Self {
        ParallelLinears {
            scope: Scope::of::<Self>(),
            output_size,
            with_bias: true,
            w_init: None,
            b_init: None,
            w: Once::new(),
            b: Once::new(),
        }
    }

    /// Whether to add `b`. Default: yes.
    #[must_use]
    pub fn with_bias(mut self, with_bias: bool) -> Self {
        self.with_bias = with_bias;
        self
    }

    /// Initialiser of `w`. Default: `TruncatedNormal` with standard deviation `1 / sqrt(input_size)`.
    #[must_use]
    pub fn w_init(mut self, init: impl Initializer) -> Self {
        self.w_init = Some(Arc::new(init));
        self
    }

    /// Initialiser of `b`. Default: `Zeros`. It is an error with `with_bias(false)`.
    #[must_use]
    pub fn b_init(mut self, init: impl Initializer) -> Self {
        self.b_init = Some(Arc::new(init));
        self
    }
}

#[scoped]
impl Forward for ParallelLinears {
    /// # Errors
    /// The rank of `x` is not 3, or its first or last dim or dtype is not that of the first call. Nothing is created then.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        const OP: &str = "parallel_linears";
        check_bias_init(OP, self.with_bias, self.b_init.as_ref())?;
        let [n, _, m] = x.shape()[..] else {
            return Err(Error::shape(OP, "x", x.shape(), "rank 3: [n, batch, input_size]"));
        };
        if let Some(w) = self.w.get().filter(|w| w.shape()[..2] != [n, m]) {
            let expected = format!("[{}, batch, {}], as in the first call", w.shape()[0], w.shape()[1]);
            return Err(Error::shape(OP, "x", x.shape(), expected));
        }
        let shape = [n, m, self.output_size];
        let w = || Variable::new("w", &shape, x.dtype(), fan_in_init(self.w_init.as_ref(), m));
        let y = x.matmul(self.w.get_or_init(w)?)?;
        if !self.with_bias {
            return Ok(y);
        }
        let shape = [n, 1, self.output_size];
        let b = || Variable::new("b", &shape, x.dtype(), zeros_init(self.b_init.as_ref()));
        y + self.b.get_or_init(b)?
    }
}
