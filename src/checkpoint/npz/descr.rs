//! NumPy's names of element types: `<f4`, `|b1`, `>i8`.

use super::super::stored::StoredDType;
use crate::dtype::DType;
use crate::error::Fault;

/// What the elements of an array are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Descr {
    pub(super) kind: Kind,
    pub(super) big_endian: bool,
}

/// The kinds of elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Numbers or bools.
    Tensor(DType),
    /// Strings of so many bytes, filled up with zeros.
    Bytes(usize),
    /// Strings of so many characters of four bytes, filled up with zeros.
    Text(usize),
    /// Elements of another type: its name, the bytes of each, and of each of its numbers.
    Raw { name: String, size: usize, number: usize },
    /// What cannot be read: pickled objects, structures.
    Opaque(String),
}

impl Descr {
    /// Understands a name.
    pub(super) fn parse(text: &str) -> Result<Self, (Fault, String)> {
        let unknown = || (Fault::UnsupportedDType, format!("dtype {text:?} is not known"));
        let (big_endian, rest) = match text.strip_prefix(['<', '|', '>']) {
            Some(rest) => (text.starts_with('>'), rest),
            None => return Err(unknown()),
        };
        let mut chars = rest.chars();
        let kind = chars.next().ok_or_else(unknown)?;
        let (digits, unit) = chars
            .as_str()
            .split_at(chars.as_str().find(|c: char| !c.is_ascii_digit()).unwrap_or(chars.as_str().len()));
        if kind == 'O' {
            return Ok(Descr { kind: Kind::Opaque("object".into()), big_endian });
        }
        let size: usize = digits.parse().map_err(|_| unknown())?;
        let raw = |name: &str, number| {
            let name = if name.ends_with(']') { name.to_owned() } else { format!("{name}{}", 8 * size) };
            Ok(Kind::Raw { name, size, number })
        };
        let kind = match (kind, size, unit) {
            ('b', 1, "") => Ok(Kind::Tensor(DType::Bool)),
            ('i', 1, "") => Ok(Kind::Tensor(DType::I8)),
            ('i', 2, "") => Ok(Kind::Tensor(DType::I16)),
            ('i', 4, "") => Ok(Kind::Tensor(DType::I32)),
            ('i', 8, "") => Ok(Kind::Tensor(DType::I64)),
            ('u', 1, "") => Ok(Kind::Tensor(DType::U8)),
            ('u', 2, "") => Ok(Kind::Tensor(DType::U16)),
            ('u', 4, "") => Ok(Kind::Tensor(DType::U32)),
            ('u', 8, "") => Ok(Kind::Tensor(DType::U64)),
            ('f', 2, "") => Ok(Kind::Tensor(DType::F16)),
            ('f', 4, "") => Ok(Kind::Tensor(DType::F32)),
            ('f', 8, "") => Ok(Kind::Tensor(DType::F64)),
            ('f', 12 | 16, "") => raw("float", size),
            ('c', 8 | 16 | 24 | 32, "") => raw("complex", size / 2),
            ('V', 1.., "") => raw("void", 1),
            ('M', 8, unit) => raw(&format!("datetime64{}", or_generic(unit)), 8),
            ('m', 8, unit) => raw(&format!("timedelta64{}", or_generic(unit)), 8),
            ('S', _, "") => Ok(Kind::Bytes(size)),
            ('U', _, "") if size.checked_mul(4).is_some() => Ok(Kind::Text(size)),
            _ => Err(unknown()),
        }?;
        Ok(Descr { kind, big_endian })
    }

    /// NumPy's name of a dtype; it has none for `bf16`.
    pub(super) fn name_of(dtype: DType) -> Option<&'static str> {
        match dtype {
            DType::F32 => Some("<f4"),
            DType::F64 => Some("<f8"),
            DType::F16 => Some("<f2"),
            DType::BF16 => None,
            DType::I8 => Some("|i1"),
            DType::I16 => Some("<i2"),
            DType::I32 => Some("<i4"),
            DType::I64 => Some("<i8"),
            DType::U8 => Some("|u1"),
            DType::U16 => Some("<u2"),
            DType::U32 => Some("<u4"),
            DType::U64 => Some("<u8"),
            DType::Bool => Some("|b1"),
        }
    }

    /// NumPy's name of a type of [`Kind::Raw`], by the name that [`parse`](Descr::parse) gave it, and the bytes of an
    /// element.
    pub(super) fn of_raw(name: &str) -> Option<(String, usize)> {
        let bits = |prefix: &str| {
            let bits: usize = name.strip_prefix(prefix)?.parse().ok()?;
            (bits > 0 && bits.is_multiple_of(8)).then_some(bits / 8)
        };
        if let Some(size) = bits("complex").filter(|size| [8, 16, 24, 32].contains(size)) {
            return Some((format!("<c{size}"), size));
        }
        if let Some(size) = bits("float").filter(|size| [12, 16].contains(size)) {
            return Some((format!("<f{size}"), size));
        }
        if let Some(size) = bits("void") {
            return Some((format!("|V{size}"), size));
        }
        let unit = |prefix| name.strip_prefix(prefix).filter(|unit: &&str| unit.starts_with('['));
        let (letter, unit) = match (unit("datetime64"), unit("timedelta64")) {
            (Some(unit), _) => ('M', unit),
            (_, Some(unit)) => ('m', unit),
            _ => return None,
        };
        let is_plain = unit.chars().all(|c| c.is_ascii_alphanumeric() || "[]/".contains(c));
        is_plain.then(|| (format!("<{letter}8{unit}"), 8))
    }

    /// The bytes of an element, if all have the same number.
    pub(super) fn size(&self) -> Option<usize> {
        match &self.kind {
            Kind::Tensor(dtype) => Some(dtype.size()),
            Kind::Bytes(size) | Kind::Raw { size, .. } => Some(*size),
            Kind::Text(chars) => chars.checked_mul(4),
            Kind::Opaque(_) => None,
        }
    }

    /// The bytes of a number within an element, in whose order they lie.
    pub(super) fn number(&self) -> usize {
        match &self.kind {
            Kind::Tensor(dtype) => dtype.size(),
            Kind::Raw { number, .. } => *number,
            Kind::Text(_) => 4,
            Kind::Bytes(_) | Kind::Opaque(_) => 1,
        }
    }

    /// The type as entries show it.
    pub(super) fn dtype(&self) -> StoredDType {
        match &self.kind {
            Kind::Tensor(dtype) => StoredDType::Tensor(*dtype),
            Kind::Bytes(_) | Kind::Text(_) => StoredDType::String,
            Kind::Raw { name, .. } | Kind::Opaque(name) => StoredDType::Other(name.clone()),
        }
    }
}

/// A unit of time, or that of none.
fn or_generic(unit: &str) -> &str {
    if unit.starts_with('[') && unit.ends_with(']') { unit } else { "[generic]" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for dtype in DType::ALL {
            let Some(name) = Descr::name_of(dtype) else { continue };
            assert_eq!(Descr::parse(name), Ok(Descr { kind: Kind::Tensor(dtype), big_endian: false }));
        }
        for name in ["<c8", "<c16", "<f16", "|V2", "<M8[ns]", "<m8[25us]"] {
            let descr = Descr::parse(name).unwrap();
            let Kind::Raw { name: ours, size, .. } = &descr.kind else { panic!("{descr:?}") };
            assert_eq!(Descr::of_raw(ours), Some((name.to_owned(), *size)));
        }
        assert!(Descr::parse(">f4").unwrap().big_endian);
        assert_eq!(Descr::parse("<U3").unwrap().size(), Some(12));
    }

    #[test]
    fn foreign_names_are_refused() {
        for name in ["", "f4", "<", "<f", "<f3", "<x4", "=f4", "<f4x", "<i99999999999999999999", "<é4", "|V0"]
        {
            assert_eq!(Descr::parse(name).unwrap_err().0, Fault::UnsupportedDType, "{name}");
        }
        for name in ["float32", "complex12", "datetime64", "datetime64['", "F8_E4M3"] {
            assert_eq!(Descr::of_raw(name), None);
        }
    }
}
