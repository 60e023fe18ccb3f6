//! Tensors of strings in a data file.
//!
//! ```text
//! varint length of each · masked checksum of the lengths, u32 · bytes of each
//! ```
//!
//! The lengths enter the checksums as `u32`, or as `u64` where they need it, and not as they are stored.

use super::record::Problem;
use super::{checksum, varint};
use crate::error::Fault;

/// What stands before the strings in the file, and the checksum of it.
pub(super) fn head(values: &[Vec<u8>]) -> (Vec<u8>, u32) {
    let (mut bytes, mut crc) = (Vec::new(), 0);
    for value in values {
        varint::write(value.len() as u64, &mut bytes);
        crc = extend_by_length(crc, value.len() as u64, false);
    }
    let stored = checksum::mask(crc).to_le_bytes();
    bytes.extend_from_slice(&stored);
    (bytes, checksum::extend(crc, &stored))
}

/// The `count` strings in all bytes of a tensor, and the checksum over all; what is wrong with the bytes otherwise.
pub(super) fn decode(bytes: &[u8], count: usize, big_endian: bool) -> Result<(Vec<Vec<u8>>, u32), Problem> {
    // Every string takes a byte at least, so that `count` cannot ask for more memory than there are bytes.
    if bytes.len().checked_sub(4).is_none_or(|room| room < count) {
        return Err((Fault::SizeMismatch, format!("{count} strings in {} bytes", bytes.len())));
    }
    let mut rest = bytes;
    let mut lengths = Vec::with_capacity(count);
    let mut crc = 0;
    for i in 0..count {
        let length = varint::read(&mut rest)
            .ok_or_else(|| (Fault::MalformedTensor, format!("string {i} of {count} has no length")))?;
        crc = extend_by_length(crc, length, big_endian);
        lengths.push(length);
    }
    let (stored, mut rest) = rest.split_first_chunk::<4>().ok_or_else(|| {
        (Fault::MalformedTensor, "the lengths of the strings leave no room for their checksum".to_owned())
    })?;
    let masked = checksum::mask(crc);
    if *stored != if big_endian { masked.to_be_bytes() } else { masked.to_le_bytes() } {
        return Err((
            Fault::TensorChecksum,
            "the lengths of the strings do not have their checksum".to_owned(),
        ));
    }
    let crc = checksum::extend(checksum::extend(crc, stored), rest);
    let mut values = Vec::with_capacity(count);
    for length in lengths {
        let value =
            usize::try_from(length).ok().and_then(|length| rest.split_off(..length)).ok_or_else(|| {
                (Fault::OutOfRange, format!("a string of {length} bytes, {} are left", rest.len()))
            })?;
        values.push(value.to_vec());
    }
    if !rest.is_empty() {
        return Err((Fault::SizeMismatch, format!("{} bytes too many behind {count} strings", rest.len())));
    }
    Ok((values, crc))
}

fn extend_by_length(crc: u32, length: u64, big_endian: bool) -> u32 {
    match (u32::try_from(length), big_endian) {
        (Ok(length), false) => checksum::extend(crc, &length.to_le_bytes()),
        (Ok(length), true) => checksum::extend(crc, &length.to_be_bytes()),
        (Err(_), false) => checksum::extend(crc, &length.to_le_bytes()),
        (Err(_), true) => checksum::extend(crc, &length.to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(values: &[Vec<u8>]) -> Vec<u8> {
        [head(values).0, values.concat()].concat()
    }

    #[test]
    fn strings_have_the_bytes_of_the_format() {
        assert_eq!(bytes(&[]), [0xd8, 0xea, 0x82, 0xa2]);
        assert_eq!(bytes(&[Vec::new()]), [0, 0xa6, 0x7b, 0x11, 0x3a]);
        assert_eq!(bytes(&[b"abc".to_vec()]), [3, 0x63, 0x3f, 0x7f, 0x28, b'a', b'b', b'c']);
    }

    #[test]
    fn strings_come_back_with_one_checksum() {
        let values: Vec<Vec<u8>> = [0, 127, 128, 300].map(|n| vec![n as u8; n]).to_vec();
        let (head, crc) = head(&values);
        let (back, all) = decode(&bytes(&values), 4, false).unwrap();
        assert_eq!(back, values);
        assert_eq!(all, checksum::extend(crc, &values.concat()));
        assert_eq!(head.len(), 1 + 1 + 2 + 2 + 4);
    }

    #[test]
    fn other_bytes_are_refused() {
        let good = bytes(&[b"ab".to_vec(), b"c".to_vec()]);
        assert!(decode(&good, 2, false).is_ok());
        let fault = |bytes: &[u8], count| decode(bytes, count, false).unwrap_err().0;
        assert_eq!(fault(&good, usize::MAX), Fault::SizeMismatch);
        assert_eq!(fault(&good, 3), Fault::TensorChecksum);
        assert_eq!(fault(&good[..good.len() - 1], 2), Fault::OutOfRange);
        assert_eq!(fault(&[good.as_slice(), b"x"].concat(), 2), Fault::SizeMismatch);
        assert_eq!(fault(&[0xff; 20], 2), Fault::MalformedTensor);
        assert_eq!(fault(&[0x80, 0x80, 0x80, 1, 1, 1], 1), Fault::MalformedTensor);
        assert_eq!(fault(&[], 0), Fault::SizeMismatch);
    }
}
