//! The types of TensorFlow's elements: their numbers and names, and how they lie in a file.

use std::borrow::Cow;

use crate::checkpoint::StoredDType;
use crate::dtype::DType;

/// How the elements of a type lie in a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// So many bytes an element, in numbers of so many bytes: a complex number is two.
    Fixed { size: usize, number: usize },
    /// Lengths, then bytes.
    Strings,
    /// Messages, each with its length and a checksum.
    Variants,
    /// In no way that is known.
    Unknown,
}

/// A type by its number in the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ElementType(pub i32);

/// Number and name of all types. What follows the last, or stands between them, is unknown.
const NAMES: [(i32, &str); 33] = [
    (1, "float32"),
    (2, "float64"),
    (3, "int32"),
    (4, "uint8"),
    (5, "int16"),
    (6, "int8"),
    (7, "string"),
    (8, "complex64"),
    (9, "int64"),
    (10, "bool"),
    (11, "qint8"),
    (12, "quint8"),
    (13, "qint32"),
    (14, "bfloat16"),
    (15, "qint16"),
    (16, "quint16"),
    (17, "uint16"),
    (18, "complex128"),
    (19, "float16"),
    (20, "resource"),
    (21, "variant"),
    (22, "uint32"),
    (23, "uint64"),
    (24, "float8_e5m2"),
    (25, "float8_e4m3fn"),
    (26, "float8_e4m3fnuz"),
    (27, "float8_e4m3b11fnuz"),
    (28, "float8_e5m2fnuz"),
    (29, "int4"),
    (30, "uint4"),
    (31, "int2"),
    (32, "uint2"),
    (33, "float4_e2m1fn"),
];

impl ElementType {
    pub(super) const STRING: ElementType = ElementType(7);

    /// The type of a tensor's elements.
    pub(super) fn of(dtype: DType) -> Self {
        ElementType(match dtype {
            DType::F32 => 1,
            DType::F64 => 2,
            DType::I32 => 3,
            DType::U8 => 4,
            DType::I16 => 5,
            DType::I8 => 6,
            DType::I64 => 9,
            DType::Bool => 10,
            DType::BF16 => 14,
            DType::U16 => 17,
            DType::F16 => 19,
            DType::U32 => 22,
            DType::U64 => 23,
        })
    }

    /// The type with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, known)| *known == name).map(|&(number, _)| ElementType(number))
    }

    /// Its name in Python.
    pub(super) fn name(self) -> Cow<'static, str> {
        match NAMES.iter().find(|&&(number, _)| number == self.0) {
            Some(&(_, name)) => name.into(),
            None => format!("unknown ({})", self.0).into(),
        }
    }

    /// Its name in protocol messages, e.g. `DT_FLOAT`.
    pub(super) fn constant(self) -> String {
        match self.0 {
            1 => "DT_FLOAT".to_owned(),
            2 => "DT_DOUBLE".to_owned(),
            19 => "DT_HALF".to_owned(),
            _ => format!("DT_{}", self.name().to_uppercase()),
        }
    }

    /// The dtype of a tensor of such elements, if there is one.
    pub(super) fn dtype(self) -> Option<DType> {
        DType::ALL.into_iter().find(|&dtype| Self::of(dtype) == self)
    }

    /// What the elements become when they are read.
    pub(super) fn stored(self) -> StoredDType {
        match self.dtype() {
            Some(dtype) => StoredDType::Tensor(dtype),
            None if self == Self::STRING => StoredDType::String,
            None => StoredDType::Other(self.name().into_owned()),
        }
    }

    pub(super) fn layout(self) -> Layout {
        if let Some(dtype) = self.dtype() {
            return Layout::Fixed { size: dtype.size(), number: dtype.size() };
        }
        let (size, number) = match self.0 {
            7 => return Layout::Strings,
            21 => return Layout::Variants,
            8 => (8, 4),
            18 => (16, 8),
            13 => (4, 4),
            15 | 16 => (2, 2),
            // 4 bits take a byte.
            11 | 12 | 24..=30 => (1, 1),
            _ => return Layout::Unknown,
        };
        Layout::Fixed { size, number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_name_and_dtype() {
        for dtype in DType::ALL {
            let element = ElementType::of(dtype);
            assert_eq!(element.dtype(), Some(dtype));
            assert_eq!(ElementType::named(&element.name()), Some(element));
        }
        assert_eq!(ElementType::of(DType::BF16).constant(), "DT_BFLOAT16");
        assert_eq!(ElementType::of(DType::F16).constant(), "DT_HALF");
        assert_eq!(ElementType::named("float"), None);
        assert_eq!(ElementType(8).layout(), Layout::Fixed { size: 8, number: 4 });
        assert_eq!(ElementType(99).layout(), Layout::Unknown);
        assert_eq!(ElementType(99).stored(), StoredDType::Other("unknown (99)".to_owned()));
    }
}
