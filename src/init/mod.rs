//! Initialisers: descriptions of how a variable starts.
//!
//! An initialiser computes nothing until a variable is made, and not even then if a restored value waits for it. Bad
//! arguments are therefore reported by [`init`](Initializer::init), not by the constructors.

mod constant;
mod identity;
mod orthogonal;
mod random_normal;
mod random_uniform;
mod truncated_normal;
mod variance_scaling;

use std::fmt;
use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::random::{self, Generator};
use crate::tensor::{Shape, Tensor};

pub use constant::{Constant, Ones, Zeros};
pub use identity::Identity;
pub use orthogonal::Orthogonal;
pub use random_normal::RandomNormal;
pub use random_uniform::RandomUniform;
pub use truncated_normal::TruncatedNormal;
pub use variance_scaling::{Distribution, Mode, VarianceScaling};

/// How a variable starts.
///
/// Closures of a shape and a dtype are initialisers:
///
/// ```
/// use couplet::{DType, Shape, Tensor, init::Initializer};
/// let steps = |shape: &Shape, dtype: DType| Tensor::arange(0.0, shape.size() as f64, 1.0, dtype);
/// assert_eq!(steps.init(&Shape::from([3]), DType::F32)?.to_vec::<f32>()?, [0.0, 1.0, 2.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
pub trait Initializer: Send + Sync + 'static {
    /// The first value of a variable of the given shape and dtype.
    ///
    /// # Errors
    /// The shape or the dtype does not suit the initialiser, or one of its own arguments is bad.
    fn init(&self, shape: &Shape, dtype: DType) -> Result<Tensor>;

    /// The printed form, as in `TruncatedNormal(mean=0, stddev=0.2)`.
    fn describe(&self) -> String {
        "<closure>".to_owned()
    }
}

impl<F: Fn(&Shape, DType) -> Result<Tensor> + Send + Sync + 'static> Initializer for F {
    fn init(&self, shape: &Shape, dtype: DType) -> Result<Tensor> {
        self(shape, dtype)
    }
}

impl<I: Initializer + ?Sized> Initializer for Arc<I> {
    fn init(&self, shape: &Shape, dtype: DType) -> Result<Tensor> {
        (**self).init(shape, dtype)
    }

    fn describe(&self) -> String {
        (**self).describe()
    }
}

impl fmt::Debug for dyn Initializer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Refuses what is neither a float nor an integer dtype.
fn expect_number(op: &'static str, dtype: DType) -> Result<()> {
    if dtype.is_float() || dtype.is_integer() {
        return Ok(());
    }
    Err(Error::dtype(op, "the variable", dtype, "a float or integer dtype"))
}

/// Refuses what is not a float dtype.
fn expect_float(op: &'static str, dtype: DType) -> Result<()> {
    if dtype.is_float() {
        return Ok(());
    }
    Err(Error::dtype(op, "the variable", dtype, "a float dtype"))
}

/// Refuses a scalar and a vector.
fn expect_matrix(op: &'static str, shape: &Shape) -> Result<()> {
    if shape.rank() >= 2 {
        return Ok(());
    }
    Err(Error::shape(op, "the variable", shape, "rank 2 or more"))
}

/// The random numbers of an initialiser: those of its own seed, else of the thread's current generator.
///
/// A seeded initialiser repeats its draws from one run to the next; two draws of one initialiser (or of its clones)
/// differ all the same.
#[derive(Debug, Clone, Default)]
struct Seed(Option<(u64, Generator)>);

impl Seed {
    fn new(seed: u64) -> Self {
        Seed(Some((seed, Generator::seed(seed))))
    }

    fn generator(&self) -> Generator {
        self.0.as_ref().map_or_else(random::current, |(_, generator)| generator.clone())
    }
}

/// `, seed=7` in a printed form, or nothing.
impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |(seed, _)| write!(f, ", seed={seed}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Arc<dyn Initializer>> {
        vec![
            Arc::new(Zeros),
            Arc::new(Ones),
            Arc::new(Constant::new(3)),
            Arc::new(RandomUniform::new(-1.0, 2.0)),
            Arc::new(RandomNormal::new(0.5)),
            Arc::new(TruncatedNormal::new(0.5)),
            Arc::new(Identity::new()),
            Arc::new(Orthogonal::new()),
            Arc::new(VarianceScaling::he_normal()),
        ]
    }

    #[test]
    fn every_initialiser_fills_every_float_dtype_and_empty_shapes() {
        for init in all() {
            for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
                for shape in [[3, 4], [4, 3], [0, 3], [3, 0], [1, 1]] {
                    let y = init.init(&Shape::from(shape), dtype).unwrap();
                    assert_eq!((y.shape().dims(), y.dtype()), (&shape[..], dtype), "{init:?}");
                }
            }
        }
    }

    #[test]
    fn every_initialiser_refuses_bool_by_name() {
        for init in all() {
            let message = init.init(&Shape::from([2, 2]), DType::Bool).unwrap_err().to_string();
            assert!(message.contains("bool"), "{message}");
        }
    }

    #[test]
    fn printed_forms_show_the_arguments() {
        let printed: Vec<String> = all().iter().map(|init| format!("{init:?}")).collect();
        let expected = [
            "Zeros()",
            "Ones()",
            "Constant(value=3)",
            "RandomUniform(minval=-1, maxval=2)",
            "RandomNormal(mean=0, stddev=0.5)",
            "TruncatedNormal(mean=0, stddev=0.5)",
            "Identity(gain=1)",
            "Orthogonal(gain=1)",
            "VarianceScaling(scale=2, mode='fan_in', distribution='truncated_normal')",
        ];
        assert_eq!(printed, expected);
        assert_eq!(RandomNormal::new(1.0).seed(7).describe(), "RandomNormal(mean=0, stddev=1, seed=7)");
        assert_eq!((|_: &Shape, d: DType| Tensor::zeros([], d)).describe(), "<closure>");
    }

    #[test]
    fn a_seed_repeats_draws_without_touching_the_current_generator() {
        let draw = |init: &dyn Initializer| {
            init.init(&Shape::from([4, 3]), DType::F32).unwrap().to_vec::<f32>().unwrap()
        };
        let current = Generator::seed(1);
        random::with(&current, || {
            let seeded: [(&dyn Initializer, &dyn Initializer); 5] = [
                (&RandomUniform::default().seed(7), &RandomUniform::default().seed(7)),
                (&RandomNormal::default().seed(7), &RandomNormal::default().seed(7)),
                (&TruncatedNormal::default().seed(7), &TruncatedNormal::default().seed(7)),
                (&Orthogonal::new().seed(7), &Orthogonal::new().seed(7)),
                (&VarianceScaling::default().seed(7), &VarianceScaling::default().seed(7)),
            ];
            for (a, b) in seeded {
                let first = draw(a);
                assert_ne!(draw(a), first);
                assert_eq!(draw(b), first);
            }
        });
        assert_eq!(current.state(), [1, 0, 0]);
        let from_current = || random::with(&Generator::seed(1), || draw(&RandomNormal::default()));
        assert_eq!(from_current(), from_current());
    }
}
