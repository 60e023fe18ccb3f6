//! The checksum of tables and tensors: CRC-32C (Castagnoli), and the masked form that is stored.

/// The checksum of the bytes that `crc` belongs to with `bytes` after them. That of no bytes is 0.
pub(super) fn extend(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

/// The form in which a checksum is stored: of bytes that hold checksums themselves, the plain one would be weak.
pub(super) fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_checksums_are_met_in_one_piece_or_two() {
        // The check value of CRC-32C, and the 32 zero bytes of RFC 3720, appendix B.4.
        assert_eq!(extend(0, b"123456789"), 0xe306_9283);
        assert_eq!(extend(extend(0, b"1234"), b"56789"), 0xe306_9283);
        assert_eq!(extend(0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(mask(0xe306_9283), 0xc78a_b0e5);
        assert_eq!(mask(extend(0, b"")), 0xa282_ead8);
    }
}
