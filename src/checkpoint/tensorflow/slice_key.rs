//! The keys of slices: what a partitioned tensor's parts are stored under, in a code that sorts as its values do.
//!
//! ```text
//! key = 00 · bytes of the name · rank · for each axis: start, length
//! ```
//!
//! An axis that a slice spans as a whole has the length -1.

use super::record::Extent;

/// The key of a slice of the tensor with this key.
pub(super) fn slice_key(key: &[u8], slice: &[Extent]) -> Vec<u8> {
    let mut code = vec![0];
    write_bytes(key, &mut code);
    write_unsigned(slice.len() as u64, &mut code);
    for extent in slice {
        write_signed(extent.start, &mut code);
        write_signed(extent.length.unwrap_or(-1), &mut code);
    }
    code
}

/// Bytes with an end mark; two bytes stand for one that would look like the mark.
fn write_bytes(bytes: &[u8], code: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            0 => code.extend([0, 0xff]),
            0xff => code.extend([0xff, 0]),
            byte => code.push(byte),
        }
    }
    code.extend([0, 1]);
}

/// The number of bytes that are not leading zeros, and they, the highest first.
fn write_unsigned(value: u64, code: &mut Vec<u8>) {
    let zeros = value.leading_zeros() as usize / 8;
    code.push((8 - zeros) as u8);
    code.extend(&value.to_be_bytes()[zeros..]);
}

/// As many one bits as there are bytes, a zero, and the value; the complement of -1 - value if it is negative.
fn write_signed(value: i64, code: &mut Vec<u8>) {
    let magnitude = if value < 0 { !value } else { value } as u128;
    // k bytes leave 7 k bits beside the k ones, one of which is the zero: it takes part as the sign.
    let bits = 128 - magnitude.leading_zeros();
    let length = (bits / 7 + 1) as usize;
    let prefix = ((1u128 << length) - 1) << (7 * length);
    let word = (prefix | magnitude).to_be_bytes();
    let negative = value < 0;
    code.extend(word[16 - length..].iter().map(|&byte| if negative { !byte } else { byte }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(start: i64, length: Option<i64>) -> Extent {
        Extent { start, length }
    }

    fn signed(value: i64) -> Vec<u8> {
        let mut code = Vec::new();
        write_signed(value, &mut code);
        code
    }

    #[test]
    fn numbers_have_the_codes_of_the_format() {
        for (value, code) in [
            (0, &[0x80][..]),
            (4, &[0x84]),
            (63, &[0xbf]),
            (64, &[0xc0, 0x40]),
            (70, &[0xc0, 0x46]),
            (8930, &[0xe0, 0x22, 0xe2]),
            (99930, &[0xe1, 0x86, 0x5a]),
            (-1, &[0x7f]),
            (-64, &[0x40]),
            (-65, &[0x3f, 0xbf]),
        ] {
            assert_eq!(signed(value), code, "{value}");
        }
        // Nine bytes: eight ones, and in the next byte another before the zero. Ten: two more before it.
        assert_eq!(signed(1 << 55), [0xff, 0x80, 0x80, 0, 0, 0, 0, 0, 0]);
        assert_eq!(signed(i64::MAX), [0xff, 0xc0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn codes_sort_as_the_numbers_do() {
        let mut values: Vec<i64> = (0..63).flat_map(|bit| [1 << bit, (1 << bit) - 1, -(1 << bit)]).collect();
        values.sort_unstable();
        values.dedup();
        assert!(values.windows(2).all(|pair| signed(pair[0]) < signed(pair[1])));
    }

    #[test]
    fn a_slice_has_its_key() {
        // Columns 2 to 6 of `w` with shape [4, 6].
        let key = slice_key(b"w", &[extent(0, Some(4)), extent(2, Some(4))]);
        assert_eq!(key, [0, b'w', 0, 1, 1, 2, 0x80, 0x84, 0x82, 0x84]);
        assert_eq!(slice_key(b"", &[]), [0, 0, 1, 0]);
        assert_eq!(slice_key(&[0, 255], &[extent(0, None)]), [0, 0, 255, 255, 0, 0, 1, 1, 1, 0x80, 0x7f]);
    }
}
