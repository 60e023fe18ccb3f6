//! The one place that knows the binary encoding of small serde values: headers and op attributes, never tensors.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Most bytes a decoded value may claim: headers are small, and a broken length must not allocate.
const LIMIT: usize = 64 << 20;

pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    bincode::serde::encode_to_vec(value, bincode::config::standard())
        .map_err(|e| Error::usage("encode", e.to_string(), "use serialisable attributes only"))
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let config = bincode::config::standard().with_limit::<LIMIT>();
    let (value, used) = bincode::serde::decode_from_slice(bytes, config)
        .map_err(|e| Error::usage("decode", e.to_string(), "give bytes that were written by encode"))?;
    if used != bytes.len() {
        return Err(Error::usage(
            "decode",
            format!("{} bytes too many", bytes.len() - used),
            "give one value",
        ));
    }
    Ok(value)
}
