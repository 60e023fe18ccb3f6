//! Tensors of variants in a data file: messages that are verified and copied, not understood.
//!
//! ```text
//! for each: varint length · bytes · masked checksum so far, u32
//! ```
//!
//! The checksum runs on from element to element, over the lengths as `u64`, the bytes and the checksums themselves.

use super::record::Problem;
use super::{checksum, varint};
use crate::error::Fault;

/// The checksum of a tensor of `count` variants that lies in `bytes`; what is wrong with them otherwise.
pub(super) fn verify(bytes: &[u8], count: usize) -> Result<u32, Problem> {
    let (mut rest, mut crc) = (bytes, 0);
    // Each takes five bytes at least: the loop ends with them.
    for i in 0..count {
        let malformed =
            || (Fault::MalformedTensor, format!("variant {i} of {count} does not fit into its bytes"));
        let length = varint::read(&mut rest).ok_or_else(malformed)?;
        let size = usize::try_from(length).map_err(|_| malformed())?;
        let value = rest.split_off(..size).ok_or_else(malformed)?;
        let stored = rest.split_off(..4).ok_or_else(malformed)?;
        crc = checksum::extend(checksum::extend(crc, &length.to_le_bytes()), value);
        if stored != checksum::mask(crc).to_le_bytes() {
            return Err((
                Fault::TensorChecksum,
                format!("variant {i} of {count} does not have its checksum"),
            ));
        }
        crc = checksum::extend(crc, stored);
    }
    if !rest.is_empty() {
        return Err((Fault::SizeMismatch, format!("{} bytes too many behind {count} variants", rest.len())));
    }
    Ok(crc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_verified_one_after_another() {
        let first = checksum::extend(checksum::extend(0, &[2, 0, 0, 0, 0, 0, 0, 0]), b"ab");
        let stored = checksum::mask(first).to_le_bytes();
        let second = checksum::extend(checksum::extend(first, &stored), &[0; 8]);
        let bytes = [&[2, b'a', b'b'][..], &stored, &[0], &checksum::mask(second).to_le_bytes()].concat();
        let all = checksum::extend(second, &checksum::mask(second).to_le_bytes());
        assert_eq!(verify(&bytes, 2), Ok(all));
        assert_eq!(verify(&[], 0), Ok(0));
        for (bytes, count, fault) in [
            (&bytes[..], 3, Fault::MalformedTensor),
            (&bytes, 1, Fault::SizeMismatch),
            (&bytes[1..], 1, Fault::MalformedTensor),
            (&[0, 1, 2, 3, 4], 1, Fault::TensorChecksum),
        ] {
            assert_eq!(verify(bytes, count).unwrap_err().0, fault);
        }
    }
}
