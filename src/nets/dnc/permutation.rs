//! Rows of indices.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

use super::memory::check;

/// The inverse of each row: `y[b, x[b, i]] = i` for permutations `x` of shape `[batch, length]`, of any integer dtype.
///
/// ```
/// use couplet::{Tensor, nets::dnc::batch_invert_permutation};
/// let y = batch_invert_permutation(&Tensor::from([[2i32, 0, 1]]))?;
/// assert_eq!(y.to_vec::<i32>()?, [1, 2, 0]);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// The rank is not 2, the dtype is no integer, or a row is no permutation.
pub fn batch_invert_permutation(permutations: &Tensor) -> Result<Tensor> {
    const OP: &str = "batch_invert_permutation";
    check(OP, "x", permutations, [("batch", None), ("length", None)])?;
    let dtype = permutations.dtype();
    if dtype.is_float() || dtype == DType::Bool {
        return Err(Error::dtype(OP, "x", dtype, "an integer dtype"));
    }
    // What sorts a permutation is its inverse.
    let inverse = permutations.argsort(1, false)?;
    let sorted = permutations.take_along_axis(&inverse, 1)?.cast(DType::I64)?;
    let numbers = Tensor::arange(0.0, permutations.shape()[1] as f64, 1.0, DType::I64)?;
    if sorted.not_equal(&numbers)?.any()?.item::<bool>()? {
        let expected = format!("each of 0 to {} once", permutations.shape()[1] as i64 - 1);
        return Err(Error::argument(OP, "x", "a row that is no permutation", expected));
    }
    inverse.cast(dtype)
}

/// The values of each row at the indices of the same row: `y[b, i] = values[b, indices[b, i]]`, all of shape
/// `[batch, length]`.
///
/// # Errors
/// The batches differ, a rank is not 2, or an index lies outside the row.
pub fn batch_gather(values: &Tensor, indices: &Tensor) -> Result<Tensor> {
    const OP: &str = "batch_gather";
    check(OP, "values", values, [("batch", None), ("length", None)])?;
    check(OP, "indices", indices, [("batch", Some(values.shape()[0])), ("length", None)])?;
    values.take_along_axis(indices, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inverted_permutation_undoes_what_the_permutation_did() -> Result<()> {
        let permutations = Tensor::from([[3i64, 1, 0, 2], [0, 1, 2, 3]]);
        let values = Tensor::from([[1.0f32, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]);
        let moved = batch_gather(&values, &permutations)?;
        assert_eq!(moved.to_vec::<f32>()?[..4], [4.0, 2.0, 1.0, 3.0]);
        let back = batch_gather(&moved, &batch_invert_permutation(&permutations)?)?;
        assert_eq!(back.to_vec::<f32>()?, values.to_vec::<f32>()?);
        assert_eq!(batch_invert_permutation(&Tensor::zeros([2, 0], DType::I32)?)?.shape(), &[2, 0]);
        Ok(())
    }

    #[test]
    fn rows_that_are_no_permutations_are_refused() {
        for rows in [[[0i32, 0, 2]], [[1, 2, 3]], [[-1, 0, 1]]] {
            let message = batch_invert_permutation(&Tensor::from(rows)).unwrap_err().to_string();
            assert!(message.contains("permutation"), "{message}");
        }
        assert!(batch_invert_permutation(&Tensor::from([[0.0f32]])).is_err());
        assert!(batch_invert_permutation(&Tensor::from([0i32])).is_err());
    }
}
