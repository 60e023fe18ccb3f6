//! Looking at gradients on their way back, to find where one goes wrong.

use std::fmt;
use std::sync::Arc;

use serde::ser::Error as _;

use crate::error::{Error, Result};
use crate::ops::{Computed, Gradient, Inputs, Mask, Op, Saved, apply};
use crate::tensor::Tensor;

use super::tape::GradientTape;

/// One gradient on its way back: what an op hands to one of its inputs.
#[derive(Debug)]
pub struct BackwardStep<'a> {
    /// Name of the op.
    pub op: &'static str,
    /// Which of the op's inputs, from 0.
    pub input: usize,
    /// What that input receives from this use of it.
    pub gradient: &'a Gradient,
}

/// A function that sees every step.
pub(super) struct Observer(Box<dyn Fn(&BackwardStep<'_>) -> Result<()>>);

impl Observer {
    pub(super) fn see(&self, step: &BackwardStep<'_>) -> Result<()> {
        (self.0)(step)
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer(<closure>)")
    }
}

impl GradientTape {
    /// Calls `f` with every gradient that an op hands to one of its inputs, in the order of the walk back; an error from `f`
    /// ends the walk and is that of [`gradient`](GradientTape::gradient).
    ///
    /// ```
    /// use std::cell::RefCell;
    /// use std::rc::Rc;
    /// use couplet::{GradientTape, Tensor};
    /// let seen = Rc::new(RefCell::new(Vec::new()));
    /// let list = seen.clone();
    /// let tape = GradientTape::new().inspect(move |step| {
    ///     list.borrow_mut().push(step.op);
    ///     Ok(())
    /// });
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// tape.watch(&x);
    /// tape.gradient(&x.exp()?.sum()?, &[&x])?;
    /// assert_eq!(*seen.borrow(), ["sum", "exp"]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    #[must_use]
    pub fn inspect(self, f: impl Fn(&BackwardStep<'_>) -> Result<()> + 'static) -> Self {
        *self.observer.borrow_mut() = Some(Observer(Box::new(f)));
        self
    }

    /// Makes the first gradient with a NaN or an infinity an error that names the op it came from.
    ///
    /// It looks at every element of every gradient, so it is for finding a fault rather than for training.
    ///
    /// ```
    /// use couplet::{GradientTape, Tensor};
    /// let x = Tensor::from([0.0f32, 4.0]);
    /// let tape = GradientTape::new().check_finite();
    /// tape.watch(&x);
    /// let error = tape.gradient(&x.sqrt()?.sum()?, &[&x]).unwrap_err(); // 1 / (2 sqrt(0))
    /// assert!(error.to_string().contains("sqrt"));
    /// # Ok::<(), couplet::Error>(())
    /// ```
    #[must_use]
    pub fn check_finite(self) -> Self {
        self.inspect(|step| {
            let values = match step.gradient {
                Gradient::Dense(values) => values,
                Gradient::Sparse(slices) => &slices.values,
            };
            if values.is_finite()?.all()?.item::<bool>()? {
                return Ok(());
            }
            let problem = format!("its gradient for input {} has a NaN or an infinity", step.input);
            Err(Error::usage(step.op, problem, "finite numbers, as check_finite() asks for"))
        })
    }
}

/// What a hook does with the gradient it sees.
type Hook = Arc<dyn Fn(&Tensor) -> Result<()> + Send + Sync>;

/// `y = x`; calls a function with `dy`.
struct Hooked(Hook);

impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GradientHook(<closure>)")
    }
}

impl serde::Serialize for Hooked {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("a gradient_hook holds a closure, which cannot be written to a file"))
    }
}

impl Op for Hooked {
    fn name(&self) -> &'static str {
        "gradient_hook"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        Ok(inputs.take(0)?.into())
    }

    fn gradient(&self, _: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None]) };
        (self.0)(dy)?;
        Ok(vec![Some(Gradient::Dense(dy.clone()))])
    }
}

/// `x` itself, with a function that is called with the whole gradient of the result whenever a tape walks back over it.
///
/// Go on with what it returns: uses of `x` itself are not seen. A hook looks at a gradient;
/// [`custom_gradient`](super::custom_gradient) changes one. An error from `f` ends the walk.
///
/// ```
/// use std::sync::Mutex;
/// use couplet::{GradientTape, Tensor, autodiff::gradient_hook};
/// static SEEN: Mutex<Vec<f32>> = Mutex::new(Vec::new());
/// let x = Tensor::from(3.0f32);
/// let tape = GradientTape::new();
/// tape.watch(&x);
/// let h = (&x * 2.0)?;
/// let h = gradient_hook(&h, |dh| Ok(SEEN.lock().unwrap().push(dh.item()?)))?;
/// tape.gradient(&(&h * &h)?, &[&x])?;
/// assert_eq!(*SEEN.lock().unwrap(), [12.0]); // 2 h
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// None of its own; what `f` returns is an error of [`gradient`](GradientTape::gradient).
pub fn gradient_hook(
    x: &Tensor,
    f: impl Fn(&Tensor) -> Result<()> + Send + Sync + 'static,
) -> Result<Tensor> {
    apply(Hooked(Arc::new(f)), [x])
}
