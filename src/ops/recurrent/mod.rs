//! The steps of recurrent layers.

mod gru;
mod lstm;
mod sequence;
mod sums;

pub(crate) use gru::{GRUStep, gru_step};
pub(crate) use lstm::{LSTMCell, lstm_cell};
pub(crate) use sequence::{LSTMSequence, lstm_sequence};
pub(crate) use sums::{RecurrentSums, recurrent_sums};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::gemm::{Matrix, Real};
use crate::tensor::Tensor;

use super::apply;
use super::matmul::Matmul;

/// Contiguous elements in the dtype to compute in; not recorded.
fn ready(x: &Tensor, real: DType) -> Result<Tensor> {
    Ok(x.converted(real)?.to_contiguous())
}

/// The elements of a tensor that [`ready`] made.
fn elements<T: Element>(x: &Tensor) -> Result<&[T]> {
    Ok(x.as_slice::<T>()?.unwrap_or(&[]))
}

/// A tensor of rank 2 in any layout as a matrix.
fn matrix<T: Real + Element>(x: &Tensor) -> Result<Matrix<'_, T>> {
    let offset = if x.size() == 0 { 0 } else { x.offset() };
    Ok(Matrix::new(x.storage()?, offset, (x.shape()[0], x.shape()[1]), (x.strides()[0], x.strides()[1])))
}

/// Refuses an input of another shape.
fn expect_shape(op: &'static str, what: &'static str, x: &Tensor, shape: &[usize]) -> Result<()> {
    if x.shape() == shape { Ok(()) } else { Err(Error::shape(op, what, x.shape(), format!("{shape:?}"))) }
}

/// `N` equal parts of the last axis.
fn columns<const N: usize>(x: &Tensor) -> Result<[Tensor; N]> {
    Ok(x.chunk(N, -1)?.try_into().expect("chunk gives as many parts as it is asked for"))
}

/// `a b^T`.
fn times_transposed(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    apply(Matmul { transpose_a: false, transpose_b: true }, [a, b])
}

/// `a^T b`.
fn transposed_times(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    apply(Matmul { transpose_a: true, transpose_b: false }, [a, b])
}

/// `x + y` of what is there.
fn plus(x: Option<Tensor>, y: Option<Tensor>) -> Result<Option<Tensor>> {
    match (x, y) {
        (Some(x), Some(y)) => (x + y).map(Some),
        (x, y) => Ok(x.or(y)),
    }
}

/// `dy s (1 - s)`: what reaches the argument of a logistic sigmoid `s`.
fn through_sigmoid(dy: &Tensor, s: &Tensor) -> Result<Tensor> {
    (dy * s)? * (1.0 - s)?
}

/// `dy (1 - t^2)`: what reaches the argument of a hyperbolic tangent `t`.
fn through_tanh(dy: &Tensor, t: &Tensor) -> Result<Tensor> {
    dy * (1.0 - t.square()?)?
}
