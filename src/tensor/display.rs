//! Printed form of tensors, NumPy-like and abbreviated when large.

use std::fmt;

use crate::dtype::for_dtype;

use super::Tensor;

impl fmt::Display for Tensor {
    /// The values in nested brackets; more than 500 elements are abbreviated. A precision as in `{:.3}` holds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for_dtype!(self.dtype(), T => match self.array::<T>() {
            Ok(array) => fmt::Display::fmt(&array, f),
            Err(e) => fmt::Display::fmt(&e, f),
        })
    }
}

impl fmt::Debug for Tensor {
    /// `Tensor(f32[2, 3], [[1.0, ...]])`: dtype, shape and values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({}{}, ", self.dtype(), self.shape())?;
        fmt::Display::fmt(self, f)?;
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    #[test]
    fn debug_names_dtype_and_shape() {
        let text = format!("{:?}", Tensor::from([[1i32, 2], [3, 4]]));
        assert!(text.starts_with("Tensor(i32[2, 2], [[1, 2],"), "{text}");
    }

    #[test]
    fn large_tensors_are_abbreviated() {
        let text = Tensor::zeros([1000, 1000], DType::F32).unwrap().to_string();
        assert!(text.contains("...") && text.len() < 2000, "{text}");
        assert_eq!(format!("{:.2}", Tensor::from([0.123f64])), "[0.12]");
    }
}
