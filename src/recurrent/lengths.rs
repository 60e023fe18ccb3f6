//! Sequences of unequal lengths in one batch.

use crate::error::{Error, Result};
use crate::tensor::Tensor;

use super::nest::Nest;

/// How many steps count, for each row of a batch or for all of them.
pub(super) struct Lengths {
    list: Vec<i64>,
    /// One number stands for all rows.
    shared: bool,
}

impl Lengths {
    /// The lengths in a tensor of integers, `[batch]` or `[]`.
    pub(super) fn new(op: &'static str, lengths: &Tensor) -> Result<Self> {
        if !lengths.dtype().is_integer() {
            return Err(Error::dtype(op, "sequence_length", lengths.dtype(), "an integer dtype"));
        }
        if lengths.rank() > 1 {
            return Err(Error::shape(op, "sequence_length", lengths.shape(), "[batch], or [] for all rows"));
        }
        let list = lengths.cast(crate::DType::I64)?.to_vec::<i64>()?;
        Ok(Lengths { list, shared: lengths.rank() == 0 })
    }

    /// The length of each row of a batch of that size.
    fn of_rows(&self, op: &'static str, batch: usize) -> Result<Vec<i64>> {
        if self.shared {
            return Ok(vec![self.list[0]; batch]);
        }
        if self.list.len() != batch {
            let expected = format!("[{batch}], the batch of outputs and states");
            return Err(Error::shape(op, "sequence_length", &[self.list.len()], expected));
        }
        Ok(self.list.clone())
    }

    /// `before` in the rows that end before step `t`, `now` in the others; scalars are always those of now.
    pub(super) fn select(&self, op: &'static str, t: usize, before: &Nest, now: &Nest) -> Result<Nest> {
        before.try_zip(now, |before, now| {
            let Some(&batch) = now.shape().first() else { return Ok(now.clone()) };
            let done: Vec<bool> = self.of_rows(op, batch)?.iter().map(|&length| t as i64 >= length).collect();
            if !done.contains(&true) {
                return Ok(now.clone());
            }
            let mut shape = vec![1; now.rank()];
            shape[0] = batch;
            Tensor::from_vec(done, shape)?.where_else(before, now)
        })
    }

    /// Of values of all steps, `[steps, batch, ..]`, the last one of each row that counts, or `first` where there is none.
    pub(super) fn last(&self, op: &'static str, of_all: &Tensor, first: &Tensor) -> Result<Tensor> {
        if of_all.rank() == 1 {
            return of_all.index(-1); // a scalar goes on to the end
        }
        let (steps, batch) = (of_all.dim(0)?, of_all.dim(1)?);
        let lengths = self.of_rows(op, batch)?;
        let last: Vec<i64> = lengths.iter().map(|&length| length.clamp(1, steps as i64) - 1).collect();
        let y = rows(of_all, &last)?;
        choose(&lengths, &y, first)
    }

    /// Values of all steps, `[steps, batch, ..]`; beyond a row's end its last one, 0 where there is none.
    pub(super) fn repeat_last(&self, op: &'static str, of_all: &Tensor) -> Result<Tensor> {
        let (steps, batch) = (of_all.dim(0)?, of_all.dim(1)?);
        let lengths = self.of_rows(op, batch)?;
        if lengths.iter().all(|&length| length >= steps as i64) {
            return Ok(of_all.clone());
        }
        let at = |t: usize| lengths.iter().map(move |&length| (t as i64).min(length.max(1) - 1));
        let y = rows(of_all, &(0..steps).flat_map(at).collect::<Vec<_>>())?;
        choose(&lengths.repeat(steps), &y, &Tensor::zeros([], y.dtype())?)?.reshape(of_all.shape().clone())
    }
}

/// The shape with the first two axes as one.
fn flat_shape(x: &Tensor) -> Vec<usize> {
    [x.shape()[0] * x.shape()[1]].into_iter().chain(x.shape()[2..].iter().copied()).collect()
}

/// Number `i` of the result is row `i % batch` at step `at[i]`.
fn rows(of_all: &Tensor, at: &[i64]) -> Result<Tensor> {
    let batch = of_all.dim(1)? as i64;
    let numbers: Vec<i64> = at.iter().enumerate().map(|(i, t)| t * batch + i as i64 % batch).collect();
    of_all.reshape(flat_shape(of_all))?.gather_rows_densely(&Tensor::from(&numbers[..]))
}

/// `y` in the rows that have steps, `without` in the others.
fn choose(lengths: &[i64], y: &Tensor, without: &Tensor) -> Result<Tensor> {
    if lengths.iter().all(|&length| length > 0) {
        return Ok(y.clone());
    }
    let mut shape = vec![1; y.rank()];
    shape[0] = lengths.len();
    let has_steps = Tensor::from_vec(lengths.iter().map(|&length| length > 0).collect(), shape)?;
    has_steps.where_else(y, without)
}
