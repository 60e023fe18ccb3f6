//! Several leading dims as one, and back.

use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor};

/// `x` with its first `num_dims` dims merged into one: `[3, 2, 1]` gives `[6, 1]` for 2. A tensor of a lower rank comes back as
/// it is.
///
/// # Errors
/// `num_dims` is 0.
pub fn merge_leading_dims(x: &Tensor, num_dims: usize) -> Result<Tensor> {
    if num_dims == 0 {
        return Err(Error::argument("merge_leading_dims", "num_dims", num_dims, "1 or more"));
    }
    if num_dims > x.rank() {
        return Ok(x.clone());
    }
    let (merged, rest) = x.shape().split_at(num_dims);
    x.reshape(std::iter::once(merged.iter().product()).chain(rest.iter().copied()).collect::<Shape>())
}

/// `x` with its first dim split into the first `num_dims` dims of `example`, which undoes [`merge_leading_dims`].
///
/// ```
/// use couplet::nn::{merge_leading_dims, split_leading_dim};
/// use couplet::{DType, Tensor};
/// let x = Tensor::zeros([3, 2, 4], DType::F32)?;
/// let merged = merge_leading_dims(&x, 2)?;
/// assert_eq!(merged.shape(), &[6, 4]);
/// assert_eq!(split_leading_dim(&merged.sum_axes(-1, false)?, &x, 2)?.shape(), &[3, 2]);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `x` is a scalar, or its first dim is not the product of those of `example`.
pub fn split_leading_dim(x: &Tensor, example: &Tensor, num_dims: usize) -> Result<Tensor> {
    const OP: &str = "split_leading_dim";
    let leading = &example.shape()[..num_dims.min(example.rank())];
    match x.shape().split_first() {
        Some((&first, rest)) if first == leading.iter().product::<usize>() => {
            x.reshape(leading.iter().chain(rest).copied().collect::<Shape>())
        }
        _ => Err(Error::shape(OP, "x", x.shape(), format!("a first dim that {leading:?} splits"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn dims_merge_and_split() {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32).unwrap();
        for (num_dims, merged) in [(1, &[3, 2, 1][..]), (2, &[6, 1]), (3, &[6]), (4, &[3, 2, 1])] {
            assert_eq!(*merge_leading_dims(&zeros(&[3, 2, 1]), num_dims).unwrap().shape(), *merged);
        }
        assert_eq!(merge_leading_dims(&zeros(&[0, 2, 1]), 2).unwrap().shape(), &[0, 1]);
        assert!(merge_leading_dims(&zeros(&[2]), 0).is_err());
        assert!(split_leading_dim(&zeros(&[5, 1]), &zeros(&[3, 2, 1]), 2).is_err());
        assert!(split_leading_dim(&zeros(&[]), &zeros(&[3, 2, 1]), 2).is_err());
        assert_eq!(split_leading_dim(&zeros(&[6, 1]), &zeros(&[6]), 2).unwrap().shape(), &[6, 1]);
    }
}
