//! Descriptions of tensors: dtype and dims, some of which may be open.

use std::fmt;

use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::{Shape, Tensor};

/// Dtype and dims of a tensor; a dim that may take any size is `None`.
///
/// ```
/// use couplet::{DType, Spec};
/// assert_eq!(Spec::from([None, Some(7)]).to_string(), "f32[None,7]");
/// assert_eq!(Spec::from([2, 7]).with_dtype(DType::I64).to_string(), "i64[2,7]");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spec {
    dims: Vec<Option<usize>>,
    dtype: DType,
}

impl Spec {
    /// The same dims, another dtype. Specs made of dims alone are `f32`.
    #[must_use]
    pub fn with_dtype(self, dtype: DType) -> Self {
        Spec { dtype, ..self }
    }

    /// The dims, outermost first.
    pub fn dims(&self) -> &[Option<usize>] {
        &self.dims
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Whether some dim is open.
    pub(crate) fn is_open(&self) -> bool {
        self.dims.contains(&None)
    }

    /// Zeros of this kind, with `size` for each open dim.
    pub(crate) fn zeros(&self, size: usize) -> Result<Tensor> {
        Tensor::zeros(self.dims.iter().map(|dim| dim.unwrap_or(size)).collect::<Shape>(), self.dtype)
    }

    /// The dims that two shapes agree on; the others are open. `None` if their ranks differ.
    pub(crate) fn common(a: &Shape, b: &Shape, dtype: DType) -> Option<Self> {
        let same = |(&a, &b)| (a == b).then_some(a);
        (a.rank() == b.rank()).then(|| Spec { dims: a.iter().zip(b.iter()).map(same).collect(), dtype })
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self
            .dims
            .iter()
            .map(|dim| dim.map_or_else(|| "None".to_owned(), |dim| dim.to_string()))
            .collect();
        write!(f, "{}[{}]", self.dtype, dims.join(","))
    }
}

impl<const N: usize> From<[Option<usize>; N]> for Spec {
    fn from(dims: [Option<usize>; N]) -> Self {
        Spec { dims: dims.to_vec(), dtype: DType::F32 }
    }
}

impl From<Vec<Option<usize>>> for Spec {
    fn from(dims: Vec<Option<usize>>) -> Self {
        Spec { dims, dtype: DType::F32 }
    }
}

impl<const N: usize> From<[usize; N]> for Spec {
    fn from(dims: [usize; N]) -> Self {
        Spec { dims: dims.map(Some).to_vec(), dtype: DType::F32 }
    }
}

impl From<&Tensor> for Spec {
    fn from(tensor: &Tensor) -> Self {
        Spec { dims: tensor.shape().iter().map(|&dim| Some(dim)).collect(), dtype: tensor.dtype() }
    }
}

impl From<&Spec> for Spec {
    fn from(spec: &Spec) -> Self {
        spec.clone()
    }
}
