//! The container of this library: one file.
//!
//! | part            | bytes                                                                                      |
//! |-----------------|--------------------------------------------------------------------------------------------|
//! | magic           | `CPLTCKPT`                                                                                 |
//! | version         | `u32`                                                                                      |
//! | checksum        | `u32`: CRC-32C of everything from the next field to the end of the tensors' checksums      |
//! | header length   | `u64`                                                                                      |
//! | header          | [`Header`], as the codec writes it                                                         |
//! | checksums       | a `u32` for each tensor, CRC-32C of its bytes                                              |
//! | tensors         | the elements of each, beginning at a multiple of 64 bytes, with zeros between              |
//!
//! All numbers are little-endian. A change of the header's fields or of this order is another version.

mod header;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use super::checksum::{combine, extend};
use crate::kernels::parallel;

pub(crate) use reader::NativeFile;
pub(crate) use writer::write;

/// What the names of such files end in.
pub(crate) const EXTENSION: &str = "couplet";

const MAGIC: &[u8; 8] = b"CPLTCKPT";
const VERSION: u32 = 1;
/// Where the header begins.
const FIXED: usize = 24;
/// Where the bytes begin that the checksum of the header covers.
const COVERED: usize = 16;
/// What the places of tensors are multiples of.
const ALIGNMENT: u64 = 64;
/// Bytes that one thread reads at a time.
const CHUNK: usize = 1 << 22;

/// The checksum of bytes, by pieces on several threads.
fn checksum(bytes: &[u8]) -> u32 {
    let mut pieces = vec![0; bytes.len().div_ceil(CHUNK)];
    parallel::for_each_chunk_mut(&mut pieces, 1, |i, piece| {
        piece[0] = extend(0, &bytes[i * CHUNK..bytes.len().min((i + 1) * CHUNK)]);
    });
    let lengths = bytes.chunks(CHUNK).map(<[u8]>::len);
    let both = pieces.into_iter().zip(lengths);
    both.reduce(|(crc, length), (piece, more)| (combine(crc, piece, more), length + more))
        .map_or(0, |(crc, _)| crc)
}
