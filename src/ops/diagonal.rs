//! Diagonals and triangles of matrices, which are the last two axes.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

use super::select::kept_where;
use super::slice::Slice;

/// Rows and columns of the matrices.
fn sides(op: &'static str, x: &Tensor) -> Result<(usize, usize)> {
    match x.shape().dims() {
        [.., rows, columns] => Ok((*rows, *columns)),
        _ => Err(Error::shape(op, "x", x.shape(), "rank 2 or more")),
    }
}

/// For each place whether its column is at most `diagonal` to the right of its row.
fn at_most(rows: usize, columns: usize, diagonal: i64) -> Result<Tensor> {
    let numbers = |n: usize| Tensor::arange(0.0, n as f64, 1.0, DType::I64);
    let last = (numbers(rows)? + diagonal)?.reshape([rows, 1])?;
    numbers(columns)?.less_equal(&last)
}

impl Tensor {
    /// `y[.., i] = x[.., i, i]`: the diagonal of each matrix.
    ///
    /// # Errors
    /// The rank is below 2.
    pub fn diag_part(&self) -> Result<Tensor> {
        let (rows, columns) = sides("diag_part", self)?;
        let outer = &self.shape()[..self.rank() - 2];
        let size = rows.min(columns);
        // In row-major order, the diagonal is every element number `columns + 1`.
        let flat = self.reshape([outer, &[rows * columns]].concat())?;
        let stop = size * columns + size;
        let mut slices = vec![Slice::step(1); flat.rank()];
        slices[outer.len()] = Slice::from(..stop.min(rows * columns) as isize).by(columns as isize + 1);
        flat.slice(&slices)
    }

    /// The sum of the diagonal of each matrix.
    ///
    /// # Errors
    /// The rank is below 2, or the dtype is bool.
    pub fn trace(&self) -> Result<Tensor> {
        sides("trace", self)?;
        self.diag_part()?.sum_axes(-1, false)
    }

    /// The lower triangle of each matrix: 0 where the column is more than `diagonal` to the right of the row.
    ///
    /// # Errors
    /// The rank is below 2.
    pub fn tril(&self, diagonal: i64) -> Result<Tensor> {
        let (rows, columns) = sides("tril", self)?;
        kept_where(&at_most(rows, columns, diagonal)?, self)
    }

    /// The upper triangle of each matrix: 0 where the column is less than `diagonal` to the right of the row.
    ///
    /// # Errors
    /// The rank is below 2.
    pub fn triu(&self, diagonal: i64) -> Result<Tensor> {
        let (rows, columns) = sides("triu", self)?;
        kept_where(&at_most(rows, columns, diagonal.saturating_sub(1))?.logical_not()?, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagonals_of_wide_tall_and_stacked_matrices() -> Result<()> {
        let x = Tensor::arange(0.0, 12.0, 1.0, DType::I32)?;
        assert_eq!(x.reshape([3, 4])?.diag_part()?.to_vec::<i32>()?, [0, 5, 10]);
        assert_eq!(x.reshape([4, 3])?.diag_part()?.to_vec::<i32>()?, [0, 4, 8]);
        assert_eq!(x.reshape([3, 2, 2])?.trace()?.to_vec::<i32>()?, [3, 11, 19]);
        assert_eq!(Tensor::zeros([2, 0, 3], DType::F32)?.diag_part()?.shape(), &[2, 0]);
        assert!(Tensor::from([1.0f32]).diag_part().is_err());
        Ok(())
    }

    #[test]
    fn triangles_drop_even_nan() -> Result<()> {
        let x = Tensor::from([[1.0f32, f32::NAN], [3.0, 4.0]]);
        assert_eq!(x.tril(0)?.to_vec::<f32>()?, [1.0, 0.0, 3.0, 4.0]);
        assert_eq!(x.t()?.triu(0)?.to_vec::<f32>()?, [1.0, 3.0, 0.0, 4.0]);
        let x = Tensor::ones([2, 3], DType::I32)?;
        assert_eq!(x.tril(-1)?.to_vec::<i32>()?, [0, 0, 0, 1, 0, 0]);
        assert_eq!(x.triu(1)?.to_vec::<i32>()?, [0, 1, 1, 0, 0, 1]);
        assert_eq!(x.triu(i64::MIN)?.to_vec::<i32>()?, [1; 6]);
        Ok(())
    }
}
