//! Fully connected layer.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::init::{self, Initializer};
use crate::module::{Forward, Once};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

/// Affine map over the last axis: `y = x w + b`.
///
/// | tensor | shape |
/// |---|---|
/// | `x` | `[.., input_size]`, rank 2 or more |
/// | `w` | `[input_size, output_size]` |
/// | `b` | `[output_size]` |
/// | `y` | `[.., output_size]` |
///
/// `input_size` is read from the first input and fixed from then on. `w` starts as a normal cut at two standard
/// deviations, with standard deviation `1 / sqrt(input_size)`, which keeps the scale of zero-centred inputs (LeCun et
/// al. 1998, section 4.6); `b` starts at 0.
///
/// ```
/// use couplet::prelude::*;
/// let linear = Linear::new(2).w_init(init::Ones).b_init(init::Constant::new(0.5));
/// let y = linear.forward(&Tensor::from([[1.0f32, 2.0, 3.0]]))?;
/// assert_eq!(y.to_vec::<f32>()?, [6.5, 6.5]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
pub struct Linear {
    scope: Scope,
    output_size: usize,
    #[module(default = true)]
    with_bias: bool,
    w_init: Option<Arc<dyn Initializer>>,
    b_init: Option<Arc<dyn Initializer>>,
    w: Once<Variable>,
    b: Once<Variable>,
}

impl Linear {
    /// A layer of `output_size` units.
    pub fn new(output_size: usize) -> Self {
        Linear {
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

    /// Another number of units, for a container whose setters come after the layer.
    #[must_use]
    pub(crate) fn with_output_size(mut self, output_size: usize) -> Self {
        self.output_size = output_size;
        self
    }

    /// Number of units.
    pub fn output_size(&self) -> usize {
        self.output_size
    }

    /// Size of the last axis of the first input, once there was one.
    pub fn input_size(&self) -> Option<usize> {
        self.w.get().map(|w| w.shape()[0])
    }
}

/// Refuses an initialiser for a bias that is switched off.
pub(crate) fn check_bias_init(
    op: &'static str,
    with_bias: bool,
    b_init: Option<&Arc<dyn Initializer>>,
) -> Result<()> {
    if !with_bias && b_init.is_some() {
        return Err(Error::usage(op, "b_init is given although with_bias is false", "leave one of them out"));
    }
    Ok(())
}

/// The default initialiser of weights: a truncated normal that keeps the scale of an input of `fan_in` numbers.
pub(crate) fn fan_in_init(given: Option<&Arc<dyn Initializer>>, fan_in: usize) -> Arc<dyn Initializer> {
    match given {
        Some(init) => init.clone(),
        None => Arc::new(init::TruncatedNormal::new(1.0 / (fan_in.max(1) as f64).sqrt())),
    }
}

/// The default initialiser of offsets.
pub(crate) fn zeros_init(given: Option<&Arc<dyn Initializer>>) -> Arc<dyn Initializer> {
    given.cloned().unwrap_or_else(|| Arc::new(init::Zeros))
}

#[scoped]
impl Forward for Linear {
    /// # Errors
    /// `x` has a rank below 2, or its last dim or dtype is not that of the first call. Nothing is created then.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        check_bias_init("linear", self.with_bias, self.b_init.as_ref())?;
        if x.rank() < 2 {
            return Err(Error::shape("linear", "x", x.shape(), "rank 2 or more"));
        }
        let (m, n) = (x.dim(-1)?, self.output_size);
        if let Some(size) = self.input_size().filter(|&size| size != m) {
            return Err(Error::shape(
                "linear",
                "x",
                x.shape(),
                format!("{size} as its last dim, as in the first call"),
            ));
        }
        let w = || Variable::new("w", &[m, n], x.dtype(), fan_in_init(self.w_init.as_ref(), m));
        let w = self.w.get_or_init(w)?;
        if !self.with_bias {
            return x.matmul(w);
        }
        let b = || Variable::new("b", &[n], x.dtype(), zeros_init(self.b_init.as_ref()));
        x.affine(w, self.b.get_or_init(b)?)
    }
}
