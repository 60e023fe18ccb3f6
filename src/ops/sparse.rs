//! Rows of a table: gathering along axis 0, and adding rows back.

use serde::{Deserialize, Serialize};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor, take};

use super::arithmetic::{Number, for_number};
use super::gradient::{Gradient, IndexedSlices};
use super::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use super::registry::{Listed, Sample, SampleInput};
use super::{apply, apply_many};

/// Row numbers of a table of `rows` rows, as `usize`, checked.
pub(crate) fn row_numbers(op: &'static str, indices: &Tensor, rows: usize) -> Result<Vec<usize>> {
    if !indices.dtype().is_integer() {
        return Err(Error::dtype(op, "indices", indices.dtype(), "an integer dtype"));
    }
    crate::dtype::for_dtype!(indices.dtype(), T => {
        let list = indices.to_vec::<T>()?;
        list.into_iter().map(|i| {
            let index = i.to_i64();
            usize::try_from(index).ok().filter(|&i| i < rows).ok_or(Error::Index { op, what: "index".into(), index, size: rows })
        }).collect()
    })
}

/// `y[i, .., j, ..] = x[indices[i, ..], j, ..]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct GatherRows {
    dims: Shape,
    densify: bool,
}

impl Op for GatherRows {
    fn name(&self) -> &'static str {
        "gather_rows"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::inputs(Mask::only(1))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (x, indices) = (inputs.get(0)?, inputs.get(1)?);
        if x.rank() == 0 {
            return Err(Error::shape("gather_rows", "x", x.shape(), "rank 1 or more"));
        }
        if x.shape() != &self.dims {
            return Err(Error::shape("gather_rows", "x", x.shape(), self.dims.to_string()));
        }
        let rows = row_numbers("gather_rows", indices, x.shape()[0])?;
        let shape: Shape = indices.shape().iter().chain(&x.shape()[1..]).copied().collect();
        crate::tensor::checked_size("gather_rows", &shape, x.dtype())?;
        crate::dtype::for_dtype!(x.dtype(), T => {
            let x = x.to_contiguous();
            let table = x.as_slice::<T>()?.unwrap_or(&[]);
            let width: usize = x.shape()[1..].iter().product();
            let mut y = take::<T>(shape.size());
            for (&row, y) in rows.iter().zip(y.chunks_exact_mut(width.max(1))) {
                y.copy_from_slice(&table[row * width..(row + 1) * width]);
            }
            Ok(Tensor::from_taken(y, shape).into())
        })
    }

    /// `dx` is `dy` as rows of a sparse gradient (or added into zeros).
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None, None]) };
        let indices = saved.input(1)?;
        let count = indices.size();
        let values: Shape = std::iter::once(count).chain(self.dims[1..].iter().copied()).collect();
        let indices = indices.cast(DType::I64)?.reshape([count])?;
        let slices = IndexedSlices { values: dy.reshape(values)?, indices, dims: self.dims.clone() };
        let dx = if self.densify { Gradient::Dense(slices.to_dense()?) } else { slices.into() };
        Ok(vec![Some(dx), None])
    }
}

impl Listed for GatherRows {
    fn samples() -> Vec<Sample> {
        let sample = |dims: &[usize], indices: &[usize], densify| {
            let index = SampleInput::Index { shape: indices.to_vec(), below: dims[0] as i64 };
            Sample::new(GatherRows { dims: dims.into(), densify }, [SampleInput::float(dims), index])
        };
        vec![
            sample(&[4, 2], &[2, 3], false),
            sample(&[4, 2], &[2, 3], true),
            sample(&[1, 1], &[1], true),
            sample(&[4, 2], &[0], false),
            sample(&[0, 2], &[0], true),
        ]
    }
}

/// `y` is 0 of shape `dims` plus `values[i]` at each row `indices[i]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AddRows {
    dims: Shape,
}

impl Op for AddRows {
    fn name(&self) -> &'static str {
        "add_rows"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::inputs(Mask::only(1))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let (values, indices) = (inputs.get(0)?, inputs.get(1)?);
        let fits = values.rank() == self.dims.rank()
            && values.rank() > 0
            && values.shape()[1..] == self.dims[1..]
            && indices.size() == values.shape()[0];
        if !fits {
            let expected = format!("one row of {} for each of the {} indices", self.dims, indices.size());
            return Err(Error::shape("add_rows", "values", values.shape(), expected));
        }
        let rows = row_numbers("add_rows", indices, self.dims[0])?;
        let values = values.clone();
        let y: Result<Tensor> = for_number!("add_rows", values.dtype(), [values], T => {
            let mut y = Tensor::zeros(self.dims.clone(), T::DTYPE)?;
            let values = values.to_contiguous();
            let width: usize = self.dims[1..].iter().product();
            let source = values.as_slice::<T>()?.unwrap_or(&[]);
            let table = y.make_mut::<T>()?;
            for (&row, v) in rows.iter().zip(source.chunks_exact(width.max(1))) {
                table[row * width..(row + 1) * width].iter_mut().zip(v).for_each(|(y, &v)| *y = y.plus(v));
            }
            Ok(y)
        });
        y.map(Computed::from)
    }

    /// `dvalues` are the rows of `dy`.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None, None]) };
        Ok(vec![Some(Gradient::Dense(dy.gather_rows(saved.input(1)?)?)), None])
    }
}

impl Listed for AddRows {
    fn samples() -> Vec<Sample> {
        let sample = |dims: [usize; 2], count: usize| {
            let index = SampleInput::Index { shape: vec![count], below: dims[0] as i64 };
            Sample::new(AddRows { dims: dims.into() }, [SampleInput::float(&[count, dims[1]]), index])
        };
        vec![sample([4, 2], 5), sample([1, 1], 1), sample([4, 2], 0), sample([0, 2], 0)]
    }
}

impl IndexedSlices {
    /// The slices added into zeros, half floats in `f32` and then rounded once.
    ///
    /// # Errors
    /// A row number is out of range, or the values do not fit.
    pub fn to_dense(&self) -> Result<Tensor> {
        let op = AddRows { dims: self.dims.clone() };
        Ok(apply_many(op, [&self.values, &self.indices])?.remove(0))
    }
}

impl Tensor {
    /// Rows along axis 0: `y[i.., j..] = x[indices[i..], j..]`. The gradient of `x` is sparse.
    ///
    /// # Errors
    /// `indices` is not of an integer dtype, or an index lies outside `0..x.dim(0)`.
    pub fn gather_rows(&self, indices: &Tensor) -> Result<Tensor> {
        apply(GatherRows { dims: self.shape().clone(), densify: false }, [self, indices])
    }

    /// The same as [`gather_rows`](Tensor::gather_rows), with a dense gradient.
    ///
    /// # Errors
    /// As there.
    pub fn gather_rows_densely(&self, indices: &Tensor) -> Result<Tensor> {
        apply(GatherRows { dims: self.shape().clone(), densify: true }, [self, indices])
    }
}
