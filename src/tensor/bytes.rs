//! The elements of a tensor as bytes, for files.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::dtype::{DType, for_dtype};
use crate::error::{Error, Result};
use crate::kernels::bytes::{self, Bytes};
use crate::kernels::parallel;

use super::{Shape, Tensor, checked_size, take};

/// Elements of one task of a thread, and of one step of [`each_bytes`](Tensor::each_bytes).
const CHUNK: usize = 1 << 16;

impl Tensor {
    /// Appends the elements to `bytes`: in row-major order, each in little-endian order.
    pub(crate) fn write_bytes(&self, bytes: &mut Vec<u8>) -> Result<()> {
        let x = self.to_contiguous();
        for_dtype!(self.dtype(), T => T::write(x.as_slice::<T>()?.unwrap_or(&[]), bytes));
        Ok(())
    }

    /// Calls `take` with the bytes that [`write_bytes`](Tensor::write_bytes) appends, some after the others. Elements that are
    /// not contiguous are copied once.
    #[cfg(any(feature = "npz", feature = "safetensors", feature = "tensorflow"))]
    pub(crate) fn each_bytes<E>(&self, mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let x = self.to_contiguous();
        let mut bytes = Vec::with_capacity(self.size().min(CHUNK) * self.dtype().size());
        for_dtype!(self.dtype(), T => {
            let elements = x.as_slice::<T>().ok().flatten();
            for x in elements.expect("T is the type of the dtype, and x is contiguous").chunks(CHUNK) {
                bytes.clear();
                T::write(x, &mut bytes);
                take(&bytes)?;
            }
        });
        Ok(())
    }

    /// The elements as bytes where they lie: in row-major order, each in little-endian order. `None` if they lie otherwise.
    pub(crate) fn bytes_in_place(&self) -> Result<Option<&[u8]>> {
        for_dtype!(self.dtype(), T => Ok(self.as_slice::<T>()?.and_then(bytes::in_place)))
    }

    /// Takes the elements that [`write_bytes`](Tensor::write_bytes) wrote, without further memory if no other handle shares
    /// the present ones.
    ///
    /// # Errors
    /// There are more or fewer bytes than the tensor has. The tensor is unchanged then. A byte that is no bool is true.
    pub(crate) fn read_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let expected = self.size() * self.dtype().size();
        if bytes.len() != expected {
            let expected = format!("{expected} bytes for {}{}", self.dtype(), self.shape());
            return Err(Error::argument("decode", "bytes", format!("{} bytes", bytes.len()), expected));
        }
        if self.output().is_none() {
            *self = Tensor::blank(self.shape().clone(), self.dtype());
        }
        for_dtype!(self.dtype(), T => {
            parallel::for_each_chunk_mut(self.make_mut::<T>()?, CHUNK, |i, y| {
                let start = i * CHUNK * size_of::<T>();
                T::read(&bytes[start..start + size_of_val(y)], y);
            });
        });
        Ok(())
    }

    /// A tensor of the elements that [`write_bytes`](Tensor::write_bytes) wrote.
    ///
    /// # Errors
    /// There are more or fewer bytes than the shape asks for, or one is no value of the dtype.
    pub(crate) fn from_bytes(bytes: &[u8], shape: Shape, dtype: DType) -> Result<Self> {
        const OP: &str = "decode";
        let size = checked_size(OP, &shape, dtype)?;
        if bytes.len() != size * dtype.size() {
            let expected = format!("{} bytes for {dtype}{shape}", size * dtype.size());
            return Err(Error::argument(OP, "bytes", format!("{} bytes", bytes.len()), expected));
        }
        for_dtype!(dtype, T => {
            let mut y = take::<T>(size);
            let invalid = AtomicBool::new(false);
            parallel::for_each_chunk_mut(&mut y, CHUNK, |i, y| {
                let start = i * CHUNK * size_of::<T>();
                if !T::read(&bytes[start..start + size_of_val(y)], y) {
                    invalid.store(true, Ordering::Relaxed);
                }
            });
            if invalid.into_inner() {
                return Err(Error::argument(OP, "bytes", "a byte above 1", "0 or 1 for each bool"));
            }
            Ok(Tensor::from_taken(y, shape))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_and_layout_comes_back() {
        for dtype in DType::ALL {
            let x = Tensor::arange(0.0, 6.0, 1.0, DType::F32).unwrap().reshape([2, 3]).unwrap();
            let x = x.transpose(&[1, 0]).unwrap().cast(dtype).unwrap();
            let mut bytes = Vec::new();
            x.write_bytes(&mut bytes).unwrap();
            assert_eq!(bytes.len(), 6 * dtype.size());
            let back = Tensor::from_bytes(&bytes, Shape::from([3, 2]), dtype).unwrap();
            let list = |x: &Tensor| x.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
            assert_eq!(list(&back), list(&x), "{dtype}");
            assert!(Tensor::from_bytes(&bytes[1..], Shape::from([3, 2]), dtype).is_err());
        }
    }
}
