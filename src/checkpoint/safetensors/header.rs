//! The header of a safetensors file: what the file says of its tensors, and whether that can be.
//!
//! | part          | bytes                                                                   |
//! |---------------|-------------------------------------------------------------------------|
//! | header length | `u64`, little-endian                                                    |
//! | header        | a JSON object: dtype, shape and the bytes of each tensor, by its key    |
//! | data          | the elements, row-major and little-endian, without a gap or an overlap  |

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use safetensors::Dtype;
use serde::Deserialize;
use serde::de::value::{Error as NameError, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, IntoDeserializer, MapAccess, Visitor};

use super::super::stored::{Entry, StoredDType};
use crate::dtype::DType;
use crate::error::{Error, Fault, Result};
use crate::tensor::Shape;

/// The largest header that the format allows.
const MOST: u64 = 100_000_000;

/// The key that is none of a tensor.
pub(super) const METADATA: &str = "__metadata__";

/// A tensor and where its elements lie, in bytes from the beginning of the file.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) entry: Entry,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A tensor as the header describes it.
#[derive(Deserialize)]
struct Described {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// The tensors of a file, in ascending order of their keys.
pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Vec<Located>> {
    let there = bytes.len() as u64;
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        let problem = format!("{there} bytes, expected 8 and the header");
        return Err(Error::format(path, Fault::Truncated, problem).at_offset(there));
    };
    let length = u64::from_le_bytes(*length);
    if length > MOST {
        let problem = format!("a header of {length} bytes, expected {MOST} at most");
        return Err(Error::format(path, Fault::MalformedHeader, problem).at_offset(0));
    }
    let Some((header, data)) = rest.split_at_checked(length as usize) else {
        let problem = format!("the header of {length} bytes ends after {}", rest.len());
        return Err(Error::format(path, Fault::Truncated, problem).at_offset(there));
    };
    let mut located = Vec::new();
    for (key, described) in parse(path, header)? {
        let one = locate(&key, described, 8 + length)
            .map_err(|(fault, problem)| Error::format(path, fault, problem).at_offset(8).of_tensor(&key))?;
        located.push(one);
    }
    check_places(path, &mut located, 8 + header.len(), data.len())?;
    located.sort_by(|a, b| a.entry.key.cmp(&b.entry.key));
    Ok(located)
}

/// The keys and descriptions of the header, in its order.
fn parse(path: &Path, header: &[u8]) -> Result<Vec<(String, Described)>> {
    if header.first() != Some(&b'{') {
        let problem = "the header does not begin with {, so this is no safetensors file";
        return Err(Error::format(path, Fault::MalformedHeader, problem).at_offset(8));
    }
    let mut members = Members { under_way: None, list: Vec::new() };
    let mut json = serde_json::Deserializer::from_slice(header);
    let parsed = (&mut members).deserialize(&mut json).and_then(|()| json.end());
    if let Err(e) = parsed {
        let fault = if e.is_data() { Fault::MalformedEntry } else { Fault::MalformedHeader };
        let error = Error::format(path, fault, e.to_string()).at_offset(8 + place(header, &e));
        return Err(match members.under_way {
            Some(key) => error.of_tensor(&key),
            None => error,
        });
    }
    let mut keys = BTreeSet::new();
    match members.list.iter().find(|(key, _)| !keys.insert(key)) {
        None => Ok(members.list),
        Some((key, _)) => {
            let problem = "the header describes it twice";
            Err(Error::format(path, Fault::MalformedEntry, problem).at_offset(8).of_tensor(key))
        }
    }
}

/// Where in some JSON an error was found.
pub(super) fn place(json: &[u8], e: &serde_json::Error) -> u64 {
    let lines = json.split_inclusive(|&byte| byte == b'\n').take(e.line().saturating_sub(1));
    let before: usize = lines.map(<[u8]>::len).sum();
    (before + e.column().saturating_sub(1)).min(json.len()) as u64
}

/// The members of the header, kept in their order so that none hides another.
struct Members {
    /// The key whose description is being read.
    under_way: Option<String>,
    list: Vec<(String, Described)>,
}

impl<'de> DeserializeSeed<'de> for &mut Members {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Members {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the descriptions of the tensors by their keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == METADATA {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            self.under_way = Some(key.clone());
            let described = map.next_value()?;
            self.under_way = None;
            self.list.push((key, described));
        }
        Ok(())
    }
}

/// Compares the parts of a description with each other. Offsets count from `data` on.
fn locate(key: &str, described: Described, data: u64) -> Result<Located, (Fault, String)> {
    let Described { dtype: name, shape, data_offsets: (start, end) } = described;
    let deserializer: StrDeserializer<'_, NameError> = name.as_str().into_deserializer();
    let dtype = Dtype::deserialize(deserializer).map_err(|_| {
        let problem = format!("dtype {name:?} is not one of the format");
        (Fault::UnsupportedDType, problem)
    })?;
    let Some(length) = end.checked_sub(start) else {
        return Err((Fault::MalformedEntry, format!("its bytes begin at {start} and end at {end}")));
    };
    let bits = shape.iter().try_fold(dtype.bitsize() as u64, |bits, &dim| bits.checked_mul(dim));
    let bits = if shape.contains(&0) { Some(0) } else { bits };
    if bits != length.checked_mul(8) {
        let problem = format!("{length} bytes for {name}{shape:?}");
        return Err((Fault::SizeMismatch, problem));
    }
    let out_of_range = |_| (Fault::OutOfRange, format!("its bytes end {end} bytes after the header"));
    let position = |offset: u64| usize::try_from(offset.saturating_add(data)).map_err(out_of_range);
    let dims = shape.iter().map(|&dim| usize::try_from(dim));
    let shape: Shape =
        dims.collect::<Result<_, _>>().map_err(|_| (Fault::SizeMismatch, format!("shape {shape:?}")))?;
    let entry = Entry { key: key.to_owned(), dtype: dtype_of(dtype, name), shape, bytes: length };
    Ok(Located { entry, start: position(start)?, end: position(end)? })
}

/// Demands that the tensors follow each other without a gap or an overlap, and end where the file does.
fn check_places(path: &Path, located: &mut [Located], data: usize, there: usize) -> Result<()> {
    located.sort_by_key(|one| (one.start, one.end));
    let (mut expected, end) = (data, data + there);
    for Located { entry, start, end: own_end } in located.iter() {
        if *start != expected {
            let (fault, problem) = if *own_end > end {
                let problem = format!("its bytes {start} to {own_end} lie outside the file of {end} bytes");
                (Fault::OutOfRange, problem)
            } else if *start < expected {
                (Fault::MalformedEntry, "its bytes overlap those of another tensor".to_owned())
            } else {
                (Fault::MalformedEntry, format!("the bytes from {expected} on belong to no tensor"))
            };
            return Err(Error::format(path, fault, problem).at_offset(*start as u64).of_tensor(&entry.key));
        }
        if *own_end > end {
            let problem = format!("the file ends at {end}, the tensor at {own_end}");
            let error = Error::format(path, Fault::Truncated, problem);
            return Err(error.at_offset(end as u64).of_tensor(&entry.key));
        }
        expected = *own_end;
    }
    if expected != end {
        let problem = format!("{} bytes follow the last tensor", end - expected);
        return Err(Error::format(path, Fault::OutOfRange, problem).at_offset(expected as u64));
    }
    Ok(())
}

/// The crate's dtype, or the format's own.
fn dtype_of(dtype: Dtype, name: String) -> StoredDType {
    DType::ALL.into_iter().find(|&own| name_of(own) == dtype).map_or(StoredDType::Other(name), Into::into)
}

/// The format's name of a dtype.
pub(super) fn name_of(dtype: DType) -> Dtype {
    match dtype {
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::U8 => Dtype::U8,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::U64 => Dtype::U64,
        DType::Bool => Dtype::BOOL,
    }
}
