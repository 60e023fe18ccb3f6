//! Copies of strided blocks to contiguous memory, by element size alone.

use std::mem::MaybeUninit;
use std::ops::Range;

/// Below this number of columns a block is copied column by column, in longer loops.
const FEW_COLUMNS: usize = 16;
/// Rows and columns of what is transposed at a time.
const SQUARE: usize = 4;

/// Bytes between an element and the one `i` strides on.
pub(crate) fn distance(i: usize, stride: isize, size: usize) -> isize {
    i.cast_signed() * stride * size.cast_signed()
}

/// `y[r, c] = x[r * down + c * across]` for elements of `size` bytes; `y` is row-major.
///
/// # Safety
/// Those elements of `x` may be read, `y` has room for `rows * columns` of them, and the two do not overlap.
pub(crate) unsafe fn tile(
    size: usize,
    x: *const u8,
    down: isize,
    across: isize,
    y: *mut u8,
    rows: usize,
    columns: usize,
) {
    // SAFETY: the caller's promise; the types below have the size of the elements and are accessed unaligned.
    unsafe {
        match size {
            1 => tile_of::<u8>(x.cast(), down, across, y.cast(), rows, columns),
            2 => tile_of::<u16>(x.cast(), down, across, y.cast(), rows, columns),
            4 => tile_of::<u32>(x.cast(), down, across, y.cast(), rows, columns),
            8 => tile_of::<u64>(x.cast(), down, across, y.cast(), rows, columns),
            size => {
                for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
                    let x = x.offset(distance(r, down, size) + distance(c, across, size));
                    x.copy_to_nonoverlapping(y.add((r * columns + c) * size), size);
                }
            }
        }
    }
}

/// [`tile`] for elements of the size of `T`; they may hold uninitialised bytes.
///
/// # Safety
/// As for [`tile`].
unsafe fn tile_of<T: Copy>(
    x: *const MaybeUninit<T>,
    down: isize,
    across: isize,
    y: *mut MaybeUninit<T>,
    rows: usize,
    columns: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if rows >= SQUARE && (down.unsigned_abs() < across.unsigned_abs() || columns < FEW_COLUMNS) {
            let (r0, c0) = if down == 1 { transpose(x, across, y, rows, columns) } else { (0, 0) };
            copy_columns(x, down, across, y, columns, r0..rows, 0..c0);
            copy_columns(x, down, across, y, columns, 0..rows, c0..columns);
            return;
        }
        for r in 0..rows {
            let (x, y) = (x.offset(r.cast_signed() * down), y.add(r * columns));
            match across {
                1 => x.cast::<u8>().copy_to_nonoverlapping(y.cast(), columns * size_of::<T>()),
                0 => {
                    let value = x.read_unaligned();
                    (0..columns).for_each(|c| y.add(c).write_unaligned(value));
                }
                _ => {
                    for c in 0..columns {
                        y.add(c).write_unaligned(x.offset(c.cast_signed() * across).read_unaligned());
                    }
                }
            }
        }
    }
}

/// Copies parts of some columns, one column after the other; `pitch` is the number of columns of `y`.
///
/// # Safety
/// As for [`tile`], for `rows` and `columns` of it.
unsafe fn copy_columns<T: Copy>(
    x: *const MaybeUninit<T>,
    down: isize,
    across: isize,
    y: *mut MaybeUninit<T>,
    pitch: usize,
    rows: Range<usize>,
    columns: Range<usize>,
) {
    for c in columns {
        for r in rows.clone() {
            // SAFETY: the caller's promise.
            unsafe {
                let x = x.offset(r.cast_signed() * down + c.cast_signed() * across);
                y.add(r * pitch + c).write_unaligned(x.read_unaligned());
            }
        }
    }
}

/// Copies as many whole squares as there are, where elements of four bytes follow each other down the columns of `x`;
/// returns the number of rows and columns done.
///
/// # Safety
/// As for [`tile`], with `down == 1`.
#[cfg(target_arch = "x86_64")]
unsafe fn transpose<T: Copy>(
    x: *const MaybeUninit<T>,
    across: isize,
    y: *mut MaybeUninit<T>,
    rows: usize,
    columns: usize,
) -> (usize, usize) {
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm_storeu_si128, _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi32,
        _mm_unpacklo_epi64,
    };
    if size_of::<T>() != 4 {
        return (0, 0);
    }
    let (rows, pitch, columns) = (rows / SQUARE * SQUARE, columns, columns / SQUARE * SQUARE);
    for c in (0..columns).step_by(SQUARE) {
        for r in (0..rows).step_by(SQUARE) {
            // SAFETY: SSE2 is part of x86-64. The squares lie within the rows and columns of the caller's promise.
            unsafe {
                let at = |i: usize| x.offset((c + i).cast_signed() * across).add(r);
                let [a, b, c_, d] = std::array::from_fn(|i| _mm_loadu_si128(at(i).cast()));
                let (low, low2) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c_, d));
                let (high, high2) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c_, d));
                let y = y.add(r * pitch + c);
                _mm_storeu_si128(y.cast(), _mm_unpacklo_epi64(low, low2));
                _mm_storeu_si128(y.add(pitch).cast(), _mm_unpackhi_epi64(low, low2));
                _mm_storeu_si128(y.add(2 * pitch).cast(), _mm_unpacklo_epi64(high, high2));
                _mm_storeu_si128(y.add(3 * pitch).cast(), _mm_unpackhi_epi64(high, high2));
            }
        }
    }
    (rows, columns)
}

/// No squares on other processors.
///
/// # Safety
/// None needed.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn transpose<T: Copy>(
    _: *const MaybeUninit<T>,
    _: isize,
    _: *mut MaybeUninit<T>,
    _: usize,
    _: usize,
) -> (usize, usize) {
    (0, 0)
}

/// Fills `y[..size]` with repeats of `y[..len]`.
///
/// # Safety
/// `size` bytes at `y` may be written, and the first `len` of them read.
pub(crate) unsafe fn repeat(y: *mut u8, len: usize, size: usize) {
    let mut done = len;
    while done < size {
        let next = done.min(size - done);
        // SAFETY: `done + next <= size`, and `next <= done` keeps the two parts apart.
        unsafe { y.copy_to_nonoverlapping(y.add(done), next) };
        done += next;
    }
}
