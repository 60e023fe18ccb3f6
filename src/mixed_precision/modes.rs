//! Calls that follow the mode.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Floats, mode};
use crate::dtype::DType;
use crate::error::Result;
use crate::module::{Copies, Description, Edges, Forward, Module, Node, Visit};
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::getter::with_dtype;
use crate::variable::overlay;

/// The modes in which a call may run, and whether it ran once.
///
/// A module has one for each of its methods that follows the mode, as a field, so that each instance has its own:
///
/// ```
/// use couplet::mixed_precision::{self, Modes};
/// use couplet::prelude::*;
///
/// #[derive(Module)]
/// struct Net {
///     scope: Scope,
///     modes: Modes,
///     linear: Linear,
/// }
///
/// #[scoped]
/// impl Forward for Net {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         self.modes.run(x.clone(), |x| {
///             let y = self.linear.forward(&x)?;
///             assert_eq!(y.dtype(), x.dtype());
///             y.relu()
///         })
///     }
/// }
///
/// let net = Net { scope: Scope::of::<Net>(), modes: Modes::new([DType::BF16]), linear: Linear::new(2) };
/// let x = Tensor::ones([1, 3], DType::F32)?;
/// mixed_precision::scope(DType::BF16, || {
///     net.forward(&x)?; // makes the variables, in f32
///     assert_eq!(net.forward(&x)?.dtype(), DType::F32); // computes in bf16
///     Ok(())
/// })?;
/// # Ok::<(), couplet::Error>(())
/// ```
pub struct Modes {
    valid: Vec<DType>,
    /// Whether a call succeeded: then the variables exist, in the dtype that they are to have.
    ran: AtomicBool,
}

impl Modes {
    /// Calls that run in one of these dtypes when it is the thread's mode.
    pub fn new(valid: impl Into<Vec<DType>>) -> Self {
        Modes { valid: valid.into(), ran: AtomicBool::new(false) }
    }

    /// The layer, whose calls follow the mode. Paths, names and the printed form stay those of the layer.
    ///
    /// ```
    /// use couplet::mixed_precision::Modes;
    /// use couplet::prelude::*;
    /// let net = Sequential::new().push(Modes::new([DType::F16]).of(Linear::new(2))).push(Tensor::relu);
    /// net.forward(&Tensor::ones([1, 3], DType::F32)?)?;
    /// assert_eq!(net.named_variables()?[0].0, "_layers/0/w");
    /// # Ok::<(), couplet::Error>(())
    /// ```
    pub fn of<M>(self, layer: M) -> InModes<M> {
        InModes { layer, modes: self }
    }

    /// Calls `f` in the thread's mode: with the floats of `inputs` and of all variables that are read cast to it, and what
    /// `f` returns cast to `f32`. Without a mode, in one that is not among the valid ones, and until a first call has
    /// succeeded, this is `f(inputs)`. Within the `apply` of a [`functional`](crate::functional) transform the variables are
    /// given, so that no call is the first.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn run<I: Floats, O: Floats>(&self, inputs: I, f: impl FnOnce(I) -> Result<O>) -> Result<O> {
        match mode().filter(|mode| self.valid.contains(mode)) {
            None => f(inputs),
            // Where parameters are given from outside, every call is like a later one.
            Some(_) if !self.ran.load(Ordering::Acquire) && !overlay::forbids_creation() => {
                let outputs = f(inputs)?;
                self.ran.store(true, Ordering::Release);
                Ok(outputs)
            }
            Some(mode) => {
                let inputs = inputs.cast_floats(mode)?;
                with_dtype(mode, || f(inputs))?.cast_floats(DType::F32)
            }
        }
    }
}

impl fmt::Debug for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let valid: Vec<_> = self.valid.iter().map(DType::to_string).collect();
        write!(f, "Modes({})", valid.join(", "))
    }
}

impl Visit for Modes {
    fn node(&self) -> Node<'_> {
        Node::Nothing
    }

    fn copy(&self, _: &mut Copies) -> Self {
        Modes { valid: self.valid.clone(), ran: AtomicBool::new(self.ran.load(Ordering::Acquire)) }
    }

    fn describe(&self) -> Option<Description> {
        Some(Description::text(format_args!("{self:?}")))
    }
}

/// A layer whose calls follow the mode; made by [`Modes::of`].
pub struct InModes<M> {
    layer: M,
    modes: Modes,
}

impl<M> InModes<M> {
    /// The layer itself.
    pub fn layer(&self) -> &M {
        &self.layer
    }
}

impl<M: fmt::Debug> fmt::Debug for InModes<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.layer.fmt(f)
    }
}

impl<M: Visit> Visit for InModes<M> {
    fn node(&self) -> Node<'_> {
        self.layer.node()
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        InModes { layer: self.layer.copy(copies), modes: self.modes.copy(copies) }
    }

    fn describe(&self) -> Option<Description> {
        self.layer.describe()
    }
}

impl<M: Module + 'static> Module for InModes<M> {
    fn scope(&self) -> &Scope {
        self.layer.scope()
    }

    fn visit<'a>(&'a self, edges: &mut Edges<'a>) {
        self.layer.visit(edges);
    }

    fn materialise(&self) -> Result<()> {
        self.layer.materialise()
    }

    fn allows_empty_variables(&self) -> bool {
        self.layer.allows_empty_variables()
    }

    fn kind(&self) -> &'static str {
        self.layer.kind()
    }
}

impl<M: Forward + 'static> Forward for InModes<M> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.modes.run(x.clone(), |x| self.layer.forward_owned(x))
    }

    fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Tensor> {
        self.modes.run(x.clone(), |x| self.layer.forward_t_owned(x, is_training))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::mixed_precision;
    use crate::prelude::*;

    /// The dtypes of what `run` passes on and returns, for a variable of f32 and an input.
    fn dtypes(modes: &Modes, mode: Option<DType>, x: DType) -> (DType, DType, DType) {
        let v = Variable::from_tensor("v", Tensor::from(1.0f32));
        let x = Tensor::ones([2], x).unwrap();
        let mut seen = (DType::F32, DType::F32);
        let mut run = || {
            modes.run(x.clone(), |x| {
                seen = (x.dtype(), v.value().dtype());
                Ok(x)
            })
        };
        let y = match mode {
            Some(mode) => mixed_precision::scope(mode, run),
            None => run(),
        };
        (seen.0, seen.1, y.unwrap().dtype())
    }

    #[test]
    fn only_valid_modes_count_and_only_after_a_first_call_that_succeeded() {
        use DType::{BF16, F16, F32, I32};
        let modes = Modes::new([F16, F32]);
        assert_eq!(dtypes(&modes, Some(BF16), F32), (F32, F32, F32));
        let failed: Result<Tensor> =
            mixed_precision::scope(F16, || modes.run((), |()| Err(crate::Error::usage("t", "no", "stop"))));
        assert!(failed.is_err());
        assert_eq!(dtypes(&modes, Some(F16), BF16), (BF16, F32, BF16)); // the first
        assert_eq!(dtypes(&modes, Some(F16), F32), (F16, F16, F32));
        assert_eq!(dtypes(&modes, Some(F16), BF16), (F16, F16, F32));
        assert_eq!(dtypes(&modes, Some(F32), F16), (F32, F32, F32));
        assert_eq!(dtypes(&modes, Some(F16), I32), (I32, F16, I32));
        assert_eq!(dtypes(&modes, Some(BF16), F16), (F16, F32, F16));
        assert_eq!(dtypes(&modes, None, F16), (F16, F32, F16));
    }

    #[test]
    fn nested_structures_are_cast_and_numbers_and_text_pass() {
        let modes = Modes::new([DType::F16]);
        let (float, int) = (Tensor::from(1.0f32), Tensor::from(1i64));
        let inputs = || (vec![float.clone(), int.clone()], Some((float.clone(), 1e-8f64)), "text", 3usize);
        let call = || {
            modes.run(inputs(), |(list, pair, text, n)| {
                let (x, number) = pair.unwrap();
                assert_eq!((number, text, n), (1e-8, "text", 3));
                Ok(([list[0].dtype(), list[1].dtype(), x.dtype()].map(|dtype| dtype.to_string()).to_vec(), x))
            })
        };
        mixed_precision::scope(DType::F16, || {
            call()?;
            let (dtypes, x) = call()?;
            assert_eq!((dtypes, x.dtype()), (vec!["f16".to_owned(), "i64".into(), "f16".into()], DType::F32));
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn variables_and_gradients_keep_their_dtype() {
        let layer = Modes::new([DType::F16]).of(Linear::new(1).w_init(init::Constant::new(0.1)));
        let x = Tensor::from([[3.3f32]]);
        mixed_precision::scope(DType::F16, || {
            layer.forward(&x)?;
            let tape = GradientTape::new();
            let y = layer.forward(&x)?;
            let parameters = layer.trainable_variables()?;
            let gradients = tape.gradient(&y, &parameters)?;
            for (parameter, gradient) in parameters.iter().zip(gradients) {
                let gradient = gradient.unwrap().to_dense()?;
                assert_eq!((parameter.dtype(), gradient.dtype()), (DType::F32, DType::F32));
            }
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn a_batch_normalisation_moves_its_averages_in_full_precision() {
        let norm = Modes::new([DType::F16]).of(BatchNorm::new(true, true));
        let x = Tensor::from([[1.0f32], [3.0]]);
        mixed_precision::scope(DType::F16, || {
            norm.forward_t(&x, true)?;
            norm.forward_t(&x, true)?;
            let y = norm.forward_t(&x, false)?;
            assert!((y.to_vec::<f32>()?[1] - 1.0).abs() < 2e-3);
            Ok(())
        })
        .unwrap();
        let named = norm.named_variables().unwrap();
        let average = &named.iter().find(|(path, _)| path == "moving_mean/average").unwrap().1;
        // The mean is 2 at both steps.
        assert!((average.value().item::<f32>().unwrap() - 2.0).abs() < 1e-3);
    }

    #[test]
    fn a_copy_has_a_mark_of_its_own_and_a_layer_keeps_its_paths() {
        let layer = Arc::new(Modes::new([DType::F16]).of(Linear::new(1)));
        let copy = layer.duplicate().unwrap();
        let x = Tensor::from([[1.0f32 / 3.0]]);
        mixed_precision::scope(DType::F16, || copy.forward(&x)).unwrap();
        assert!(copy.modes.ran.load(Ordering::Relaxed) && !layer.modes.ran.load(Ordering::Relaxed));
        let paths: Vec<_> = copy.named_variables().unwrap().into_iter().map(|(path, _)| path).collect();
        assert_eq!(
            (paths, format!("{copy:?}")),
            (vec!["w".to_owned(), "b".into()], "Linear(output_size=1)".into())
        );
    }
}
