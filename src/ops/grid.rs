//! Outer products and grids of coordinates, made of views and broadcasts.

use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor, checked_size};

/// How the axes of [`Tensor::meshgrid`] lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Indexing {
    /// As in pictures: the first tensor runs along axis 1, the second along axis 0, the others along their own.
    #[default]
    XY,
    /// As in matrices: tensor number `i` runs along axis `i`.
    IJ,
}

impl Tensor {
    /// `y[i, j] = a[i] b[j]`; tensors of other ranks are taken as one row of elements.
    ///
    /// ```
    /// use couplet::Tensor;
    /// let y = Tensor::from([1, 2]).outer(&Tensor::from([3, 4, 5]))?;
    /// assert_eq!(y.to_vec::<i32>()?, [3, 4, 5, 6, 8, 10]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// The dtypes differ or are bool, or the result is too large.
    pub fn outer(&self, other: &Tensor) -> Result<Tensor> {
        self.reshape([self.size(), 1])? * other.reshape([1, other.size()])?
    }

    /// The coordinates of the points of a grid: a tensor of its whole shape for each of `tensors`, which holds the
    /// coordinates along one axis. The results are views, so they take no memory.
    ///
    /// ```
    /// use couplet::Tensor;
    /// use couplet::ops::Indexing;
    /// let (x, y) = (Tensor::from([1, 2, 3]), Tensor::from([10, 20]));
    /// let grid = Tensor::meshgrid(&[&x, &y], Indexing::XY)?;
    /// assert_eq!(grid[0].to_vec::<i32>()?, [1, 2, 3, 1, 2, 3]);
    /// assert_eq!(grid[1].to_vec::<i32>()?, [10, 10, 10, 20, 20, 20]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// A tensor is not of rank 1, or the grid is too large.
    pub fn meshgrid(tensors: &[&Tensor], indexing: Indexing) -> Result<Vec<Tensor>> {
        // Which axis each tensor runs along.
        let axis = |i: usize| if indexing == Indexing::XY && i < 2 && tensors.len() > 1 { 1 - i } else { i };
        let mut shape = vec![1; tensors.len()];
        for (i, x) in tensors.iter().enumerate() {
            if x.rank() != 1 {
                return Err(Error::shape("meshgrid", format!("tensor {i}"), x.shape(), "rank 1"));
            }
            shape[axis(i)] = x.size();
        }
        let shape = Shape::from(shape);
        let spread = |(i, x): (usize, &&Tensor)| {
            checked_size("meshgrid", &shape, x.dtype())?;
            let along: Shape = (0..shape.rank()).map(|a| if a == axis(i) { x.size() } else { 1 }).collect();
            x.reshape(along)?.broadcast_to(shape.clone())
        };
        tensors.iter().enumerate().map(spread).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::autodiff::check_gradients;

    #[test]
    fn outer_products_take_any_rank_and_none_of_size_zero_fails() -> Result<()> {
        let y = Tensor::from([[1, 2], [3, 4]]).outer(&Tensor::from(5))?;
        assert_eq!((y.shape().dims(), y.to_vec::<i32>()?), (&[4, 1][..], vec![5, 10, 15, 20]));
        assert_eq!(Tensor::zeros([0], DType::F32)?.outer(&Tensor::zeros([3], DType::F32)?)?.shape(), &[0, 3]);
        assert!(Tensor::from([1]).outer(&Tensor::from([1.0f32])).is_err());
        let (a, b) = (Tensor::from([1.0f64, -2.0]), Tensor::from([0.5f64, 3.0, -1.0]));
        check_gradients(|x| x[0].outer(&x[1]), &[&a, &b], 1e-6)
    }

    #[test]
    fn three_axes_lie_as_the_indexing_says() -> Result<()> {
        let (a, b, c) = (Tensor::from([1, 2]), Tensor::from([3, 4, 5]), Tensor::from([6]));
        for (indexing, shape) in [(Indexing::IJ, [2, 3, 1]), (Indexing::XY, [3, 2, 1])] {
            let grid = Tensor::meshgrid(&[&a, &b, &c], indexing)?;
            assert!(grid.iter().all(|g| g.shape() == &shape));
            let [a, b, c] = [0, 1, 2].map(|i| grid[i].to_vec::<i32>().unwrap());
            let points: Vec<_> = a.into_iter().zip(b).zip(c).collect();
            let mut want: Vec<_> = (1..3).flat_map(|a| (3..6).map(move |b| ((a, b), 6))).collect();
            if indexing == Indexing::XY {
                want.sort_by_key(|&((a, b), _)| (b, a));
            }
            assert_eq!(points, want);
        }
        Ok(())
    }

    #[test]
    fn one_tensor_or_none_is_a_grid_too() -> Result<()> {
        assert!(Tensor::meshgrid(&[], Indexing::XY)?.is_empty());
        assert_eq!(Tensor::meshgrid(&[&Tensor::from([1, 2])], Indexing::XY)?[0].to_vec::<i32>()?, [1, 2]);
        assert!(Tensor::meshgrid(&[&Tensor::from(1)], Indexing::IJ).is_err());
        Ok(())
    }
}
