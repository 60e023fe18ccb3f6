//! The index file: a sorted table of keys and values, as LevelDB writes its own.
//!
//! ```text
//! file   = data block* · metaindex block · index block · footer
//! block  = contents · type, u8 · masked checksum of contents and type, u32
//! footer = metaindex handle · index handle · zeros up to byte 40 · magic, u64
//! handle = varint offset · varint size of the contents
//! ```
//!
//! The index block leads from a key no smaller than the last of a data block to the handle of that block.

use std::borrow::Cow;
use std::path::Path;

use super::block::{BlockReader, BlockWriter};
use super::{checksum, varint};
use crate::error::{Error, Fault, Result};

const FOOTER: usize = 48;
const TRAILER: usize = 5;
const MAGIC: [u8; 8] = 0xdb47_7524_8b80_fb57u64.to_le_bytes();

/// The sizes that TensorFlow writes: a block ends at the first, and begins anew before an entry of the second.
const BLOCK: usize = 256 << 10;
const LARGE_ENTRY: usize = 512 << 10;
const RESTART_INTERVAL: usize = 16;

/// The types of blocks.
const PLAIN: u8 = 0;
const SNAPPY: u8 = 1;

/// No Snappy block grows by more: its longest copy makes 64 bytes of 3.
const SNAPPY_GROWTH: usize = 22;

/// Bytes of keys for each byte of the file. More can only come of keys that are made to share almost everything.
const KEY_GROWTH: usize = 64;

/// A table on its way into memory: entries in ascending order of their keys.
#[derive(Debug)]
pub(super) struct TableWriter {
    bytes: Vec<u8>,
    data: BlockWriter,
    index: BlockWriter,
    /// The last key and the handle of a block that the index does not name yet.
    pending: Option<(Vec<u8>, Handle)>,
}

impl TableWriter {
    pub(super) fn new() -> Self {
        let (data, index) = (BlockWriter::new(RESTART_INTERVAL), BlockWriter::new(1));
        TableWriter { bytes: Vec::new(), data, index, pending: None }
    }

    /// Appends an entry. Its key is larger than that of the one before.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        if key.len() + value.len() >= LARGE_ENTRY {
            self.end_block();
        }
        if let Some((last, handle)) = self.pending.take() {
            self.index.add(&separator(&last, key), &handle.encode());
        }
        self.data.add(key, value);
        if self.data.size() >= BLOCK {
            self.end_block();
        }
    }

    /// The bytes of the file.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.end_block();
        if let Some((last, handle)) = self.pending.take() {
            self.index.add(&successor(&last), &handle.encode());
        }
        let metaindex = self.write_block(BlockWriter::new(RESTART_INTERVAL).finish());
        let contents = self.index.finish();
        let index = self.write_block(contents);
        let mut footer = [metaindex.encode(), index.encode()].concat();
        footer.resize(FOOTER - MAGIC.len(), 0);
        footer.extend_from_slice(&MAGIC);
        self.bytes.extend_from_slice(&footer);
        self.bytes
    }

    fn end_block(&mut self) {
        if !self.data.is_empty() {
            let last = self.data.last_key().to_vec();
            let contents = self.data.finish();
            self.pending = Some((last, self.write_block(contents)));
        }
    }

    fn write_block(&mut self, contents: Vec<u8>) -> Handle {
        let handle = Handle { offset: self.bytes.len(), size: contents.len() };
        self.bytes.extend_from_slice(&contents);
        self.bytes.push(PLAIN);
        let crc = checksum::mask(checksum::extend(0, &self.bytes[handle.offset..]));
        self.bytes.extend_from_slice(&crc.to_le_bytes());
        handle
    }
}

/// A short key from `last` up to, but not including, `next`.
fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
    let shared = last.iter().zip(next).take_while(|(a, b)| a == b).count();
    match (last.get(shared), next.get(shared)) {
        (Some(&a), Some(&b)) if a < 255 && a + 1 < b => [&last[..shared], &[a + 1]].concat(),
        _ => last.to_vec(),
    }
}

/// A short key that is no smaller than `last`.
fn successor(last: &[u8]) -> Vec<u8> {
    match last.iter().position(|&byte| byte < 255) {
        Some(at) => [&last[..at], &[last[at] + 1]].concat(),
        None => last.to_vec(),
    }
}

/// Where the contents of a block lie.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Handle {
    offset: usize,
    size: usize,
}

impl Handle {
    fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint::write(self.offset as u64, &mut bytes);
        varint::write(self.size as u64, &mut bytes);
        bytes
    }
}

/// Calls `visit` with every key and value of a table, in ascending order of the keys, and where in the file they lie.
///
/// # Errors
/// The bytes are no table, or a block is damaged: nothing is left out.
pub(super) fn read(
    path: &Path,
    file: &[u8],
    mut visit: impl FnMut(&[u8], &[u8], u64) -> Result<()>,
) -> Result<()> {
    let table = Table::new(path, file)?;
    let index_block = table.index()?;
    let contents = table.contents(index_block)?;
    let mut index = table.open(&contents, index_block)?;

    let mut last: Option<Vec<u8>> = None;
    let (mut end, mut room) = (0, file.len().saturating_mul(KEY_GROWTH));
    while !index.is_at_end() {
        let (_, mut value) = index.next().map_err(|problem| table.malformed(index_block, problem))?;
        let block = table.handle(&mut value, Fault::MalformedBlock, index_block.offset)?;
        if block.offset < end || !value.is_empty() {
            return Err(table.malformed(index_block, "the handles of the data blocks are out of order"));
        }
        end = block.offset + block.size + TRAILER;
        let contents = table.contents(block)?;
        let mut entries = table.open(&contents, block)?;
        // The block as a whole before anything that it says.
        let mut lengths = table.open(&contents, block)?;
        while !lengths.is_at_end() {
            lengths.next().map_err(|problem| table.malformed(block, problem))?;
        }
        while !entries.is_at_end() {
            let at = if matches!(contents, Cow::Borrowed(_)) { entries.position() } else { 0 };
            let (key, value) = entries.next().map_err(|problem| table.malformed(block, problem))?;
            if last.as_deref().is_some_and(|last| last >= key) {
                return Err(table
                    .malformed(block, format!("key {:?} is out of order", key.escape_ascii().to_string())));
            }
            room = room
                .checked_sub(key.len())
                .ok_or_else(|| table.malformed(block, "the keys are many times larger than the file"))?;
            visit(key, value, (block.offset + at) as u64)?;
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
        }
    }
    Ok(())
}

/// A file that ends as a table does.
struct Table<'a> {
    path: &'a Path,
    /// The blocks: the file without its footer.
    blocks: &'a [u8],
    footer: &'a [u8],
}

impl<'a> Table<'a> {
    fn new(path: &'a Path, file: &'a [u8]) -> Result<Self> {
        let Some(length) = file.len().checked_sub(FOOTER) else {
            let problem = format!("{} bytes, but an index has {FOOTER} or more", file.len());
            return Err(Error::format(path, Fault::Truncated, problem));
        };
        let (blocks, footer) = file.split_at(length);
        let (footer, magic) = footer.split_at(FOOTER - MAGIC.len());
        if magic != MAGIC {
            let problem = "the last 8 bytes are not those of an index of TensorFlow";
            return Err(
                Error::format(path, Fault::BadMagic, problem).at_offset((length + footer.len()) as u64)
            );
        }
        Ok(Table { path, blocks, footer })
    }

    /// The index block, and a look at the metaindex block, which says nothing and may be missing.
    fn index(&self) -> Result<Handle> {
        let mut rest = self.footer;
        let at = self.blocks.len();
        let metaindex = self.handle(&mut rest, Fault::MalformedFooter, at)?;
        let index = self.handle(&mut rest, Fault::MalformedFooter, at)?;
        if metaindex != (Handle { offset: 0, size: 0 }) {
            self.contents(metaindex)?;
        }
        Ok(index)
    }

    /// Takes a handle from the front of `bytes`, which stem from the block, or the footer, at `origin`.
    fn handle(&self, bytes: &mut &[u8], malformed: Fault, origin: usize) -> Result<Handle> {
        let (Some(offset), Some(size)) = (varint::read(bytes), varint::read(bytes)) else {
            let problem = "where a block lies should be two numbers of at most 64 bits";
            return Err(Error::format(self.path, malformed, problem).at_offset(origin as u64));
        };
        let end = offset.checked_add(size).and_then(|end| end.checked_add(TRAILER as u64));
        if end.is_none_or(|end| end > self.blocks.len() as u64) {
            let problem = format!(
                "a block of {size} bytes at {offset}, but the footer begins at {}",
                self.blocks.len()
            );
            return Err(Error::format(self.path, Fault::OutOfRange, problem).at_offset(origin as u64));
        }
        // Both lie within a slice.
        Ok(Handle { offset: offset as usize, size: size as usize })
    }

    /// The contents of a block whose checksum is right: borrowed if they are not compressed.
    fn contents(&self, block: Handle) -> Result<Cow<'a, [u8]>> {
        let fault =
            |fault, problem: String| Error::format(self.path, fault, problem).at_offset(block.offset as u64);
        let bytes = &self.blocks[block.offset..][..block.size + TRAILER];
        let (checked, stored) = bytes.split_at(block.size + 1);
        let actual = checksum::mask(checksum::extend(0, checked));
        if actual.to_le_bytes() != stored {
            let problem = format!("a block of {} bytes does not have its checksum", block.size);
            return Err(fault(Fault::BlockChecksum, problem));
        }
        let contents = &checked[..block.size];
        match checked[block.size] {
            PLAIN => Ok(Cow::Borrowed(contents)),
            SNAPPY => {
                let size = snap::raw::decompress_len(contents)
                    .map_err(|e| fault(Fault::MalformedBlock, format!("not a Snappy block: {e}")))?;
                if size > block.size.saturating_mul(SNAPPY_GROWTH) {
                    let problem = format!("{} bytes claim to be {size} compressed ones", block.size);
                    return Err(fault(Fault::MalformedBlock, problem));
                }
                let contents = snap::raw::Decoder::new().decompress_vec(contents);
                let contents =
                    contents.map_err(|e| fault(Fault::MalformedBlock, format!("not a Snappy block: {e}")))?;
                Ok(Cow::Owned(contents))
            }
            other => Err(fault(
                Fault::UnsupportedCompression,
                format!("a block is of type {other}, expected 0 or 1 (Snappy)"),
            )),
        }
    }

    fn open<'b>(&self, contents: &'b [u8], block: Handle) -> Result<BlockReader<'b>> {
        BlockReader::new(contents).map_err(|problem| self.malformed(block, problem))
    }

    fn malformed(&self, block: Handle, problem: impl Into<String>) -> Error {
        Error::format(self.path, Fault::MalformedBlock, problem).at_offset(block.offset as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(file: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut entries = Vec::new();
        read(Path::new("t.index"), file, |key, value, _| {
            entries.push((key.to_vec(), value.to_vec()));
            Ok(())
        })?;
        Ok(entries)
    }

    fn fault(file: &[u8]) -> Fault {
        match entries(file).unwrap_err() {
            Error::Format { fault, .. } => fault,
            e => panic!("{e}"),
        }
    }

    #[test]
    fn keys_between_blocks_are_as_short_as_may_be() {
        for (last, next, between) in [
            ("abcd", "abzz", "abd"), // c < d < z.
            ("abc", "abd", "abc"),   // Nothing lies between c and d.
            ("ab", "abc", "ab"),     // One begins with the other.
            ("a\u{7f}", "b", "a\u{7f}"),
        ] {
            assert_eq!(separator(last.as_bytes(), next.as_bytes()), between.as_bytes());
        }
        assert_eq!(separator(&[255, 1], &[255, 9, 9]), [255, 2]);
        assert_eq!(successor(b"abc"), b"b");
        assert_eq!(successor(&[255, 255, 7, 1]), [255, 255, 8]);
        assert_eq!(successor(&[255, 255]), [255, 255]);
    }

    #[test]
    fn tables_of_no_one_and_several_blocks_come_back() {
        assert!(entries(&TableWriter::new().finish()).unwrap().is_empty());
        let mut writer = TableWriter::new();
        let mut expected = Vec::new();
        for i in 0..2000u32 {
            // 600 kB in all, and an entry that begins a block of its own.
            let size = if i == 700 { LARGE_ENTRY } else { 300 };
            let (key, value) = (format!("key/{i:05}").into_bytes(), vec![i as u8; size]);
            writer.add(&key, &value);
            expected.push((key, value));
        }
        let file = writer.finish();
        assert_eq!(entries(&file).unwrap(), expected);
        let blocks = file.windows(3).filter(|w| w == &[0, 9, 172]).count(); // Shared 0, own 9, the value's 300 = ac 02.
        assert!(blocks >= 2000 / 16, "{blocks} restarts");
    }

    #[test]
    fn every_flipped_bit_is_noticed_or_means_nothing() {
        let mut writer = TableWriter::new();
        for key in ["", "a", "ab", "b"] {
            writer.add(key.as_bytes(), b"value");
        }
        let file = writer.finish();
        let expected = entries(&file).unwrap();
        for bit in 0..8 * file.len() {
            let mut file = file.clone();
            file[bit / 8] ^= 1 << (bit % 8);
            match entries(&file) {
                // The padding of the footer, whose first byte can also be one more digit 0 of the number before it.
                Ok(same) => assert!(same == expected && bit / 8 > file.len() - FOOTER, "bit {bit}"),
                Err(e) => assert!(matches!(e, Error::Format { offset: Some(_), .. }), "{e}"),
            }
        }
        for length in 0..file.len() {
            let expected = if length < FOOTER { Fault::Truncated } else { Fault::BadMagic };
            assert_eq!(fault(&file[..length]), expected);
        }
    }

    #[test]
    fn keys_that_grow_without_end_are_refused() {
        // Each of 20000 entries of 7 bytes repeats a key of 100 kB: 2 GB of keys in a file of 240 kB.
        let mut writer = BlockWriter::new(usize::MAX);
        let mut key = vec![b'k'; 100_000];
        for i in 0..20_000u32 {
            key.truncate(100_000);
            key.extend_from_slice(&i.to_be_bytes());
            writer.add(&key, b"");
        }
        let mut table = TableWriter::new();
        let block = table.write_block(writer.finish());
        table.pending = Some((key, block));
        assert_eq!(fault(&table.finish()), Fault::MalformedBlock);
    }
}
