//! Vectors replaced by the nearest of a set of moving averages.

use crate::autodiff::no_grad;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::metrics::{ExponentialMovingAverage, Metric};
use crate::module::Once;
use crate::scope::Scope;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::{Module, scoped};

use super::vector_quantizer::{Quantized, check, columns, nearest, table_init, table_shape};

/// Replaces each vector by the nearest column of a table, as [`VectorQuantizer`](super::VectorQuantizer), where each column is
/// the moving average of the vectors that took it (van den Oord et al. 2017, appendix A.1).
///
/// A call in training first answers with the table as it is. Then, with `n_k` the number of vectors that took column `k` and
/// `m_k` their sum, both as averages over the steps with the share `decay` of the past:
///
/// ```text
/// embeddings[:, k] = m_k / ((n_k + epsilon) / (n + num_embeddings epsilon) n),   n = sum_k n_k
/// ```
///
/// The loss is `commitment_cost mean((stop_gradient(q) - x)^2)`. No variable is trained by an optimiser: `embeddings`, and
/// below `ema_cluster_size` and `ema_dw` the state of the averages.
///
/// The averages forget where the table started: from the first step on, a column that no vector has taken yet is 0.
///
/// ```
/// use couplet::nets::VectorQuantizerEMA;
/// use couplet::prelude::*;
/// let quantizer = VectorQuantizerEMA::new(2, 3, 0.25, 0.9);
/// quantizer.embeddings()?.assign(&Tensor::from([[1.0f32, 0.0, -1.0], [0.0, 1.0, -1.0]]))?;
/// let x = Tensor::from([[0.5f32, 0.0], [0.75, 0.0]]);
/// assert_eq!(quantizer.forward_t(&x, true)?.quantize.to_vec::<f32>()?, [1.0, 0.0, 1.0, 0.0]);
/// let y = quantizer.forward_t(&x, false)?.quantize.to_vec::<f32>()?;
/// assert!((y[0] - 0.625).abs() < 1e-4); // the mean of the two
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Module)]
#[module(materialise = Self::create)]
pub struct VectorQuantizerEMA {
    scope: Scope,
    embedding_dim: usize,
    num_embeddings: usize,
    commitment_cost: f64,
    decay: f64,
    #[module(default = 1e-5)]
    epsilon: f64,
    #[module(default = DType::F32)]
    dtype: DType,
    embeddings: Once<Variable>,
    #[module(hidden)]
    ema_cluster_size: ExponentialMovingAverage,
    #[module(hidden)]
    ema_dw: ExponentialMovingAverage,
}

const OP: &str = "vector_quantizer_ema";

impl VectorQuantizerEMA {
    /// A table of `num_embeddings` columns; `decay` in `[0, 1)` is the share of the past at each step.
    pub fn new(embedding_dim: usize, num_embeddings: usize, commitment_cost: f64, decay: f64) -> Self {
        let scope = Scope::of::<Self>();
        let _in = scope.enter();
        let ema_cluster_size = ExponentialMovingAverage::new(decay).name("ema_cluster_size");
        let ema_dw = ExponentialMovingAverage::new(decay).name("ema_dw");
        drop(_in);
        VectorQuantizerEMA {
            scope,
            embedding_dim,
            num_embeddings,
            commitment_cost,
            decay,
            epsilon: 1e-5,
            dtype: DType::F32,
            embeddings: Once::new(),
            ema_cluster_size,
            ema_dw,
        }
    }

    /// Added to each count, so that a column nobody takes does not divide by 0. Default: 1e-5.
    #[must_use]
    pub fn epsilon(mut self, epsilon: f64) -> Self {
        self.epsilon = epsilon;
        self
    }

    /// The dtype of the table, which inputs must have. Default: `f32`.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }
}

#[scoped]
impl VectorQuantizerEMA {
    fn create(&self) -> Result<()> {
        self.embeddings().map(drop)
    }

    /// The table, which is made when it is first needed, along with the averages.
    ///
    /// # Errors
    /// A size is 0, `decay` lies outside `[0, 1)`, or the dtype is not a float type.
    pub fn embeddings(&self) -> Result<&Variable> {
        if !(0.0..1.0).contains(&self.decay) {
            return Err(Error::argument(OP, "decay", self.decay, "a number in [0, 1)"));
        }
        let shape = table_shape(OP, self.embedding_dim, self.num_embeddings, self.dtype)?;
        let make = || Variable::non_trainable("embeddings", &shape, self.dtype, table_init());
        let embeddings = self.embeddings.get_or_init(make)?;
        self.ema_cluster_size.initialize(&Tensor::zeros([self.num_embeddings], self.dtype)?)?;
        self.ema_dw.initialize(&Tensor::zeros(shape, self.dtype)?)?;
        Ok(embeddings)
    }

    /// The nearest columns. In training the table moves afterwards; no vectors move nothing.
    ///
    /// # Errors
    /// The last dim of `x` is not `embedding_dim`, its dtype is not that of the table, or `decay` lies outside `[0, 1)`.
    pub fn forward_t(&self, x: &Tensor, is_training: bool) -> Result<Quantized> {
        check(OP, x, self.embedding_dim, self.dtype)?;
        let embeddings = self.embeddings()?;
        let mut out = nearest(x, &embeddings.value())?.out;
        out.loss = (&out.loss * self.commitment_cost)?;
        if is_training && x.size() > 0 {
            no_grad(|| self.learn(x, &out.encodings, embeddings))?;
        }
        Ok(out)
    }

    fn learn(&self, x: &Tensor, encodings: &Tensor, embeddings: &Variable) -> Result<()> {
        let flat = x.reshape([encodings.dim(0)?, self.embedding_dim])?;
        self.ema_cluster_size.update(&encodings.sum_axes(0, false)?)?;
        self.ema_dw.update(&flat.transpose(&[1, 0])?.matmul(encodings)?)?;
        let (counts, sums) = (self.ema_cluster_size.value()?, self.ema_dw.value()?);
        let all = counts.sum()?;
        let smoothed = (counts + self.epsilon)? / (&all + self.num_embeddings as f64 * self.epsilon)?;
        embeddings.assign(&(sums / (smoothed? * all)?)?)
    }

    /// The columns with these numbers: `[indices.., embedding_dim]`.
    ///
    /// # Errors
    /// `indices` are not integers in `0..num_embeddings`.
    pub fn quantize(&self, indices: &Tensor) -> Result<Tensor> {
        columns(&self.embeddings()?.value(), indices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    fn close(got: &Tensor, want: &[f32]) {
        let got = got.to_vec::<f32>().unwrap();
        assert_eq!(got.len(), want.len());
        assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-4), "{got:?} is not {want:?}");
    }

    #[test]
    fn columns_become_the_means_of_the_vectors_that_took_them() -> Result<()> {
        let quantizer = VectorQuantizerEMA::new(2, 3, 0.25, 0.9);
        quantizer.embeddings()?.assign(&Tensor::from([[1.0f32, 0.0, -1.0], [0.0, 1.0, -1.0]]))?;
        let x = Tensor::from([[[0.9f32, 0.2], [0.1, 0.8]], [[-2.0, -1.0], [0.5, 0.5]]]);
        let y = quantizer.forward_t(&x, true)?;
        // The squares of x - q add up to 1.6, over 8 numbers.
        close(&y.loss, &[0.25 * 1.6 / 8.0]);
        // Column 0 was taken by (.9, .2) and (.5, .5).
        close(&quantizer.embeddings()?.value(), &[0.7, 0.1, -2.0, 0.35, 0.8, -1.0]);
        quantizer.forward_t(&x, true)?;
        // 0.1 n, then 0.9 of that and 0.1 n.
        close(&quantizer.named_variables()?[2].1.value(), &[0.38, 0.19, 0.19]);
        Ok(())
    }

    #[test]
    fn a_column_that_nobody_took_becomes_zero() -> Result<()> {
        let quantizer = VectorQuantizerEMA::new(2, 3, 0.25, 0.9);
        quantizer.embeddings()?.assign(&Tensor::from([[1.0f32, 0.0, -1.0], [0.0, 1.0, -1.0]]))?;
        quantizer.forward_t(&Tensor::from([[1.0f32, 0.1]]), true)?;
        close(&quantizer.embeddings()?.value(), &[1.0, 0.0, 0.0, 0.1, 0.0, 0.0]);
        Ok(())
    }

    #[test]
    fn the_table_moves_in_training_alone() -> Result<()> {
        for dtype in [DType::F32, DType::F64] {
            let quantizer = VectorQuantizerEMA::new(5, 7, 0.5, 0.1).dtype(dtype);
            let table = || quantizer.embeddings()?.value().cast(DType::F64)?.to_vec::<f64>();
            for step in 0..10 {
                let numbers = (0..60).map(|i| ((i * (step + 3)) as f64).sin()).collect();
                let x = Tensor::from_vec::<f64>(numbers, [12, 5])?.cast(dtype)?;
                let before = table()?;
                quantizer.forward_t(&x, false)?;
                assert_eq!(table()?, before);
                quantizer.forward_t(&x, true)?;
                assert_ne!(table()?, before);
            }
            let before = table()?;
            quantizer.forward_t(&Tensor::zeros([0, 5], dtype)?, true)?;
            assert_eq!(table()?, before, "no vectors");
        }
        Ok(())
    }

    #[test]
    fn a_decay_outside_of_its_range_is_refused() -> Result<()> {
        for decay in [-0.1, 1.0, 1.5, f64::NAN] {
            let quantizer = VectorQuantizerEMA::new(2, 3, 0.1, decay);
            let told = quantizer.forward_t(&Tensor::ones([2, 2], DType::F32)?, true).unwrap_err().to_string();
            assert!(told.contains("decay") && told.contains("[0, 1)"), "{told}");
        }
        Ok(())
    }
}
