//! Stored tensors as dtype, shape and bytes, which compare bit for bit.

use couplet::checkpoint::Stored;
use couplet::{DType, Element, Tensor};
use half::{bf16, f16};

/// A tensor of any kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    pub dtype: String,
    pub shape: Vec<usize>,
    /// One vector of the little-endian bytes of all elements, or one a string.
    pub bytes: Vec<Vec<u8>>,
}

impl From<&Stored> for Value {
    fn from(stored: &Stored) -> Self {
        let bytes = match stored {
            Stored::Tensor(x) => vec![bytes(x)],
            Stored::Strings(strings) => strings.values.clone(),
            Stored::Raw(raw) => vec![raw.bytes.clone()],
            other => panic!("a new kind: {other:?}"),
        };
        Value { dtype: stored.dtype().to_string(), shape: stored.shape().to_vec(), bytes }
    }
}

fn list<T: Element, const N: usize>(x: &Tensor, bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    x.to_vec::<T>().unwrap().into_iter().flat_map(bytes).collect()
}

/// The elements in row-major order, each in little-endian order.
pub fn bytes(x: &Tensor) -> Vec<u8> {
    match x.dtype() {
        DType::F32 => list(x, f32::to_le_bytes),
        DType::F64 => list(x, f64::to_le_bytes),
        DType::F16 => list(x, f16::to_le_bytes),
        DType::BF16 => list(x, bf16::to_le_bytes),
        DType::I8 => list(x, i8::to_le_bytes),
        DType::I16 => list(x, i16::to_le_bytes),
        DType::I32 => list(x, i32::to_le_bytes),
        DType::I64 => list(x, i64::to_le_bytes),
        DType::U8 => list(x, u8::to_le_bytes),
        DType::U16 => list(x, u16::to_le_bytes),
        DType::U32 => list(x, u32::to_le_bytes),
        DType::U64 => list(x, u64::to_le_bytes),
        DType::Bool => list(x, |x: bool| [u8::from(x)]),
        other => panic!("a new dtype: {other}"),
    }
}
