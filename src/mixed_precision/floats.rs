//! Structures of tensors whose floats are cast.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// What a call in another precision takes or returns: tensors, and options, tuples, lists and maps of them. Numbers, text
/// and variables may be among them and pass unchanged; a variable is cast when it is read.
///
/// ```
/// use couplet::{DType, Tensor, mixed_precision::Floats};
/// let (x, ids) = (Tensor::from(1.0f32), Tensor::from(1i64));
/// let (list, rate) = (vec![x, ids], 0.5f64).cast_floats(DType::BF16)?;
/// assert_eq!((list[0].dtype(), list[1].dtype(), rate), (DType::BF16, DType::I64, 0.5));
/// # Ok::<(), couplet::Error>(())
/// ```
pub trait Floats: Sized {
    /// The same structure with the tensors of a float dtype cast to `dtype`.
    ///
    /// # Errors
    /// A tensor cannot be cast.
    fn cast_floats(self, dtype: DType) -> Result<Self>;
}

impl Floats for Tensor {
    fn cast_floats(self, dtype: DType) -> Result<Self> {
        match self.dtype().is_float() {
            true => self.cast(dtype),
            false => Ok(self),
        }
    }
}

macro_rules! unchanged {
    ($($t:ty),*) => {$(
        impl Floats for $t {
            fn cast_floats(self, _: DType) -> Result<Self> {
                Ok(self)
            }
        }
    )*};
}

unchanged!((), bool, char, usize, u8, u16, u32, u64, isize, i8, i16, i32, i64, f32, f64, String, Variable);

impl Floats for &str {
    fn cast_floats(self, _: DType) -> Result<Self> {
        Ok(self)
    }
}

impl<T: Floats> Floats for Option<T> {
    fn cast_floats(self, dtype: DType) -> Result<Self> {
        self.map(|value| value.cast_floats(dtype)).transpose()
    }
}

impl<T: Floats> Floats for Vec<T> {
    fn cast_floats(self, dtype: DType) -> Result<Self> {
        self.into_iter().map(|value| value.cast_floats(dtype)).collect()
    }
}

impl<K: Ord, V: Floats> Floats for BTreeMap<K, V> {
    fn cast_floats(self, dtype: DType) -> Result<Self> {
        self.into_iter().map(|(key, value)| Ok((key, value.cast_floats(dtype)?))).collect()
    }
}

impl<K: Eq + Hash, V: Floats, S: BuildHasher + Default> Floats for HashMap<K, V, S> {
    fn cast_floats(self, dtype: DType) -> Result<Self> {
        self.into_iter().map(|(key, value)| Ok((key, value.cast_floats(dtype)?))).collect()
    }
}

macro_rules! tuple {
    ($($t:ident $i:tt),*) => {
        impl<$($t: Floats),*> Floats for ($($t,)*) {
            fn cast_floats(self, dtype: DType) -> Result<Self> {
                Ok(($(self.$i.cast_floats(dtype)?,)*))
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
