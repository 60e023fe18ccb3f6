//! Conversions from and to `ndarray`, vectors and numbers, without copies where memory allows.

use ndarray::{Array, ArrayD, ArrayViewD, Axis, Dimension, IxDyn, ShapeBuilder};

use crate::dtype::Element;
use crate::error::{Error, Result};

use super::{Buffer, Header, Memory, Shape, Strides, Tensor, ValueId};

impl<T: Element, D: Dimension> From<Array<T, D>> for Tensor {
    /// Takes the array's memory as it is, whatever its layout; nothing is copied.
    fn from(array: Array<T, D>) -> Self {
        let shape = Shape::from(array.shape());
        let strides = Strides::new(array.strides());
        let (data, offset) = array.into_raw_vec_and_offset();
        let memory = Memory::Own(Buffer::foreign(data));
        Tensor::of(Header { memory, offset: offset.unwrap_or(0), shape, strides, id: ValueId::new() })
    }
}

impl<T: Element> From<T> for Tensor {
    fn from(value: T) -> Self {
        Tensor::from_foreign(vec![value], Shape::from([]))
    }
}

impl<T: Element> From<Vec<T>> for Tensor {
    fn from(data: Vec<T>) -> Self {
        let shape = Shape::from([data.len()]);
        Tensor::from_foreign(data, shape)
    }
}

impl<T: Element> From<&[T]> for Tensor {
    fn from(data: &[T]) -> Self {
        Tensor::from(data.to_vec())
    }
}

impl<T: Element, const N: usize> From<[T; N]> for Tensor {
    fn from(data: [T; N]) -> Self {
        Tensor::from(data.to_vec())
    }
}

impl<T: Element, const N: usize, const M: usize> From<[[T; M]; N]> for Tensor {
    fn from(data: [[T; M]; N]) -> Self {
        Tensor::from_foreign(data.concat(), Shape::from([N, M]))
    }
}

impl<T: Element, const N: usize, const M: usize, const L: usize> From<[[[T; L]; M]; N]> for Tensor {
    fn from(data: [[[T; L]; M]; N]) -> Self {
        Tensor::from_foreign(data.concat().concat(), Shape::from([N, M, L]))
    }
}

impl From<&Tensor> for Tensor {
    fn from(tensor: &Tensor) -> Self {
        tensor.clone()
    }
}

impl Tensor {
    /// The elements as an `ndarray` view of the same memory.
    ///
    /// # Errors
    /// The dtype is not `T`.
    pub fn array<T: Element>(&self) -> Result<ArrayViewD<'_, T>> {
        let data = self.storage::<T>()?;
        // ndarray builds views with non-negative strides only: start at the lowest address, then turn axes round.
        let mut start = self.0.offset;
        if self.size() > 0 {
            for (&dim, &stride) in self.0.shape.iter().zip(self.0.strides.iter()) {
                if stride < 0 {
                    start -= (dim - 1) * stride.unsigned_abs();
                }
            }
        }
        let steps: Vec<usize> = self.0.strides.iter().map(|s| s.unsigned_abs()).collect();
        let shape = IxDyn(&self.0.shape).strides(IxDyn(&steps));
        let data = data.get(start..).unwrap_or(&[]);
        let mut view = ArrayViewD::from_shape(shape, data)
            .map_err(|e| Error::usage("array", e.to_string(), "make the tensor contiguous first"))?;
        for (axis, &stride) in self.0.strides.iter().enumerate() {
            if stride < 0 {
                view.invert_axis(Axis(axis));
            }
        }
        Ok(view)
    }

    /// The elements as an owned `ndarray` array; the memory moves if no other handle shares it, else it is copied.
    ///
    /// # Errors
    /// The dtype is not `T`.
    pub fn into_array<T: Element>(self) -> Result<ArrayD<T>> {
        self.storage::<T>()?;
        let whole = self.0.offset == 0 && self.0.strides.iter().all(|&s| s > 0) && self.size() > 0;
        let (shape, strides) = (self.shape().clone(), self.strides().clone());
        if !whole || !self.is_unique() {
            return Ok(self.array::<T>()?.to_owned());
        }
        let data = match self.into_buffer() {
            Ok(buffer) => buffer.into_vec::<T>().expect("the dtype was checked above"),
            Err(shared) => return Ok(shared.array::<T>()?.to_owned()),
        };
        let steps: Vec<usize> = strides.iter().map(|s| s.unsigned_abs()).collect();
        Array::from_shape_vec(IxDyn(&shape).strides(IxDyn(&steps)), data)
            .map_err(|e| Error::usage("into_array", e.to_string(), "make the tensor contiguous first"))
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// The dtype is not `T`; convert it with [`cast`](Tensor::cast) first.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if let Some(slice) = self.as_slice::<T>()? {
            return Ok(slice.to_vec());
        }
        let copy = self.to_contiguous();
        Ok(copy.as_slice::<T>()?.unwrap_or(&[]).to_vec())
    }

    /// The one element of a tensor of size 1.
    ///
    /// # Errors
    /// The size is not 1, or the dtype is not `T`.
    pub fn item<T: Element>(&self) -> Result<T> {
        let data = self.storage::<T>()?;
        if self.size() != 1 {
            return Err(Error::shape("item", "the tensor", &self.0.shape, "exactly one element"));
        }
        Ok(data[self.0.offset])
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{array, s};

    use super::*;

    #[test]
    fn an_array_moves_in_and_out_without_a_copy() {
        let a = array![[1.0f32, 2.0], [3.0, 4.0]];
        let at = a.as_ptr();
        let t = Tensor::from(a.reversed_axes());
        assert_eq!(t.to_vec::<f32>().unwrap(), [1.0, 3.0, 2.0, 4.0]);
        assert_eq!(t.array::<f32>().unwrap().as_ptr(), at);
        let back = t.into_array::<f32>().unwrap();
        assert_eq!(back.as_ptr(), at);
        assert_eq!(back, array![[1.0, 3.0], [2.0, 4.0]].into_dyn());
    }

    #[test]
    fn sliced_and_reversed_arrays_keep_their_values() {
        let a = ndarray::Array1::from_iter(0..10i64);
        let part = a.slice_move(s![1..9;-3]);
        assert_eq!(part.to_vec(), [8, 5, 2]);
        let t = Tensor::from(part.clone());
        assert_eq!(t.to_vec::<i64>().unwrap(), part.to_vec());
        assert_eq!(t.array::<i64>().unwrap(), part.view().into_dyn());
        assert_eq!(t.into_array::<i64>().unwrap(), part.into_dyn());
    }

    #[test]
    fn a_shared_buffer_is_copied_on_the_way_out() {
        let t = Tensor::from([1u8, 2]);
        let kept = t.clone();
        assert_eq!(t.into_array::<u8>().unwrap().len(), 2);
        assert_eq!(kept.to_vec::<u8>().unwrap(), [1, 2]);
    }

    #[test]
    fn item_wants_one_element_and_the_right_type() {
        assert_eq!(Tensor::from([[2.5f64]]).item::<f64>().unwrap(), 2.5);
        assert!(Tensor::from([1.0f64, 2.0]).item::<f64>().is_err());
        let message = Tensor::from(1.0f64).item::<f32>().unwrap_err().to_string();
        assert!(message.contains("f64") && message.contains("cast"), "{message}");
    }
}
