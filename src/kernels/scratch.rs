//! Working memory of a thread, kept from one call to the next.

use std::cell::RefCell;

/// A type of which any bits are a value, with no more alignment than a cache line.
///
/// # Safety
/// As said.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: numbers have no invalid bits.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for f64 {}
// SAFETY: as above.
unsafe impl Plain for isize {}

/// 64 bytes, a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; 8]);

thread_local! {
    static FREE: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// Buffers above this size go back to the system after use.
const KEPT_BYTES: usize = 8 << 20;

/// Calls `f` with `len` elements on a cache line boundary that hold whatever an earlier call left there.
pub(crate) fn with_scratch<T: Plain, R>(len: usize, f: impl FnOnce(&mut [T]) -> R) -> R {
    let lines = (len * size_of::<T>()).div_ceil(size_of::<Line>());
    let mut buffer = FREE.with_borrow_mut(Vec::pop).unwrap_or_default();
    if buffer.len() < lines {
        buffer.clear();
        buffer.resize(lines, Line([0; 8]));
    }
    // SAFETY: the buffer has room for `len` elements of `T`, aligned to more than `T` needs. It is initialised, and any
    // bits are a `T`. It is ours until `f` returns.
    let slice = unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast::<T>(), len) };
    let result = f(slice);
    if buffer.len() * size_of::<Line>() <= KEPT_BYTES {
        FREE.with_borrow_mut(|free| free.push(buffer));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_buffers_are_distinct_and_aligned() {
        with_scratch(100, |a: &mut [f32]| {
            a.fill(1.0);
            with_scratch(50, |b: &mut [f64]| {
                b.fill(2.0);
                assert_eq!(b.as_ptr() as usize % 64, 0);
            });
            assert!(a.iter().all(|&a| a == 1.0));
            assert_eq!(a.len(), 100);
        });
    }

    #[test]
    fn an_empty_buffer_is_fine() {
        with_scratch(0, |a: &mut [f32]| assert!(a.is_empty()));
    }
}
