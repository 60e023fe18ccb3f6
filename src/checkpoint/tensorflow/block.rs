//! Blocks of a table: sorted keys with their values, each key without what it shares with the one before.
//!
//! ```text
//! entry    = varint shared · varint own · varint value_length · own bytes of the key · value
//! contents = entries · restart offsets, u32 each · number of restarts, u32
//! ```
//!
//! At a restart nothing is shared, so that a reader can begin there. This one begins at the front.

use super::varint;

/// What has been written of a block.
#[derive(Debug)]
pub(super) struct BlockWriter {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    /// Entries from one restart to the next.
    interval: usize,
    since_restart: usize,
    last_key: Vec<u8>,
}

impl BlockWriter {
    pub(super) fn new(interval: usize) -> Self {
        BlockWriter { bytes: Vec::new(), restarts: vec![0], interval, since_restart: 0, last_key: Vec::new() }
    }

    /// Appends an entry. Its key is larger than that of the one before.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut shared = 0;
        if self.since_restart == self.interval {
            self.restarts.push(self.bytes.len() as u32);
            self.since_restart = 0;
        } else {
            shared = self.last_key.iter().zip(key).take_while(|(a, b)| a == b).count();
        }
        self.since_restart += 1;
        for length in [shared, key.len() - shared, value.len()] {
            varint::write(length as u64, &mut self.bytes);
        }
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
    }

    /// The bytes that the block takes as it is now.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len() + 4
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The key of the last entry, empty if there is none.
    pub(super) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// The contents. The writer is empty afterwards.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        for restart in &self.restarts {
            bytes.extend_from_slice(&restart.to_le_bytes());
        }
        bytes.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        *self = BlockWriter::new(self.interval);
        bytes
    }
}

/// A cursor over the entries of a block whose bytes nobody vouches for.
#[derive(Debug)]
pub(super) struct BlockReader<'a> {
    entries: &'a [u8],
    rest: &'a [u8],
    key: Vec<u8>,
}

impl<'a> BlockReader<'a> {
    /// Over the contents of a block; what is wrong with them otherwise.
    pub(super) fn new(contents: &'a [u8]) -> Result<Self, String> {
        let (rest, count) = contents
            .split_last_chunk::<4>()
            .ok_or_else(|| "a block without a number of restarts".to_owned())?;
        let count = u32::from_le_bytes(*count);
        let room = rest.len() / 4;
        let restarts = usize::try_from(count).unwrap_or(usize::MAX);
        if restarts == 0 || restarts > room {
            return Err(format!(
                "a block of {} bytes has {count} restarts, expected 1 to {room}",
                contents.len()
            ));
        }
        let entries = &rest[..rest.len() - 4 * restarts];
        Ok(BlockReader { entries, rest: entries, key: Vec::new() })
    }

    /// Whether all entries have been read.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Where the next entry begins, from the beginning of the contents.
    pub(super) fn position(&self) -> usize {
        self.entries.len() - self.rest.len()
    }

    /// The key and the value of the next entry; what is wrong with it otherwise.
    pub(super) fn next(&mut self) -> Result<(&[u8], &'a [u8]), String> {
        let mut rest = self.rest;
        let mut length = || varint::read_size(&mut rest).ok_or("an entry without its three lengths");
        let (shared, own, value) = (length()?, length()?, length()?);
        if shared > self.key.len() {
            return Err(format!(
                "a key shares {shared} bytes with one of {} bytes before it",
                self.key.len()
            ));
        }
        let size = own.checked_add(value).filter(|&size| size <= rest.len());
        let Some(size) = size else {
            return Err(format!(
                "an entry has {own} bytes of a key and {value} of a value, but the block only {} more",
                rest.len()
            ));
        };
        let (entry, rest) = rest.split_at(size);
        let (own, value) = entry.split_at(own);
        self.key.truncate(shared);
        self.key.extend_from_slice(own);
        self.rest = rest;
        Ok((&self.key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_block_has_one_restart() {
        let contents = BlockWriter::new(16).finish();
        assert_eq!(contents, [0, 0, 0, 0, 1, 0, 0, 0]);
        assert!(BlockReader::new(&contents).unwrap().is_at_end());
    }

    #[test]
    fn keys_share_their_beginning_but_at_restarts() {
        let mut writer = BlockWriter::new(2);
        for key in ["ab", "abc", "abd"] {
            writer.add(key.as_bytes(), b"v");
        }
        let size = writer.size();
        let contents = writer.finish();
        let (entries, tail) = contents.split_at(contents.len() - 12);
        assert_eq!(entries, b"\0\x02\x01abv\x02\x01\x01cv\0\x03\x01abdv");
        assert_eq!(tail, [0, 0, 0, 0, 11, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(size, contents.len());

        let mut reader = BlockReader::new(&contents).unwrap();
        for key in ["ab", "abc", "abd"] {
            assert!(!reader.is_at_end());
            assert_eq!(reader.next().unwrap(), (key.as_bytes(), b"v".as_slice()));
        }
        assert!(reader.is_at_end());
    }

    #[test]
    fn lengths_that_lead_outside_are_noticed() {
        let block = |entries: &[u8]| [entries, &[0, 0, 0, 0, 1, 0, 0, 0]].concat();
        for entries in [
            &[0][..],                                                // One length of three.
            &[1, 0, 0],                                              // Shares with nothing.
            &[0, 1, 0],                                              // No byte for the key.
            &[0, 0, 2, 7],                                           // One byte for a value of two.
            &[0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 1], // 2^64 - 1 and 1.
        ] {
            let contents = block(entries);
            assert!(BlockReader::new(&contents).unwrap().next().is_err(), "{entries:?}");
        }
        for contents in [&[][..], &[1, 0, 0], &[0, 0, 0, 0], &[1, 0, 0, 0], &[9, 9, 9, 9, 255, 255, 255, 255]]
        {
            assert!(BlockReader::new(contents).is_err(), "{contents:?}");
        }
    }
}
