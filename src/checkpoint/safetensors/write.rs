//! Writing safetensors files.

use std::io::Write;
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as NameError, StrDeserializer};

use super::super::replace::replace;
use super::super::stored::Stored;
use super::super::temporary::file_error;
use super::header::{METADATA, name_of};
use crate::error::{Error, Result};

/// Writes tensors under their keys, each of which comes once. The elements go to the file in steps, without a copy of
/// a whole tensor unless it is not contiguous.
///
/// # Errors
/// A key is not possible, a tensor is of strings or of a type that the format does not have, or the file cannot be written.
pub(crate) fn write(path: &Path, tensors: &[(String, Stored)]) -> Result<()> {
    let mut order = Vec::with_capacity(tensors.len());
    for (key, stored) in tensors {
        if key == METADATA {
            return Err(refuse(path, key, "the format keeps this key for itself"));
        }
        order.push((dtype_of(path, key, stored)?, key, stored));
    }
    // Wide elements come first, so that each tensor lies where its elements are aligned.
    order.sort_by(|(a, key_a, _), (b, key_b, _)| b.bitsize().cmp(&a.bitsize()).then(key_a.cmp(key_b)));
    let (mut infos, mut end) = (Vec::with_capacity(order.len()), 0usize);
    for (dtype, key, stored) in &order {
        let size = stored.shape().iter().product::<usize>() * dtype.bitsize() / 8;
        let info =
            TensorInfo { dtype: *dtype, shape: stored.shape().to_vec(), data_offsets: (end, end + size) };
        end += size;
        infos.push(((*key).clone(), info));
    }
    let malformed = |problem: String| Error::File { path: path.display().to_string(), problem };
    let metadata = Metadata::new(None, infos).map_err(|e| malformed(e.to_string()))?;
    let mut header = serde_json::to_vec(&metadata).map_err(|e| malformed(e.to_string()))?;
    header.resize(header.len().next_multiple_of(8), b' ');

    let failed = |e: std::io::Error| file_error(path, &e);
    replace(path, |file| {
        file.write_all(&(header.len() as u64).to_le_bytes()).map_err(failed)?;
        file.write_all(&header).map_err(failed)?;
        order.into_iter().try_for_each(|(_, key, stored)| match stored {
            Stored::Tensor(x) => x.each_bytes(|bytes| file.write_all(bytes).map_err(failed)),
            Stored::Raw(raw) => file.write_all(&raw.bytes).map_err(failed),
            Stored::Strings(_) => Err(refuse(path, key, STRINGS)),
        })
    })
}

const STRINGS: &str = "it holds strings, which the format does not have";

fn refuse(path: &Path, key: &str, problem: &str) -> Error {
    Error::File { path: path.display().to_string(), problem: format!("{key:?} cannot be written: {problem}") }
}

/// The format's dtype, after a check that the elements are as many as the shape asks for.
fn dtype_of(path: &Path, key: &str, stored: &Stored) -> Result<Dtype> {
    let raw = match stored {
        Stored::Tensor(x) => return Ok(name_of(x.dtype())),
        Stored::Strings(_) => return Err(refuse(path, key, STRINGS)),
        Stored::Raw(raw) => raw,
    };
    let deserializer: StrDeserializer<'_, NameError> = raw.dtype.as_str().into_deserializer();
    let Ok(dtype) = Dtype::deserialize(deserializer) else {
        return Err(refuse(path, key, &format!("the format has no dtype {}", raw.dtype)));
    };
    let bits = raw.shape.iter().try_fold(dtype.bitsize(), |bits, &dim| bits.checked_mul(dim));
    if bits.is_none_or(|bits| bits % 8 != 0 || bits / 8 != raw.bytes.len()) {
        return Err(refuse(path, key, &format!("{} bytes for {}{}", raw.bytes.len(), raw.dtype, raw.shape)));
    }
    Ok(dtype)
}
