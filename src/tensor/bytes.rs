//! The elements of a tensor as bytes, for files.

use crate::dtype::{DType, for_dtype};
use crate::error::{Error, Result};
use crate::kernels::bytes::Bytes;

use super::{Shape, Tensor, checked_size, take};

/// Bytes that are converted at a time: few enough to stay in the cache while they are also summed or written.
const CHUNK: usize = 256 << 10;

impl Tensor {
    /// Appends the elements to `bytes`: in row-major order, each in little-endian order.
    pub(crate) fn write_bytes(&self, bytes: &mut Vec<u8>) -> Result<()> {
        let x = self.to_contiguous();
        for_dtype!(self.dtype(), T => T::write(x.as_slice::<T>()?.unwrap_or(&[]), bytes));
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
            if !T::read(bytes, &mut y) {
                return Err(Error::argument(OP, "bytes", "a byte above 1", "0 or 1 for each bool"));
            }
            Ok(Tensor::from_taken(y, shape))
        })
    }

    /// Passes the elements to `write`, in the order of [`write_bytes`](Tensor::write_bytes) but not all at once.
    pub(crate) fn write_chunks(&self, mut write: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let x = self.to_contiguous();
        let mut bytes = Vec::new();
        for_dtype!(self.dtype(), T => {
            for part in x.as_slice::<T>()?.unwrap_or(&[]).chunks(CHUNK / size_of::<T>()) {
                bytes.clear();
                T::write(part, &mut bytes);
                write(&bytes)?;
            }
        });
        Ok(())
    }

    /// A tensor of the elements that `fill` puts into the slices that it is given, each of whole elements in the order of
    /// [`write_bytes`](Tensor::write_bytes); `None` if one of them is no value of the dtype.
    pub(crate) fn read_chunks(
        shape: Shape,
        dtype: DType,
        mut fill: impl FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Option<Self>> {
        let size = checked_size("decode", &shape, dtype)?;
        let mut bytes = vec![0; CHUNK.min(size * dtype.size())];
        let mut are_values = true;
        for_dtype!(dtype, T => {
            let mut y = take::<T>(size);
            for part in y.chunks_mut(CHUNK / size_of::<T>()) {
                let bytes = &mut bytes[..size_of_val(part)];
                fill(bytes)?;
                are_values &= T::read(bytes, part);
            }
            Ok(are_values.then(|| Tensor::from_taken(y, shape)))
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
    #[test]
    fn chunks_are_the_same_bytes_one_part_after_another() {
        // 100,000 elements of 1 to 8 bytes: one to four chunks.
        for dtype in DType::ALL {
            let x = Tensor::arange(0.0, 1e5, 1.0, DType::F32).unwrap().cast(dtype).unwrap();
            let (mut whole, mut parts, mut chunks) = (Vec::new(), Vec::new(), 0);
            x.write_bytes(&mut whole).unwrap();
            x.write_chunks(|part| {
                parts.extend_from_slice(part);
                chunks += 1;
                Ok(())
            })
            .unwrap();
            assert_eq!(parts, whole);
            assert_eq!(chunks, whole.len().div_ceil(CHUNK));
            let mut rest = whole.as_slice();
            let back = Tensor::read_chunks(Shape::from([100_000]), dtype, |part| {
                part.copy_from_slice(rest.split_off(..part.len()).unwrap());
                Ok(())
            });
            let mut again = Vec::new();
            back.unwrap().unwrap().write_bytes(&mut again).unwrap();
            assert_eq!(again, whole, "{dtype}");
        }
        let twos = |part: &mut [u8]| {
            part.fill(2);
            Ok(())
        };
        assert!(Tensor::read_chunks(Shape::from([3]), DType::Bool, twos).unwrap().is_none());
    }
}
