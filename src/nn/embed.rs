//! Vectors for the words of a vocabulary.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init::{self, Initializer};
use crate::module::Once;
use crate::scope::Scope;
use crate::tensor::{Shape, Tensor};
use crate::variable::Variable;
use crate::{Forward, Module, scoped};

/// A table of vectors, looked up by number: `y[i.., :] = embeddings[ids[i..], :]`.
///
/// | tensor | shape |
/// |---|---|
/// | `ids` | integers of any shape, each in `0..vocab_size` |
/// | `embeddings` | `[vocab_size, embed_dim]` |
/// | `y` | the shape of `ids`, then `embed_dim` |
///
/// The gradient of the table is sparse, the rows that were looked up, and optimisers change those rows alone; see
/// [`densify_gradients`](Embed::densify_gradients). The vectors start as a normal of standard deviation 1 cut at 2: a lookup
/// takes one row, so there is no fan-in to scale by.
///
/// ```
/// use couplet::prelude::*;
/// let embed = Embed::from_existing(Tensor::from([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]));
/// assert_eq!(embed.forward(&Tensor::from([2i64, 0]))?.to_vec::<f32>()?, [5.0, 6.0, 1.0, 2.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(materialise = Self::create)]
pub struct Embed {
    scope: Scope,
    vocab_size: Option<usize>,
    embed_dim: Option<usize>,
    existing_vocab: Option<Tensor>,
    #[module(default = false)]
    densify_gradients: bool,
    initializer: Option<Arc<dyn Initializer>>,
    #[module(default = true)]
    trainable: bool,
    dtype: Option<DType>,
    embeddings: Once<Variable>,
}

impl Embed {
    fn with(vocab_size: Option<usize>, existing_vocab: Option<Tensor>) -> Self {
        Embed {
            scope: Scope::of::<Self>(),
            vocab_size,
            embed_dim: None,
            existing_vocab,
            densify_gradients: false,
            initializer: None,
            trainable: true,
            dtype: None,
            embeddings: Once::new(),
        }
    }

    /// A table for `vocab_size` words.
    pub fn new(vocab_size: usize) -> Self {
        Self::with(Some(vocab_size), None)
    }

    /// A table that starts as `existing_vocab`, `[vocab_size, embed_dim]`.
    pub fn from_existing(existing_vocab: Tensor) -> Self {
        Self::with(None, Some(existing_vocab))
    }

    /// Length of a vector. Default: `6 vocab_size^(1/4)`, rounded: 11 for 10 words, 60 for 10,000.
    #[must_use]
    pub fn embed_dim(mut self, embed_dim: usize) -> Self {
        self.embed_dim = Some(embed_dim);
        self
    }

    /// Whether the gradient of the table is a tensor of its whole shape instead of the rows that were looked up. Default: no.
    #[must_use]
    pub fn densify_gradients(mut self, densify_gradients: bool) -> Self {
        self.densify_gradients = densify_gradients;
        self
    }

    /// Initialiser of the table. Default: `TruncatedNormal` with standard deviation 1.
    #[must_use]
    pub fn initializer(mut self, initializer: impl Initializer) -> Self {
        self.initializer = Some(Arc::new(initializer));
        self
    }

    /// Whether the table is trained. Default: yes.
    #[must_use]
    pub fn trainable(mut self, trainable: bool) -> Self {
        self.trainable = trainable;
        self
    }

    /// The dtype of the table. Default: `f32`, or that of the existing one.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = Some(dtype);
        self
    }

    /// The table's shape.
    fn dims(&self) -> Result<[usize; 2]> {
        const OP: &str = "embed";
        if let Some(table) = &self.existing_vocab {
            if self.embed_dim.is_some() || self.initializer.is_some() {
                let problem = "embed_dim or initializer is given beside an existing table";
                return Err(Error::usage(OP, problem, "leave them out"));
            }
            let [rows, columns] = table.shape()[..] else {
                return Err(Error::shape(OP, "existing_vocab", table.shape(), "[vocab_size, embed_dim]"));
            };
            return Ok([rows, columns]);
        }
        match (self.vocab_size, self.embed_dim) {
            (Some(rows), Some(columns)) => Ok([rows, columns]),
            (Some(rows), None) if rows > 0 => {
                Ok([rows, (6.0 * (rows as f64).powf(0.25)).round_ties_even() as usize])
            }
            (rows, _) => Err(Error::argument(OP, "vocab_size", rows.unwrap_or(0), "1 or more")),
        }
    }
}

#[scoped]
impl Embed {
    fn create(&self) -> Result<()> {
        self.table().map(drop)
    }

    /// The table, which is made at the first call of anything that needs it.
    ///
    /// # Errors
    /// The sizes are missing or do not go together, or the initialiser fails.
    pub fn table(&self) -> Result<&Variable> {
        let shape = self.dims()?;
        let existing = self.existing_vocab.clone();
        let dtype = self.dtype.unwrap_or_else(|| existing.as_ref().map_or(DType::F32, Tensor::dtype));
        let init: Arc<dyn Initializer> = match (existing, &self.initializer) {
            (Some(table), _) => Arc::new(move |_: &Shape, dtype: DType| table.cast(dtype)),
            (None, Some(init)) => init.clone(),
            (None, None) => Arc::new(init::TruncatedNormal::new(1.0)),
        };
        self.embeddings.get_or_init(|| match self.trainable {
            true => Variable::new("embeddings", &shape, dtype, init),
            false => Variable::non_trainable("embeddings", &shape, dtype, init),
        })
    }
}

#[scoped]
impl Forward for Embed {
    /// The vectors of `ids`.
    ///
    /// # Errors
    /// `ids` are not integers, one of them is outside of the vocabulary, or the sizes of the table are missing or do not go
    /// together.
    fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        let table = self.table()?.value();
        if self.densify_gradients { table.gather_rows_densely(ids) } else { table.gather_rows(ids) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gradient, GradientTape};

    #[test]
    fn default_sizes_follow_the_fourth_root() {
        for (vocab, dim) in [(1, 6), (2, 7), (10, 11), (100, 19), (1000, 34), (10_000, 60)] {
            assert_eq!(Embed::new(vocab).dims().unwrap(), [vocab, dim]);
        }
        assert!(Embed::new(0).variables().unwrap_err().to_string().contains("vocab_size"));
        let existing = || Embed::from_existing(Tensor::from([[1.0f32]]));
        assert!(existing().embed_dim(3).variables().is_err());
        assert!(Embed::from_existing(Tensor::from([1.0f32])).variables().is_err());
    }

    #[test]
    fn the_gradient_is_the_rows_that_were_looked_up() -> Result<()> {
        let ids = Tensor::from([1i64, 1, 0]);
        let gradient = |embed: &Embed| -> Result<Gradient> {
            let tape = GradientTape::new();
            let y = embed.forward(&ids)?.sum()?;
            Ok(tape.gradient(&y, &[embed.table()?])?.remove(0).expect("it was looked up"))
        };
        let Gradient::Sparse(rows) = gradient(&Embed::new(3).embed_dim(2))? else { panic!("dense") };
        assert_eq!(rows.indices.to_vec::<i64>()?, [1, 1, 0]);
        assert_eq!((rows.values.to_vec::<f32>()?, rows.dims.to_vec()), (vec![1.0; 6], vec![3, 2]));
        let dense = gradient(&Embed::new(3).embed_dim(2).densify_gradients(true))?;
        assert_eq!(dense.dense()?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0, 0.0, 0.0]);
        Ok(())
    }

    #[test]
    fn numbers_outside_of_the_vocabulary_and_floats_are_refused() {
        let embed = Embed::new(3).embed_dim(2);
        for bad in [-1i64, 3] {
            let message = embed.forward(&Tensor::from([0, bad])).unwrap_err().to_string();
            assert!(message.contains("in embed") && message.contains(&bad.to_string()), "{message}");
        }
        assert!(embed.forward(&Tensor::from([0.0f32])).is_err());
        assert_eq!(embed.forward(&Tensor::zeros([0], DType::I32).unwrap()).unwrap().shape(), &[0, 2]);
        assert_eq!(embed.forward(&Tensor::from(2i64)).unwrap().shape(), &[2]);
    }
}
