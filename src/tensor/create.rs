//! Constructors of tensors.

use crate::dtype::{DType, Element, for_dtype};
use crate::error::{Error, Result};

use super::{Shape, Tensor, take};

/// Bytes from which on it is asked first whether they can be had: a failed allocation would end the program.
const LARGE: usize = 1 << 30;

/// The element count of a shape, or an error when memory cannot hold it. A dim of 0 excuses no other: the product of all
/// others must fit as well, so that strides do.
pub(crate) fn checked_size(op: &'static str, shape: &Shape, dtype: DType) -> Result<usize> {
    let bytes = shape.iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d.max(1)));
    match bytes {
        Some(bytes) if bytes <= isize::MAX as usize => {
            let size = shape.size();
            if size > 0 && bytes >= LARGE && !is_free(bytes) {
                let expected = format!("fewer bytes than memory holds; this is {bytes} bytes");
                return Err(Error::shape(op, "the tensor", shape, expected));
            }
            Ok(size)
        }
        _ => Err(Error::shape(op, "the tensor", shape, "fewer than 2^63 bytes in all")),
    }
}

/// Whether so much memory can be had at this moment.
fn is_free(bytes: usize) -> bool {
    let mut trial = Vec::<u8>::new();
    let granted = trial.try_reserve_exact(bytes).is_ok();
    // Or else the compiler leaves out what nobody uses.
    std::hint::black_box(trial);
    granted
}

impl Tensor {
    /// A tensor over `data` in row-major order, without a copy.
    ///
    /// # Errors
    /// The product of `shape` is not the length of `data`.
    pub fn from_vec<T: Element>(data: Vec<T>, shape: impl Into<Shape>) -> Result<Self> {
        let shape = shape.into();
        if shape.size() != data.len() {
            let expected = format!("as many elements as the data: {}", data.len());
            return Err(Error::shape("from_vec", "the tensor", &shape, expected));
        }
        checked_size("from_vec", &shape, T::DTYPE)?;
        Ok(Tensor::from_foreign(data, shape))
    }

    /// All elements `value`, cast to `dtype`.
    ///
    /// # Errors
    /// The shape is too large to hold, or an integer dtype cannot hold the value.
    pub fn full(shape: impl Into<Shape>, value: f64, dtype: DType) -> Result<Self> {
        let shape = shape.into();
        let size = checked_size("full", &shape, dtype)?;
        check_value("full", value, dtype)?;
        Ok(for_dtype!(dtype, T => {
            let mut data = take::<T>(size);
            data.fill(T::from_f64(value));
            Tensor::from_taken(data, shape)
        }))
    }

    /// All elements 0.
    ///
    /// # Errors
    /// The shape is too large to hold.
    pub fn zeros(shape: impl Into<Shape>, dtype: DType) -> Result<Self> {
        Tensor::full(shape, 0.0, dtype)
    }

    /// All elements 1.
    ///
    /// # Errors
    /// The shape is too large to hold.
    pub fn ones(shape: impl Into<Shape>, dtype: DType) -> Result<Self> {
        Tensor::full(shape, 1.0, dtype)
    }

    /// A scalar of the given dtype.
    pub(crate) fn scalar(value: f64, dtype: DType) -> Self {
        for_dtype!(dtype, T => Tensor::from_foreign(vec![T::from_f64(value)], Shape::from([])))
    }

    /// `start, start + step, ...` up to but without `end`: `ceil((end - start) / step)` elements.
    ///
    /// # Errors
    /// `step` is 0, or an argument is not finite.
    pub fn arange(start: f64, end: f64, step: f64, dtype: DType) -> Result<Self> {
        if step == 0.0 || !(start.is_finite() && end.is_finite() && step.is_finite()) {
            let got = format!("{start}..{end} by {step}");
            return Err(Error::argument(
                "arange",
                "range",
                got,
                "finite bounds and a finite step other than 0",
            ));
        }
        let size = ((end - start) / step).ceil().max(0.0);
        // A float beyond the range becomes its end, which is too large.
        checked_size("arange", &Shape::from([size as usize]), dtype)?;
        Ok(for_dtype!(dtype, T => {
            let data: Vec<T> = (0..size as usize).map(|i| T::from_f64(start + i as f64 * step)).collect();
            let shape = Shape::from([data.len()]);
            Tensor::from_foreign(data, shape)
        }))
    }

    /// `count` evenly spaced values from `start` to `end`, both included.
    ///
    /// # Errors
    /// `dtype` is not a float type.
    pub fn linspace(start: f64, end: f64, count: usize, dtype: DType) -> Result<Self> {
        if !dtype.is_float() {
            return Err(Error::dtype("linspace", "the tensor", dtype, "a float dtype"));
        }
        let step = if count > 1 { (end - start) / (count - 1) as f64 } else { 0.0 };
        checked_size("linspace", &Shape::from([count]), dtype)?;
        Ok(for_dtype!(dtype, T => {
            let at = |i: usize| if i + 1 == count && count > 1 { end } else { start + step * i as f64 };
            Tensor::from_foreign((0..count).map(|i| T::from_f64(at(i))).collect::<Vec<T>>(), Shape::from([count]))
        }))
    }

    /// The `rows` by `columns` matrix with ones on the diagonal.
    ///
    /// # Errors
    /// The shape is too large to hold.
    pub fn eye(rows: usize, columns: usize, dtype: DType) -> Result<Self> {
        let shape = Shape::from([rows, columns]);
        let size = checked_size("eye", &shape, dtype)?;
        Ok(for_dtype!(dtype, T => {
            let mut data = take::<T>(size);
            data.fill(T::from_f64(0.0));
            data.iter_mut().step_by(columns + 1).take(rows.min(columns)).for_each(|v| *v = T::from_f64(1.0));
            Tensor::from_taken(data, shape)
        }))
    }
}

/// Refuses a fraction, an infinity, NaN or a number out of range for an integer dtype.
pub(crate) fn check_value(op: &'static str, value: f64, dtype: DType) -> Result<()> {
    if dtype.is_float() {
        return Ok(());
    }
    if value.fract() != 0.0 {
        return Err(Error::argument(op, "value", value, format!("a whole number for dtype {dtype}")));
    }
    let nearest = for_dtype!(dtype, T => T::from_f64(value).to_f64());
    if nearest != value {
        let expected = format!("a number that {dtype} can hold; the nearest one is {nearest}");
        return Err(Error::argument(op, "value", value, expected));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_of_another_tensor_is_a_shape_to_create_with() {
        let x = Tensor::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        let y = Tensor::zeros(x.shape(), x.dtype()).unwrap();
        assert_eq!((y.shape(), y.to_vec::<f32>().unwrap()), (x.shape(), vec![0.0; 6]));
    }

    #[test]
    fn arange_counts_as_documented() {
        let t = Tensor::arange(0.0, 1.0, 0.3, DType::F64).unwrap();
        assert_eq!(t.shape(), &[4]);
        assert_eq!(Tensor::arange(3.0, 0.0, -1.0, DType::I32).unwrap().to_vec::<i32>().unwrap(), [3, 2, 1]);
        assert!(Tensor::arange(0.0, 1.0, 0.0, DType::F32).is_err());
    }

    #[test]
    fn linspace_ends_exactly_on_the_bound() {
        let t = Tensor::linspace(0.0, 0.7, 8, DType::F64).unwrap().to_vec::<f64>().unwrap();
        assert_eq!((t[0], t[7], t.len()), (0.0, 0.7, 8));
    }

    #[test]
    fn eye_may_be_wide_or_tall() {
        let t = Tensor::eye(2, 3, DType::I64).unwrap();
        assert_eq!(t.to_vec::<i64>().unwrap(), [1, 0, 0, 0, 1, 0]);
        assert_eq!(Tensor::eye(3, 0, DType::F32).unwrap().size(), 0);
    }

    #[test]
    fn a_shape_beyond_memory_is_an_error() {
        assert!(Tensor::zeros([usize::MAX, 2], DType::F32).is_err());
        // Not even one that could be counted, or one without elements.
        let message = Tensor::zeros([1 << 50], DType::F32).unwrap_err().to_string();
        assert!(message.contains("4503599627370496 bytes"), "{message}");
        assert!(Tensor::from(1.0f32).broadcast_to([1 << 50]).is_err());
        assert!(Tensor::zeros([usize::MAX, 2, 0], DType::F32).is_err());
        assert!(Tensor::zeros([0, usize::MAX, 2], DType::F32).is_err());
        assert!(Tensor::from_vec(Vec::<f32>::new(), [0, usize::MAX, 2]).is_err());
        assert!(Tensor::zeros([0], DType::F32).unwrap().reshape([usize::MAX, usize::MAX, 0]).is_err());
        assert!(Tensor::from_vec(vec![1.0f32; 3], [2, 2]).is_err());
    }
}
