//! Groups of tensors whose rows belong together.

use crate::dtype::for_dtype;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor, take};

use super::order::BatchRows;

/// A tensor, or several whose rows along axis 0 belong together, such as images and their labels.
///
/// Implemented by `Tensor`, by tuples of up to six tensors and by `Vec<Tensor>`; for a struct of your own, pass
/// each of its tensors through `f`:
///
/// ```
/// use couplet::data::{Aligned, Dataset};
/// use couplet::{Result, Tensor};
///
/// struct Digits {
///     images: Tensor,
///     labels: Tensor,
/// }
///
/// impl Aligned for Digits {
///     fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<Self> {
///         Ok(Self { images: f(&self.images)?, labels: f(&self.labels)? })
///     }
/// }
///
/// let train = Dataset::new(Digits { images: Tensor::zeros([10, 784], couplet::DType::F32)?, labels: Tensor::from([0; 10]) })?;
/// for batch in train.batches(5) {
///     assert_eq!(batch?.labels.shape(), &[5]);
/// }
/// # Ok::<(), couplet::Error>(())
/// ```
pub trait Aligned: Sized + Send + Sync + 'static {
    /// The same group with each tensor replaced by what `f` makes of it.
    ///
    /// # Errors
    /// The first error of `f`.
    fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<Self>;
}

impl Aligned for Tensor {
    fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<Self> {
        f(self)
    }
}

impl Aligned for Vec<Tensor> {
    fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<Self> {
        self.iter().map(f).collect()
    }
}

macro_rules! aligned_tuple {
    ($($tensor:ident: $index:tt),*) => {
        impl Aligned for ($($tensor,)*) {
            fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<Self> {
                Ok(($(f(&self.$index)?,)*))
            }
        }
    };
}

aligned_tuple!(Tensor: 0, Tensor: 1);
aligned_tuple!(Tensor: 0, Tensor: 1, Tensor: 2);
aligned_tuple!(Tensor: 0, Tensor: 1, Tensor: 2, Tensor: 3);
aligned_tuple!(Tensor: 0, Tensor: 1, Tensor: 2, Tensor: 3, Tensor: 4);
aligned_tuple!(Tensor: 0, Tensor: 1, Tensor: 2, Tensor: 3, Tensor: 4, Tensor: 5);

/// The tensors in row-major order, so that a row is one piece of memory, and how many rows they all have.
pub(super) fn align<T: Aligned>(tensors: &T) -> Result<(T, usize)> {
    let mut rows = None;
    let mut number = 0;
    let tensors = tensors.map_tensors(&mut |x| {
        let what = format!("tensor {number}");
        let refuse = |expected| Err(Error::shape("dataset", &what, x.shape(), expected));
        number += 1;
        match (x.shape().first(), rows) {
            (None, _) => refuse("rank 1 or more".into()),
            (Some(&dim), Some(rows)) if dim != rows => {
                refuse(format!("{rows} rows along axis 0, as tensor 0 has"))
            }
            (Some(&dim), _) => {
                rows = Some(dim);
                Ok(x.to_contiguous())
            }
        }
    })?;
    let none = || Error::argument("dataset", "tensors", "an empty list", "at least one tensor");
    Ok((tensors, rows.ok_or_else(none)?))
}

/// The rows of a batch: a view where they follow each other, else a copy. No tape sees this.
pub(super) fn take_rows(x: &Tensor, rows: &BatchRows) -> Result<Tensor> {
    let count = rows.places.len();
    let width: usize = x.shape()[1..].iter().product();
    let shape: Shape = std::iter::once(count).chain(x.shape()[1..].iter().copied()).collect();
    let Some(numbers) = rows.permuted() else {
        return Ok(x.view_as(x.offset() + rows.places.start * width, shape, x.strides().clone()));
    };
    for_dtype!(x.dtype(), T => {
        let table = x.as_slice::<T>()?.ok_or_else(|| Error::usage("dataset", "a tensor is not contiguous", "align it"))?;
        let mut y = take::<T>(count * width);
        for (&row, y) in numbers.iter().zip(y.chunks_exact_mut(width.max(1))) {
            y.copy_from_slice(&table[row * width..(row + 1) * width]);
        }
        Ok(Tensor::from_taken(y, shape))
    })
}
