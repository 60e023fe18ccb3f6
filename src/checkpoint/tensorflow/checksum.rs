//! The checksum of tables and tensors, and the masked form that is stored.

pub(super) use crate::checkpoint::checksum::extend;

/// The form in which a checksum is stored: of bytes that hold checksums themselves, the plain one would be weak.
pub(super) fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_stored_masked() {
        // The check value of CRC-32C, and the checksum of nothing.
        assert_eq!(mask(0xe306_9283), 0xc78a_b0e5);
        assert_eq!(mask(extend(0, b"")), 0xa282_ead8);
    }
}
