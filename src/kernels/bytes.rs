//! Elements as bytes, in little-endian order on every machine.

use half::{bf16, f16};

/// The bytes of some elements where they lie, on machines that hold them in little-endian order.
pub(crate) fn in_place<T: Bytes>(x: &[T]) -> Option<&[u8]> {
    if cfg!(target_endian = "big") {
        return None;
    }
    // SAFETY: the pointer and the number of bytes are those of one slice, which stays borrowed; the types that implement
    // `Bytes` are numbers and bool, which have no padding, so that all their bytes are initialised.
    Some(unsafe { std::slice::from_raw_parts(x.as_ptr().cast::<u8>(), size_of_val(x)) })
}

/// A type whose values have a fixed number of bytes.
pub(crate) trait Bytes: Sized {
    /// Appends the bytes of `x` to `y`.
    fn write(x: &[Self], y: &mut Vec<u8>);

    /// Reads as many values as `y` holds from `x`, which has the bytes of so many. Returns whether all are values of the
    /// type; every pattern of bits is one, but for `bool`.
    fn read(x: &[u8], y: &mut [Self]) -> bool;
}

macro_rules! number {
    ($($t:ty),*) => {$(
        impl Bytes for $t {
            fn write(x: &[Self], y: &mut Vec<u8>) {
                const SIZE: usize = size_of::<$t>();
                let start = y.len();
                y.resize(start + x.len() * SIZE, 0);
                for (y, x) in y[start..].chunks_exact_mut(SIZE).zip(x) {
                    y.copy_from_slice(&x.to_le_bytes());
                }
            }

            fn read(x: &[u8], y: &mut [Self]) -> bool {
                let (values, _) = x.as_chunks::<{ size_of::<$t>() }>();
                for (y, x) in y.iter_mut().zip(values) {
                    *y = <$t>::from_le_bytes(*x);
                }
                true
            }
        }
    )*};
}

number!(f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64);

impl Bytes for bool {
    fn write(x: &[Self], y: &mut Vec<u8>) {
        y.extend(x.iter().map(|&x| u8::from(x)));
    }

    fn read(x: &[u8], y: &mut [Self]) -> bool {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = x == 1;
        }
        x.iter().all(|&x| x <= 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_byte_comes_first() {
        let mut bytes = vec![9];
        u16::write(&[0x0102, 0xfffe], &mut bytes);
        assert_eq!(bytes, [9, 2, 1, 0xfe, 0xff]);
        let mut back = [0u16; 2];
        assert!(u16::read(&bytes[1..], &mut back));
        assert_eq!(back, [0x0102, 0xfffe]);
    }

    #[test]
    fn every_pattern_of_bits_of_a_float_is_kept() {
        let (mut bytes, mut back) = (Vec::new(), [0.0f32; 3]);
        let x = [f32::from_bits(0x7fc1_2345), -0.0, f32::from_bits(1)];
        f32::write(&x, &mut bytes);
        assert!(f32::read(&bytes, &mut back));
        assert_eq!(back.map(f32::to_bits), x.map(f32::to_bits));
    }

    #[test]
    fn a_byte_that_is_no_bool_is_noticed() {
        let mut back = [false; 2];
        assert!(bool::read(&[1, 0], &mut back) && back == [true, false]);
        assert!(!bool::read(&[1, 2], &mut back));
    }
}
