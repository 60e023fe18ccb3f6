//! The checksum of checkpoint files: CRC-32C (Castagnoli), RFC 3720, appendix B.4.

use crc_fast::{CrcAlgorithm, Digest};

const ALGORITHM: CrcAlgorithm = CrcAlgorithm::Crc32Iscsi;

/// The checksum of the bytes that `crc` belongs to with `bytes` after them. That of no bytes is 0.
pub(crate) fn extend(crc: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(ALGORITHM, u64::from(!crc));
    digest.update(bytes);
    digest.finalize() as u32
}

/// The checksum of bytes that follow each other, from those of both parts and the length of the second.
pub(crate) fn combine(first: u32, second: u32, length: usize) -> u32 {
    crc_fast::checksum_combine(ALGORITHM, first.into(), second.into(), length as u64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_checksums_are_met_in_one_piece_or_two() {
        // The check value of CRC-32C, and the 32 zero bytes of RFC 3720, appendix B.4.
        assert_eq!(extend(0, b"123456789"), 0xe306_9283);
        assert_eq!(extend(extend(0, b"1234"), b"56789"), 0xe306_9283);
        assert_eq!(combine(extend(0, b"1234"), extend(0, b"56789"), 5), 0xe306_9283);
        assert_eq!(combine(extend(0, b"1234"), 0, 0), extend(0, b"1234"));
        assert_eq!(extend(0, &[0; 32]), 0x8a91_36aa);
    }
}
