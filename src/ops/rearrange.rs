//! Tiling, repeating, rolling and taking apart, made of views, broadcasts and concatenation.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor, checked_size, resolve_axis};

impl Tensor {
    /// The tensor `multiples[axis]` times after itself along each axis.
    ///
    /// # Errors
    /// There is not one number for each axis, or the result is too large.
    pub fn tile(&self, multiples: &[usize]) -> Result<Tensor> {
        if multiples.len() != self.rank() {
            let got = format!("{multiples:?}");
            return Err(Error::argument("tile", "multiples", got, format!("{} numbers", self.rank())));
        }
        let dims = || self.shape().iter().copied().zip(multiples.iter().copied());
        let to: Option<Vec<usize>> = dims().map(|(d, m)| d.checked_mul(m)).collect();
        let to =
            to.ok_or_else(|| Error::argument("tile", "multiples", format!("{multiples:?}"), "smaller ones"))?;
        let single: Shape = dims().flat_map(|(d, _)| [1, d]).collect();
        let many: Shape = dims().flat_map(|(d, m)| [m, d]).collect();
        self.reshape(single)?.broadcast_to(many)?.reshape(to)
    }

    /// Each element along `axis` `repeats` times in a row.
    ///
    /// # Errors
    /// The axis is out of range, or the result is too large.
    pub fn repeat(&self, repeats: usize, axis: isize) -> Result<Tensor> {
        let axis = resolve_axis("repeat", axis, self.rank())?;
        let mut to = self.shape().to_vec();
        let Some(dim) = to[axis].checked_mul(repeats) else {
            return Err(Error::argument("repeat", "repeats", repeats, "a smaller one"));
        };
        let mut many = to.clone();
        many.insert(axis + 1, repeats);
        to[axis] = dim;
        self.expand_dims(axis as isize + 1)?.broadcast_to(many)?.reshape(to)
    }

    /// The elements moved along `axis` by `shift` places, those beyond the end back to the beginning.
    ///
    /// # Errors
    /// The axis is out of range.
    pub fn roll(&self, shift: isize, axis: isize) -> Result<Tensor> {
        let axis = resolve_axis("roll", axis, self.rank())?;
        let dim = self.shape()[axis];
        let shift = if dim == 0 { 0 } else { shift.rem_euclid(dim as isize) as usize };
        if shift == 0 {
            return Ok(self.clone());
        }
        let axis = axis as isize;
        let (front, back) = (self.narrow(axis, dim - shift, shift)?, self.narrow(axis, 0, dim - shift)?);
        Tensor::concat(&[&front, &back], axis)
    }

    /// Parts of the given sizes along `axis`, in their order, as views.
    ///
    /// ```
    /// use couplet::Tensor;
    /// let parts = Tensor::from([1, 2, 3]).split(&[1, 2], 0)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [2, 3]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// The axis is out of range, or the sizes do not add up to its size.
    pub fn split(&self, sizes: &[usize], axis: isize) -> Result<Vec<Tensor>> {
        let position = resolve_axis("split", axis, self.rank())?;
        let dim = self.shape()[position];
        let total = sizes.iter().try_fold(0usize, |sum, &s| sum.checked_add(s));
        if total != Some(dim) {
            let got = format!("{sizes:?}");
            return Err(Error::argument(
                "split",
                "sizes",
                got,
                format!("sizes that add up to {dim}, that of axis {axis}"),
            ));
        }
        let mut start = 0;
        let part = |&size: &usize| {
            start += size;
            self.narrow(axis, start - size, size)
        };
        sizes.iter().map(part).collect()
    }

    /// `count` parts of one size along `axis`, as views.
    ///
    /// # Errors
    /// The axis is out of range, or its size is not a multiple of `count`.
    pub fn chunk(&self, count: usize, axis: isize) -> Result<Vec<Tensor>> {
        let dim = self.shape()[resolve_axis("chunk", axis, self.rank())?];
        if count == 0 || !dim.is_multiple_of(count) {
            return Err(Error::argument(
                "chunk",
                "count",
                count,
                format!("a divisor of {dim}, the size of axis {axis}"),
            ));
        }
        // An axis without elements has as many parts as one likes, but the list of them must fit in memory.
        checked_size("chunk", &Shape::from([count]), DType::I64)?;
        self.split(&vec![dim / count; count], axis)
    }

    /// The sum of all tensors, which have one shape and dtype.
    ///
    /// # Errors
    /// There are none, they differ in shape or dtype, or the dtype is bool.
    pub fn add_n(tensors: &[&Tensor]) -> Result<Tensor> {
        let Some((first, rest)) = tensors.split_first() else {
            return Err(Error::argument("add_n", "tensors", "empty", "at least one tensor"));
        };
        let mut y = (*first).clone();
        for (i, x) in rest.iter().enumerate() {
            if x.shape() != first.shape() {
                let expected = format!("{}, that of tensor 0", first.shape());
                return Err(Error::shape("add_n", format!("tensor {}", i + 1), x.shape(), expected));
            }
            y = (y + *x)?;
        }
        Ok(y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_stand_in_the_order_of_their_kind() -> Result<()> {
        let x = Tensor::from([[1, 2], [3, 4]]);
        assert_eq!(x.tile(&[1, 2])?.to_vec::<i32>()?, [1, 2, 1, 2, 3, 4, 3, 4]);
        assert_eq!(x.repeat(2, 1)?.to_vec::<i32>()?, [1, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(x.repeat(2, 0)?.to_vec::<i32>()?, [1, 2, 1, 2, 3, 4, 3, 4]);
        assert_eq!(x.tile(&[0, 3])?.shape(), &[0, 6]);
        assert!(
            x.tile(&[2]).is_err() && x.tile(&[usize::MAX, 1]).is_err() && x.repeat(usize::MAX, 0).is_err()
        );
        Ok(())
    }

    #[test]
    fn rolling_goes_round_in_both_directions() -> Result<()> {
        let x = Tensor::from([1, 2, 3, 4]);
        assert_eq!(x.roll(1, 0)?.to_vec::<i32>()?, [4, 1, 2, 3]);
        assert_eq!(x.roll(-6, 0)?.to_vec::<i32>()?, [3, 4, 1, 2]);
        assert_eq!(Tensor::zeros([0], DType::F32)?.roll(3, 0)?.shape(), &[0]);
        Ok(())
    }

    #[test]
    fn parts_make_up_the_whole() -> Result<()> {
        let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
        let parts = x.split(&[0, 2, 1], 1)?;
        assert_eq!(
            Tensor::concat(&parts.iter().collect::<Vec<_>>(), 1)?.to_vec::<i32>()?,
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(x.chunk(3, 1)?.len(), 3);
        assert!(x.split(&[1, 1], 1).is_err() && x.chunk(2, 1).is_err() && x.chunk(0, 0).is_err());
        let empty = Tensor::zeros([0, 2], DType::F32)?;
        assert_eq!(empty.chunk(3, 0)?.len(), 3);
        assert!(empty.chunk(1 << 50, 0).is_err() && empty.chunk(usize::MAX, 0).is_err());
        Ok(())
    }

    #[test]
    fn sums_of_many_want_one_shape() -> Result<()> {
        let x = Tensor::from([1.0f32, 2.0]);
        assert_eq!(Tensor::add_n(&[&x, &x, &x])?.to_vec::<f32>()?, [3.0, 6.0]);
        assert!(Tensor::add_n(&[]).is_err() && Tensor::add_n(&[&x, &Tensor::from(1.0f32)]).is_err());
        Ok(())
    }
}
