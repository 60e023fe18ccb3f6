//! Integers in base 128: seven bits a byte, the lowest first, the top bit set where more follow.

/// Appends `value`.
pub(super) fn write(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes an integer from the front of `bytes`; `None` if they end within it, or it has more than 64 bits.
pub(super) fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if (bits << shift) >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Takes an integer that is a length or a place in memory.
pub(super) fn read_size(bytes: &mut &[u8]) -> Option<usize> {
    read(bytes).and_then(|value| usize::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_length_come_back() {
        for value in (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit]).chain([u64::MAX]) {
            let mut bytes = Vec::new();
            write(value, &mut bytes);
            assert_eq!(bytes.len(), (64 - (value | 1).leading_zeros()).div_ceil(7) as usize);
            let mut rest = bytes.as_slice();
            assert_eq!(read(&mut rest), Some(value));
            assert!(rest.is_empty());
            assert_eq!(read(&mut &bytes[..bytes.len() - 1]), None);
        }
        let mut bytes = Vec::new();
        write(300, &mut bytes);
        assert_eq!(bytes, [0xac, 0x02]);
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        assert_eq!(read(&mut [0xff; 11].as_slice()), None);
        let mut largest = [0xff; 10];
        largest[9] = 1;
        assert_eq!(read(&mut largest.as_slice()), Some(u64::MAX));
        largest[9] = 2;
        assert_eq!(read(&mut largest.as_slice()), None);
    }
}
