//! Vectors replaced by the nearest of a set that is learned by gradients.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init::{Initializer, VarianceScaling};
use crate::module::Once;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

/// Replaces each vector by the nearest column of a table (van den Oord et al. 2017, "Neural discrete representation
/// learning", section 3): `q = embeddings[:, argmin_k |x - embeddings[:, k]|^2]`.
///
/// | tensor | shape |
/// |---|---|
/// | `x` | `[.., embedding_dim]` |
/// | `embeddings` | `[embedding_dim, num_embeddings]` |
///
/// The gradient of `quantize` goes to `x` as if nothing had been replaced. The loss,
///
/// ```text
/// mean((q - stop_gradient(x))^2) + commitment_cost mean((stop_gradient(q) - x)^2)
/// ```
///
/// pulls the columns to the vectors that take them, and the vectors to their columns; add it to that of the task.
/// [`VectorQuantizerEMA`](super::VectorQuantizerEMA) learns the table without gradients instead.
///
/// The table starts uniform with variance `1 / embedding_dim`, so that its columns have a length around 1.
///
/// ```
/// use couplet::nets::VectorQuantizer;
/// use couplet::prelude::*;
/// let quantizer = VectorQuantizer::new(2, 3, 0.25);
/// quantizer.embeddings()?.assign(&Tensor::from([[1.0f32, 0.0, -1.0], [0.0, 1.0, -1.0]]))?;
/// let y = quantizer.forward_t(&Tensor::from([[0.9f32, 0.2], [0.1, 0.8], [-2.0, -1.0]]), true)?;
/// assert_eq!(y.encoding_indices.to_vec::<i64>()?, [0, 1, 2]);
/// assert_eq!(quantizer.quantize(&y.encoding_indices)?.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0, -1.0, -1.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(materialise = Self::embeddings)]
pub struct VectorQuantizer {
    scope: Scope,
    embedding_dim: usize,
    num_embeddings: usize,
    commitment_cost: f64,
    #[module(default = DType::F32)]
    dtype: DType,
    embeddings: Once<Variable>,
}

/// What a vector quantiser computes.
#[derive(Debug, Clone)]
pub struct Quantized {
    /// The nearest column for each vector, in the shape of the input. Its gradient is that of the input.
    pub quantize: Tensor,
    /// What is to be added to the loss of the task.
    pub loss: Tensor,
    /// `exp` of the entropy of how often each column was taken: from 1, always the same, to the number of columns, all equally
    /// often.
    pub perplexity: Tensor,
    /// `[vectors, num_embeddings]`: 1 where a vector took a column, else 0.
    pub encodings: Tensor,
    /// The column that each vector took, the first of equally near ones: `i64` in the shape of the input without its last axis.
    pub encoding_indices: Tensor,
    /// `[vectors, num_embeddings]`: the squared distances.
    pub distances: Tensor,
}

impl VectorQuantizer {
    /// A table of `num_embeddings` columns; `commitment_cost` weighs how strongly vectors are pulled to them. The paper
    /// takes 0.25 and saw little change from 0.1 to 2.
    pub fn new(embedding_dim: usize, num_embeddings: usize, commitment_cost: f64) -> Self {
        VectorQuantizer {
            scope: Scope::of::<Self>(),
            embedding_dim,
            num_embeddings,
            commitment_cost,
            dtype: DType::F32,
            embeddings: Once::new(),
        }
    }

    /// The dtype of the table, which inputs must have. Default: `f32`.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }
}

const OP: &str = "vector_quantizer";

#[scoped]
impl VectorQuantizer {
    /// The table, which is made when it is first needed.
    ///
    /// # Errors
    /// A size is 0, or the dtype is not a float type.
    pub fn embeddings(&self) -> Result<&Variable> {
        let shape = table_shape(OP, self.embedding_dim, self.num_embeddings, self.dtype)?;
        self.embeddings.get_or_init(|| Variable::new("embeddings", &shape, self.dtype, table_init()))
    }

    /// The nearest columns. `is_training` changes nothing here; [`VectorQuantizerEMA`](super::VectorQuantizerEMA) needs it.
    ///
    /// # Errors
    /// The last dim of `x` is not `embedding_dim`, or its dtype not that of the table.
    pub fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Quantized> {
        let _ = is_training;
        check(OP, x, self.embedding_dim, self.dtype)?;
        let mut found = nearest(x, &self.embeddings()?.value())?;
        let pull_columns = (&found.q - x.stop_gradient())?.square()?.mean()?;
        found.out.loss = (pull_columns + (&found.out.loss * self.commitment_cost)?)?;
        Ok(found.out)
    }

    /// The columns with these numbers: `[indices.., embedding_dim]`.
    ///
    /// # Errors
    /// `indices` are not integers in `0..num_embeddings`.
    pub fn quantize(&self, indices: &Tensor) -> Result<Tensor> {
        columns(&self.embeddings()?.value(), indices)
    }
}

pub(super) fn table_shape(op: &'static str, dim: usize, count: usize, dtype: DType) -> Result<[usize; 2]> {
    for (name, size) in [("embedding_dim", dim), ("num_embeddings", count)] {
        if size == 0 {
            return Err(Error::argument(op, name, size, "1 or more"));
        }
    }
    if !dtype.is_float() {
        return Err(Error::argument(op, "dtype", dtype, "a float dtype"));
    }
    Ok([dim, count])
}

pub(super) fn table_init() -> impl Initializer {
    VarianceScaling::lecun_uniform()
}

/// Refuses an input that does not fit the table.
pub(super) fn check(op: &'static str, x: &Tensor, embedding_dim: usize, dtype: DType) -> Result<()> {
    if x.rank() == 0 || x.dim(-1)? != embedding_dim {
        let expected = format!("embedding_dim = {embedding_dim} as its last dim");
        return Err(Error::shape(op, "x", x.shape(), expected));
    }
    if x.dtype() != dtype {
        return Err(Error::dtype(op, "x", x.dtype(), format!("{dtype}, the dtype of the embeddings")));
    }
    Ok(())
}

/// `table[:, indices]` with the column's axis last.
pub(super) fn columns(table: &Tensor, indices: &Tensor) -> Result<Tensor> {
    table.transpose(&[1, 0])?.gather_rows_densely(indices)
}

/// The outcome of a search, with the pull of the vectors to their columns as its loss.
pub(super) struct Found {
    pub out: Quantized,
    /// The columns that were taken, with their own gradient.
    pub q: Tensor,
}

/// Finds the nearest column of `table` for each vector of `x`.
pub(super) fn nearest(x: &Tensor, table: &Tensor) -> Result<Found> {
    let (dim, count) = (table.dim(0)?, table.dim(1)?);
    let vectors = x.size() / dim;
    let flat = x.reshape([vectors, dim])?;
    let lengths = flat.square()?.sum_axes(1, true)?;
    let distances = ((lengths - (flat.matmul(table)? * 2.0)?)? + table.square()?.sum_axes(0, true)?)?;
    let flat_indices = distances.argmin(1)?;
    let encodings = flat_indices.one_hot(count, distances.dtype())?;
    let encoding_indices = flat_indices.reshape(&x.shape()[..x.rank() - 1])?;
    let q = columns(table, &encoding_indices)?;
    let loss = (q.stop_gradient() - x)?.square()?.mean()?;
    let quantize = (x + (&q - x)?.stop_gradient())?;
    // In f32 at least: f16 has no 1e-10, which stands for the logarithm of a column that nobody took.
    let wide = if table.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let share = encodings.cast(wide)?.mean_axes(0, false)?;
    let entropy = (&share * (&share + 1e-10)?.log()?)?.sum()?;
    let perplexity = (-entropy)?.exp()?.cast(table.dtype())?;
    Ok(Found { out: Quantized { quantize, loss, perplexity, encodings, encoding_indices, distances }, q })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nets::VectorQuantizerEMA;
    use crate::{Gradient, GradientTape, Module, Source};

    fn example() -> (Tensor, Tensor) {
        let table = Tensor::from([[1.0f32, 0.0, -1.0], [0.0, 1.0, -1.0]]);
        (table, Tensor::from([[[0.9f32, 0.2], [0.1, 0.8]], [[-2.0, -1.0], [0.5, 0.5]]]))
    }

    fn close(got: &Tensor, want: &[f32]) {
        let got = got.to_vec::<f32>().unwrap();
        assert_eq!(got.len(), want.len());
        assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-5), "{got:?} is not {want:?}");
    }

    #[test]
    fn ties_take_the_first_column_and_each_part_of_the_loss_pulls_its_side() -> Result<()> {
        let (table, x) = example();
        let quantizer = VectorQuantizer::new(2, 3, 0.25);
        quantizer.embeddings()?.assign(&table)?;
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = quantizer.forward_t(&x, true)?;
        assert_eq!(y.encoding_indices.to_vec::<i64>()?, [0, 1, 2, 0]);
        close(&y.distances, &[0.05, 1.45, 5.05, 1.45, 0.05, 4.45, 10.0, 8.0, 1.0, 0.5, 0.5, 4.5]);
        // x - q: (-.1, .2), (.1, -.2), (-1, 0), (-.5, .5); the squares add up to 1.6, over 8 numbers.
        close(&y.loss, &[1.6 / 8.0 * 1.25]);
        // Shares 1/2, 1/4, 1/4: the entropy is 1.5 ln 2.
        close(&y.perplexity, &[2f32.powf(1.5)]);
        let sources: [&dyn Source; 2] = [&x, quantizer.embeddings()?];
        let grads = tape.gradient_of_all(&[(&y.loss, None)], &sources)?;
        let dense = |g: &Option<Gradient>| g.as_ref().expect("there is one").to_dense();
        // 2 (x - q) / 8, times the commitment cost.
        close(&dense(&grads[0])?, &[-0.00625, 0.0125, 0.00625, -0.0125, -0.0625, 0.0, -0.03125, 0.03125]);
        // 2 (q - x) / 8, added up over the vectors of a column.
        close(&dense(&grads[1])?, &[0.15, -0.025, 0.25, -0.175, 0.05, 0.0]);
        Ok(())
    }

    #[test]
    fn the_gradient_passes_the_quantiser_unchanged_and_misses_the_table() -> Result<()> {
        let (_, x) = example();
        let quantizer = VectorQuantizer::new(2, 3, 0.25);
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = (quantizer.forward_t(&x, true)?.quantize * 3.0)?.sum()?;
        let sources: [&dyn Source; 2] = [&x, quantizer.embeddings()?];
        let grads = tape.gradient_of_all(&[(&y, None)], &sources)?;
        assert_eq!(grads[0].as_ref().expect("it passes").to_dense()?.to_vec::<f32>()?, [3.0; 8]);
        assert!(grads[1].is_none());
        Ok(())
    }

    #[test]
    fn the_nearest_column_is_found_as_by_an_obvious_loop() -> Result<()> {
        for dtype in [DType::F32, DType::F64] {
            let quantizer = VectorQuantizer::new(5, 20, 0.25).dtype(dtype);
            let table = quantizer.embeddings()?.value().cast(DType::F64)?.to_vec::<f64>()?;
            let numbers: Vec<f64> = (0..150).map(|i| (i as f64 * 0.77).sin()).collect();
            let x = Tensor::from_vec(numbers.clone(), [30, 5])?.cast(dtype)?;
            let y = quantizer.forward_t(&x, false)?;
            let distance = |i: usize, k: usize| -> f64 {
                (0..5).map(|d| (numbers[5 * i + d] - table[20 * d + k]).powi(2)).sum()
            };
            for (i, &k) in y.encoding_indices.to_vec::<i64>()?.iter().enumerate() {
                assert!((0..20).all(|other| distance(i, k as usize) <= distance(i, other) + 1e-5));
            }
            assert_eq!(quantizer.quantize(&y.encoding_indices)?.shape(), &[30, 5]);
            assert!(quantizer.quantize(&Tensor::from([20i64])).is_err());
        }
        Ok(())
    }

    #[test]
    fn inputs_that_do_not_fit_are_refused_and_no_vectors_are_fine() -> Result<()> {
        let quantizer = VectorQuantizer::new(4, 6, 0.25);
        // Twelve numbers could be taken for three vectors.
        let told = quantizer.forward_t(&Tensor::ones([4, 3], DType::F32)?, true).unwrap_err().to_string();
        assert!(told.contains("embedding_dim = 4"), "{told}");
        assert!(quantizer.forward_t(&Tensor::ones([4], DType::F64)?, true).is_err());
        assert!(quantizer.forward_t(&Tensor::from(1.0f32), true).is_err());
        let y = quantizer.forward_t(&Tensor::zeros([0, 5, 5, 4], DType::F32)?, true)?;
        assert_eq!(
            (y.quantize.shape().to_vec(), y.encoding_indices.shape().to_vec()),
            (vec![0, 5, 5, 4], vec![0, 5, 5])
        );
        assert!(y.loss.item::<f32>()?.is_nan() && y.perplexity.item::<f32>()?.is_nan());
        for (dim, count) in [(0, 3), (3, 0)] {
            assert!(VectorQuantizer::new(dim, count, 0.25).variables().is_err());
            assert!(VectorQuantizerEMA::new(dim, count, 0.25, 0.9).variables().is_err());
        }
        Ok(())
    }

    #[test]
    fn half_floats_know_columns_that_nobody_takes() -> Result<()> {
        let quantizer = VectorQuantizer::new(2, 3, 0.25).dtype(DType::F16);
        let y = quantizer.forward_t(&Tensor::ones([4, 2], DType::F16)?, true)?;
        assert_eq!(y.perplexity.cast(DType::F32)?.item::<f32>()?, 1.0);
        Ok(())
    }
}
