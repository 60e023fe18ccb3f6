//! Gathering and scattering by index along any axis and by position.

use serde::{Deserialize, Serialize};

use crate::dtype::{DType, for_dtype};
use crate::error::{Error, Result};
use crate::kernels::lanes;
use crate::tensor::{Shape, Tensor, resolve_axis, take};

use super::apply;
use super::gradient::{Gradient, IndexedSlices};
use super::op::{Computed, Inputs, Mask, Op, Saved, Saves};
use super::registry::{Listed, Sample, SampleInput};
use super::select::kept_where;
use super::sparse::row_numbers;

/// `y[i..] = ((p[0] dims[1] + p[1]) dims[2] + ..)`, where `p = x[i.., ..]` is a position in `dims`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FlatIndices {
    dims: Vec<usize>,
}

impl Op for FlatIndices {
    fn name(&self) -> &'static str {
        "flat_indices"
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let x = inputs.get(0)?;
        let depth = self.dims.len();
        if x.shape().last() != Some(&depth) {
            let expected = format!("last dim {depth}, one for each indexed axis");
            return Err(Error::shape("flat_indices", "indices", x.shape(), expected));
        }
        if !x.dtype().is_integer() {
            return Err(Error::dtype("flat_indices", "indices", x.dtype(), "an integer dtype"));
        }
        let shape = Shape::from(&x.shape()[..x.rank() - 1]);
        let positions = x.converted(DType::I64)?.to_contiguous();
        let positions = positions.as_slice::<i64>()?.unwrap_or(&[]);
        for (axis, &size) in self.dims.iter().enumerate() {
            let outside = |&&i: &&i64| usize::try_from(i).map_or(true, |i| i >= size);
            if let Some(&index) = positions.iter().skip(axis).step_by(depth).find(outside) {
                let what = format!("index along axis {axis}");
                return Err(Error::Index { op: "flat_indices", what, index, size });
            }
        }
        let mut y = take::<i64>(shape.size());
        lanes::fold(positions, depth, &mut y, |p| {
            p.iter().zip(&self.dims).fold(0, |flat, (&i, &dim)| flat * dim as i64 + i)
        });
        Ok(Tensor::from_taken(y, shape).into())
    }

    fn gradient(&self, _: &Saved, _: &[Option<Tensor>], _: Mask) -> Result<Vec<Option<Gradient>>> {
        Ok(vec![None])
    }
}

impl Listed for FlatIndices {
    fn samples() -> Vec<Sample> {
        let sample = |dims: &[usize], count: usize| {
            let input = SampleInput::Index { shape: vec![count, dims.len()], below: 3 };
            Sample::new(FlatIndices { dims: dims.to_vec() }, [input])
        };
        vec![sample(&[4, 3], 5), sample(&[3], 1), sample(&[0, 3], 0), sample(&[], 2)]
    }
}

/// `y = x`, but `values[i]` at each row `indices[i]`; of repeated rows the last counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SetRows;

impl Op for SetRows {
    fn name(&self) -> &'static str {
        "set_rows"
    }

    fn saves(&self, _: Mask) -> Saves {
        Saves::inputs(Mask::only(1))
    }

    fn forward(&self, inputs: &mut Inputs<'_, '_>) -> Result<Computed> {
        let mut y = inputs.take(0)?;
        let (indices, values) = (inputs.get(1)?, inputs.get(2)?);
        let fits = y.rank() > 0
            && values.rank() == y.rank()
            && values.shape()[1..] == y.shape()[1..]
            && indices.size() == values.shape()[0];
        if !fits {
            let expected = format!("one row of {} for each of the {} indices", y.shape(), indices.size());
            return Err(Error::shape("set_rows", "values", values.shape(), expected));
        }
        if values.dtype() != y.dtype() {
            return Err(Error::dtype(
                "set_rows",
                "values",
                values.dtype(),
                format!("{}, that of x", y.dtype()),
            ));
        }
        let rows = row_numbers("set_rows", indices, y.shape()[0])?;
        let width: usize = y.shape()[1..].iter().product();
        let values = values.to_contiguous();
        for_dtype!(y.dtype(), T => {
            let source = values.as_slice::<T>()?.unwrap_or(&[]);
            let table = y.make_mut::<T>()?;
            for (&row, v) in rows.iter().zip(source.chunks_exact(width.max(1))) {
                table[row * width..(row + 1) * width].copy_from_slice(v);
            }
        });
        Ok(y.into())
    }

    /// `dx` is `dy` with 0 in the rows that were set; `dvalues` are those rows of `dy`, for the last of repeated ones.
    fn gradient(&self, saved: &Saved, dy: &[Option<Tensor>], needs: Mask) -> Result<Vec<Option<Gradient>>> {
        let Some(Some(dy)) = dy.first() else { return Ok(vec![None, None, None]) };
        let indices = saved.input(1)?;
        let count = indices.size();
        let mut shape = dy.shape().clone();
        shape.dims_mut()[0] = count;
        let dx = if needs.has(0) {
            Some(apply(SetRows, [dy, indices, &Tensor::zeros(shape.clone(), dy.dtype())?])?)
        } else {
            None
        };
        let dvalues = if needs.has(2) { Some(self.rows(dy, indices, shape)?) } else { None };
        Ok(vec![dx.map(Gradient::Dense), None, dvalues.map(Gradient::Dense)])
    }
}

impl SetRows {
    /// The rows of `dy` that were set, 0 where a later row took the place.
    fn rows(&self, dy: &Tensor, indices: &Tensor, shape: Shape) -> Result<Tensor> {
        let numbers = Tensor::arange(0.0, indices.size() as f64, 1.0, DType::I64)?;
        let flat = indices.reshape([indices.size()])?;
        let setter = apply(SetRows, [&Tensor::zeros([dy.shape()[0]], DType::I64)?, &flat, &numbers])?;
        let counts = setter.gather_rows(&flat)?.equal(&numbers)?;
        let column: Shape = (0..shape.rank()).map(|a| if a == 0 { indices.size() } else { 1 }).collect();
        kept_where(&counts.reshape(column)?, &dy.gather_rows_densely(&flat)?.reshape(shape)?)
    }
}

impl Listed for SetRows {
    fn samples() -> Vec<Sample> {
        let sample = |rows: &[usize], values: &[usize]| {
            let indices = SampleInput::Index { shape: vec![values[0]], below: rows[0] as i64 };
            Sample::new(SetRows, [SampleInput::float(rows), indices, SampleInput::float(values)])
        };
        vec![sample(&[5, 2], &[3, 2]), sample(&[2], &[4])]
    }
}

impl Tensor {
    /// `y[.., i.., ..] = x[.., indices[i..], ..]`: `axis` is replaced by the axes of `indices`.
    ///
    /// Along axis 0 this is [`gather_rows`](Tensor::gather_rows), with a sparse gradient; else the gradient is dense.
    ///
    /// # Errors
    /// The axis is out of range, `indices` is not of an integer dtype, or an index lies outside the axis.
    pub fn gather(&self, indices: &Tensor, axis: isize) -> Result<Tensor> {
        let axis = resolve_axis("gather", axis, self.rank())?;
        if axis == 0 {
            return self.gather_rows(indices);
        }
        let first: Vec<isize> =
            [axis].into_iter().chain((0..self.rank()).filter(|&a| a != axis)).map(|a| a as isize).collect();
        let y = self.transpose(&first)?.gather_rows_densely(indices)?;
        // The axes of the indices stand in front: those of `x` before the axis go before them.
        let (inner, front) = (indices.rank(), axis);
        let order = (inner..inner + front).chain(0..inner).chain(inner + front..y.rank());
        y.transpose(&order.map(|a| a as isize).collect::<Vec<_>>())
    }

    /// `y[i.., ..] = x[p, ..]`, where `p = indices[i.., ..]` is a position in the first axes of `x`.
    ///
    /// # Errors
    /// `indices` is not of an integer dtype or is a scalar, its last dim is above the rank of `self`, or a position
    /// lies outside.
    pub fn gather_nd(&self, indices: &Tensor) -> Result<Tensor> {
        let depth = position_depth("gather_nd", indices, self.rank())?;
        let flat = apply(FlatIndices { dims: self.shape()[..depth].to_vec() }, [indices])?;
        self.rows_of(depth)?.gather_rows_densely(&flat)
    }

    /// The first `depth` axes as one.
    fn rows_of(&self, depth: usize) -> Result<Tensor> {
        let rows = self.shape()[..depth].iter().product();
        self.reshape(std::iter::once(rows).chain(self.shape()[depth..].iter().copied()).collect::<Shape>())
    }

    /// `self`, values of shape `[i.., ..]`, added into zeros of shape `shape`, each at the position
    /// `indices[i.., ..]` in its first axes. Repeated positions add up.
    ///
    /// # Errors
    /// The shapes do not fit together, `indices` is not of an integer dtype, or a position lies outside.
    pub fn scatter_nd(&self, indices: &Tensor, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        let (flat, values) = self.flat_updates("scatter_nd", indices, &shape)?;
        let depth = position_depth("scatter_nd", indices, shape.rank())?;
        let rows = shape[..depth].iter().product();
        let dims: Shape = std::iter::once(rows).chain(shape[depth..].iter().copied()).collect();
        IndexedSlices { values, indices: flat, dims }.to_dense()?.reshape(shape)
    }

    /// `self` plus `updates` at the positions `indices`, as in [`scatter_nd`](Tensor::scatter_nd).
    ///
    /// # Errors
    /// As there, or the dtypes differ.
    pub fn tensor_scatter_add(&self, indices: &Tensor, updates: &Tensor) -> Result<Tensor> {
        self + updates.scatter_nd(indices, self.shape().clone())?
    }

    /// `self` with `updates` in the place of what stood at the positions `indices`; of repeated positions the last
    /// counts, and it alone gets a gradient.
    ///
    /// # Errors
    /// As for [`scatter_nd`](Tensor::scatter_nd), or the dtypes differ.
    pub fn tensor_scatter_update(&self, indices: &Tensor, updates: &Tensor) -> Result<Tensor> {
        let (flat, values) = updates.flat_updates("tensor_scatter_update", indices, self.shape())?;
        let depth = position_depth("tensor_scatter_update", indices, self.rank())?;
        apply(SetRows, [&self.rows_of(depth)?, &flat, &values])?.reshape(self.shape().clone())
    }

    /// Row numbers `[n]` and rows `[n, ..]` of updates of a tensor of shape `into`.
    fn flat_updates(&self, op: &'static str, indices: &Tensor, into: &Shape) -> Result<(Tensor, Tensor)> {
        let depth = position_depth(op, indices, into.rank())?;
        let outer = &indices.shape()[..indices.rank() - 1];
        let expected: Shape = outer.iter().chain(&into[depth..]).copied().collect();
        if self.shape() != &expected {
            let expected = format!("{expected} for indices {} into {into}", indices.shape());
            return Err(Error::shape(op, "updates", self.shape(), expected));
        }
        let flat = apply(FlatIndices { dims: into[..depth].to_vec() }, [indices])?;
        let count = flat.size();
        let rows: Shape = std::iter::once(count).chain(into[depth..].iter().copied()).collect();
        Ok((flat.reshape([count])?, self.reshape(rows)?))
    }

    /// Rows `y[n, ..]` of `x` at the positions in its first axes where `mask` holds, in row-major order.
    ///
    /// # Errors
    /// `mask` is not bool or a scalar, or `self` has not its shape in front.
    pub fn boolean_mask(&self, mask: &Tensor) -> Result<Tensor> {
        if mask.dtype() != DType::Bool {
            return Err(Error::dtype("boolean_mask", "the mask", mask.dtype(), "bool"));
        }
        let depth = mask.rank();
        if depth == 0 || depth > self.rank() || mask.shape()[..] != self.shape()[..depth] {
            let expected = format!("the first dims of x, {}, at least one", self.shape());
            return Err(Error::shape("boolean_mask", "the mask", mask.shape(), expected));
        }
        self.gather_nd(&mask.where_indices()?)
    }

    /// `y[s, ..]` is the sum of the `x[i.., ..]` with `segments[i..] = s`, for `s` in `0..count`; 0 where there are none.
    ///
    /// # Errors
    /// `segments` is not of an integer dtype or holds a number outside `0..count`, or its shape is not that of the first
    /// axes of `self`.
    pub fn segment_sum(&self, segments: &Tensor, count: usize) -> Result<Tensor> {
        let depth = segments.rank();
        if depth > self.rank() || segments.shape()[..] != self.shape()[..depth] {
            let expected = format!("the first dims of x, {}", self.shape());
            return Err(Error::shape("segment_sum", "segments", segments.shape(), expected));
        }
        let dims: Shape = std::iter::once(count).chain(self.shape()[depth..].iter().copied()).collect();
        let indices = segments.reshape([segments.size()])?;
        IndexedSlices { values: self.rows_of(depth)?, indices, dims }.to_dense()
    }
}

/// Number of axes that a position in `indices` names.
fn position_depth(op: &'static str, indices: &Tensor, rank: usize) -> Result<usize> {
    match indices.shape().last() {
        Some(&depth) if depth <= rank => Ok(depth),
        _ => {
            let expected = format!("last dim at most {rank}, one for each indexed axis");
            Err(Error::shape(op, "indices", indices.shape(), expected))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GradientTape;

    #[test]
    fn gather_puts_the_axes_of_the_indices_in_place_of_the_axis() -> Result<()> {
        let x = Tensor::arange(0.0, 24.0, 1.0, DType::I32)?.reshape([2, 3, 4])?;
        let y = x.gather(&Tensor::from([[2i64, 0]]), 1)?;
        assert_eq!(y.shape(), &[2, 1, 2, 4]);
        let expected = [8, 9, 10, 11, 0, 1, 2, 3, 20, 21, 22, 23, 12, 13, 14, 15];
        assert_eq!(y.to_vec::<i32>()?, expected);
        assert_eq!(x.gather(&Tensor::from(3i32), -1)?.to_vec::<i32>()?, [3, 7, 11, 15, 19, 23]);
        assert!(x.gather(&Tensor::from([3i64]), 1).is_err());
        Ok(())
    }

    #[test]
    fn positions_may_name_some_axes_all_or_none() -> Result<()> {
        let x = Tensor::from([[1, 2], [3, 4]]);
        assert_eq!(x.gather_nd(&Tensor::from([[1i64, 0], [0, 1]]))?.to_vec::<i32>()?, [3, 2]);
        assert_eq!(x.gather_nd(&Tensor::from([[1i64]]))?.to_vec::<i32>()?, [3, 4]);
        assert_eq!(x.gather_nd(&Tensor::zeros([3, 0], DType::I64)?)?.shape(), &[3, 2, 2]);
        let message = x.gather_nd(&Tensor::from([[0i64, 2]])).unwrap_err().to_string();
        assert!(message.contains("axis 1 2 is out of range"), "{message}");
        assert!(
            x.gather_nd(&Tensor::from([[0i64, 0, 0]])).is_err() && x.gather_nd(&Tensor::from(0i64)).is_err()
        );
        Ok(())
    }

    #[test]
    fn the_last_of_repeated_updates_counts_and_gets_the_gradient() -> Result<()> {
        let (x, u) = (Tensor::from([1.0f64, 2.0, 3.0]), Tensor::from([10.0f64, 20.0, 30.0]));
        let indices = Tensor::from([[2i64], [0], [2]]);
        let tape = GradientTape::new();
        tape.watch(&x);
        tape.watch(&u);
        let y = x.tensor_scatter_update(&indices, &u)?;
        assert_eq!(y.to_vec::<f64>()?, [20.0, 2.0, 30.0]);
        let g = tape.gradient(&y.sum()?, &[&x, &u])?;
        let list = |i: usize| g[i].as_ref().unwrap().to_dense().unwrap().to_vec::<f64>().unwrap();
        assert_eq!((list(0), list(1)), (vec![0.0, 1.0, 0.0], vec![0.0, 1.0, 1.0]));
        assert_eq!(x.tensor_scatter_add(&indices, &u)?.to_vec::<f64>()?, [21.0, 2.0, 43.0]);
        Ok(())
    }

    #[test]
    fn masks_choose_rows_and_segments_add_them() -> Result<()> {
        let x = Tensor::from([[1, 2], [3, 4], [5, 6]]);
        assert_eq!(x.boolean_mask(&Tensor::from([true, false, true]))?.to_vec::<i32>()?, [1, 2, 5, 6]);
        assert_eq!(x.boolean_mask(&x.greater(4)?)?.to_vec::<i32>()?, [5, 6]);
        assert_eq!(x.boolean_mask(&Tensor::from([false; 3]))?.shape(), &[0, 2]);
        assert!(x.boolean_mask(&Tensor::from([true])).is_err() && x.boolean_mask(&x).is_err());
        assert_eq!(x.segment_sum(&Tensor::from([1i64, 0, 1]), 3)?.to_vec::<i32>()?, [3, 4, 6, 8, 0, 0]);
        assert!(x.segment_sum(&Tensor::from([1i64, 0, 3]), 3).is_err());
        Ok(())
    }

    #[test]
    fn updates_of_another_shape_are_refused() {
        let u = Tensor::from([[1.0f32, 2.0]]);
        let message = u.scatter_nd(&Tensor::from([[0i64], [1]]), [4, 2]).unwrap_err().to_string();
        assert!(message.contains("[2, 2]") && message.contains("[4, 2]"), "{message}");
        assert!(u.scatter_nd(&Tensor::from([[4i64]]), [4, 2]).is_err());
        assert!(u.scatter_nd(&Tensor::from([[0.5f32]]), [4, 2]).is_err());
    }
}
