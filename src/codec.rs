//! The one place that knows the binary encoding of small serde values: headers and op attributes, never tensors.

use bincode::serde::decode_from_slice;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Bytes that a value may claim for each byte that encodes it: a small number takes one byte and claims sixteen at most.
const CLAIM: usize = 16;

pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    bincode::serde::encode_to_vec(value, bincode::config::standard())
        .map_err(|e| Error::usage("encode", e.to_string(), "use serialisable attributes only"))
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    // A broken length must not allocate more than a multiple of the bytes that are there. Limits are part of a type, so there are
    // a few of them.
    let config = bincode::config::standard();
    let claims = bytes.len().saturating_mul(CLAIM);
    let decoded = if claims <= 1 << 12 {
        decode_from_slice(bytes, config.with_limit::<{ 1 << 12 }>())
    } else if claims <= 1 << 16 {
        decode_from_slice(bytes, config.with_limit::<{ 1 << 16 }>())
    } else if claims <= 1 << 20 {
        decode_from_slice(bytes, config.with_limit::<{ 1 << 20 }>())
    } else if claims <= 1 << 24 {
        decode_from_slice(bytes, config.with_limit::<{ 1 << 24 }>())
    } else if claims <= 1 << 28 {
        decode_from_slice(bytes, config.with_limit::<{ 1 << 28 }>())
    } else {
        decode_from_slice(bytes, config.with_limit::<{ usize::MAX }>())
    };
    let (value, used) = decoded
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
