//! A tensor cut into pieces.

use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor};

/// Cuts axis `dim` into consecutive runs, and gives each run one of `shapes` in place of the axis: as many elements as the
/// shape has. One vector of a controller becomes all that it says to the heads.
///
/// ```
/// use couplet::nets::dnc::segment_dim;
/// use couplet::prelude::*;
/// let x = Tensor::arange(0.0, 10.0, 1.0, DType::F32)?.reshape([2, 5])?;
/// let parts = segment_dim(&x, 1, &[&[2], &[3, 1]])?;
/// assert_eq!((parts[0].shape(), parts[1].shape()), (&[2, 2].into(), &[2, 3, 1].into()));
/// assert_eq!(parts[1].to_vec::<f32>()?, [2.0, 3.0, 4.0, 7.0, 8.0, 9.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `dim` is out of range, or the shapes do not take all elements of the axis.
pub fn segment_dim(x: &Tensor, dim: isize, shapes: &[&[usize]]) -> Result<Vec<Tensor>> {
    const OP: &str = "segment_dim";
    let rank = x.rank() as isize;
    if !(-rank..rank).contains(&dim) {
        return Err(Error::Axis { op: OP, axis: dim, rank: x.rank() });
    }
    let axis = dim.rem_euclid(rank) as usize;
    let size = |shape: &&[usize]| shape.iter().try_fold(1usize, |size, &dim| size.checked_mul(dim));
    let sizes: Option<Vec<usize>> = shapes.iter().map(size).collect();
    let total =
        sizes.as_ref().and_then(|sizes| sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size)));
    let (Some(sizes), true) = (sizes, total == Some(x.shape()[axis])) else {
        let expected = format!("shapes that take the {} elements of axis {dim}", x.shape()[axis]);
        return Err(Error::argument(OP, "shapes", format!("{shapes:?}"), expected));
    };
    let parts = x.split(&sizes, dim)?;
    let reshaped = parts.iter().zip(shapes).map(|(part, shape)| {
        let (before, after) = (&x.shape()[..axis], &x.shape()[axis + 1..]);
        part.reshape([before, shape, after].concat().into_iter().collect::<Shape>())
    });
    reshaped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn axes_before_and_after_stay_and_negative_ones_count_from_the_end() -> Result<()> {
        for (shape, dim) in
            [(vec![6], 0isize), (vec![6], -1), (vec![2, 6], -1), (vec![6, 3, 4], 0), (vec![2, 5, 6, 3], -2)]
        {
            let x = Tensor::ones(shape.clone(), DType::F32)?;
            let axis = dim.rem_euclid(shape.len() as isize) as usize;
            let parts = segment_dim(&x, dim, &[&[], &[2, 2], &[1]])?;
            let want = |middle: &[usize]| [&shape[..axis], middle, &shape[axis + 1..]].concat();
            let got: Vec<Vec<usize>> = parts.iter().map(|part| part.shape().to_vec()).collect();
            assert_eq!(got, [want(&[]), want(&[2, 2]), want(&[1])]);
        }
        Ok(())
    }

    #[test]
    fn an_axis_out_of_range_and_shapes_of_another_size_are_refused() {
        let x = Tensor::ones([2, 5], DType::F32).unwrap();
        for dim in [2, -3] {
            assert!(segment_dim(&x, dim, &[&[5]]).unwrap_err().to_string().contains("segment_dim"));
        }
        for shapes in [&[&[4][..]][..], &[&[usize::MAX, 2], &[5]], &[]] {
            assert!(segment_dim(&x, 1, shapes).unwrap_err().to_string().contains("5 elements"));
        }
    }
}
