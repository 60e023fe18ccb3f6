//! What an index says: its header, and where each tensor lies.

use prost::Message;

use super::dtypes::ElementType;
use super::proto;
use crate::error::Fault;
use crate::tensor::Shape;

/// A fault and what is wrong, of bytes whose place the caller knows.
pub(super) type Problem = (Fault, String);

/// The version of the format that is read and written here.
const VERSION: i32 = 1;

/// A line of an index: a tensor, or a slice of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its key as it stands in the index. Those of slices begin with a zero byte, those of tensors are text.
    pub key: Vec<u8>,
    /// The number of the dtype in TensorFlow.
    pub dtype: i32,
    /// The shape: of a partitioned tensor as a whole, of a slice its own.
    pub shape: Shape,
    /// The number of the data file.
    pub shard: u32,
    /// Where in the data file it begins.
    pub offset: u64,
    /// The bytes that it takes there.
    pub size: u64,
    /// The masked checksum of those bytes.
    pub checksum: u32,
    /// The slices of a partitioned tensor, each with a range for every axis: they are stored under keys of their own, and the
    /// four fields above say nothing. Empty for a tensor that is stored in one piece.
    pub slices: Vec<Vec<Extent>>,
}

/// A range along one axis of a partitioned tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where it begins; not negative.
    pub start: i64,
    /// How long it is; `None` is the whole axis. Not negative.
    pub length: Option<i64>,
}

impl Record {
    /// The record in the bytes of an index.
    pub(super) fn decode(key: &[u8], bytes: &[u8], shards: u32) -> Result<Self, Problem> {
        let malformed = |problem: String| (Fault::MalformedEntry, problem);
        let entry = proto::Entry::decode(bytes).map_err(|e| malformed(format!("not an entry: {e}")))?;
        let shape = entry.shape.unwrap_or_default();
        if shape.unknown_rank {
            return Err(malformed("a tensor without a shape".to_owned()));
        }
        let dims: Option<Vec<usize>> = shape.dim.iter().map(|dim| usize::try_from(dim.size).ok()).collect();
        let Some(dims) = dims else {
            let dims: Vec<i64> = shape.dim.iter().map(|dim| dim.size).collect();
            return Err(malformed(format!("a tensor with shape {dims:?}")));
        };
        let slices: Vec<Vec<Extent>> = entry
            .slices
            .iter()
            .map(|slice| slice.extent.iter().map(|e| Extent { start: e.start, length: e.length }).collect())
            .collect();
        if slices.iter().flatten().any(|extent| extent.start < 0 || extent.length.is_some_and(|n| n < 0)) {
            return Err(malformed("a slice begins or ends before the tensor".to_owned()));
        }
        let whole = slices.is_empty();
        let shard = u32::try_from(entry.shard_id).ok().filter(|&shard| shard < shards || !whole);
        let (Some(shard), Ok(offset), Ok(size)) =
            (shard, u64::try_from(entry.offset), u64::try_from(entry.size))
        else {
            let problem = format!(
                "a tensor in shard {} of {shards}, {} bytes at {}",
                entry.shard_id, entry.size, entry.offset
            );
            return Err(malformed(problem));
        };
        let shape = Shape::from(dims);
        Ok(Record {
            key: key.to_vec(),
            dtype: entry.dtype,
            shape,
            shard,
            offset,
            size,
            checksum: entry.crc32c,
            slices,
        })
    }

    /// The bytes for an index.
    pub(super) fn encode(&self) -> Vec<u8> {
        let dim = self.shape.iter().map(|&size| proto::Dim { size: size as i64 }).collect();
        let slice = |slice: &Vec<Extent>| {
            let extent = slice.iter().map(|e| proto::Extent { start: e.start, length: e.length }).collect();
            proto::Slice { extent }
        };
        proto::Entry {
            dtype: self.dtype,
            shape: Some(proto::Shape { dim, unknown_rank: false }),
            shard_id: self.shard as i32,
            offset: self.offset as i64,
            size: self.size as i64,
            crc32c: self.checksum,
            slices: self.slices.iter().map(slice).collect(),
        }
        .encode_to_vec()
    }

    pub(super) fn element(&self) -> ElementType {
        ElementType(self.dtype)
    }

    /// Whether this is a slice, which only the record of its tensor leads to.
    pub(super) fn is_slice(&self) -> bool {
        self.key.first() == Some(&0)
    }

    /// The number of elements.
    pub(super) fn elements(&self) -> Result<usize, Problem> {
        let size = if self.shape.contains(&0) {
            Some(0)
        } else {
            self.shape.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim))
        };
        size.filter(|&size| size <= isize::MAX as usize)
            .ok_or_else(|| (Fault::MalformedEntry, format!("shape {} has too many elements", self.shape)))
    }
}

/// What an index says of the checkpoint as a whole.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub shards: u32,
    pub big_endian: bool,
    message: proto::Header,
}

impl Header {
    pub(super) fn new(shards: u32) -> Self {
        let version = Some(proto::Version { producer: VERSION, min_consumer: 0, bad_consumers: Vec::new() });
        let message = proto::Header { num_shards: shards as i32, endianness: 0, version };
        Header { shards, big_endian: false, message }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Problem> {
        let message = proto::Header::decode(bytes)
            .map_err(|e| (Fault::MalformedHeader, format!("not the header of a checkpoint: {e}")))?;
        let version = message.version.clone().unwrap_or_default();
        if version.min_consumer > VERSION || version.bad_consumers.contains(&VERSION) || version.producer < 0
        {
            let problem = format!(
                "written by version {} for readers of version {} or later but {:?}, this is version {VERSION}",
                version.producer, version.min_consumer, version.bad_consumers
            );
            return Err((Fault::UnsupportedVersion, problem));
        }
        match (u32::try_from(message.num_shards), message.endianness) {
            (Ok(shards), 0 | 1) => Ok(Header { shards, big_endian: message.endianness == 1, message }),
            (_, order) => {
                let problem = format!("{} data files in byte order {order}", message.num_shards);
                Err((Fault::MalformedHeader, problem))
            }
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        self.message.encode_to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny() -> Record {
        let (key, shape) = (b"v/.ATTRIBUTES/VARIABLE_VALUE".to_vec(), Shape::from([2]));
        Record {
            key,
            dtype: 1,
            shape,
            shard: 0,
            offset: 0,
            size: 8,
            checksum: 0xf4c8_333d,
            slices: Vec::new(),
        }
    }

    #[test]
    fn a_record_has_the_bytes_of_the_format() {
        // dtype 1 | shape {dim {size 2}} | size 8 | checksum; what is 0 is left out.
        let bytes = [0x08, 1, 0x12, 4, 0x12, 2, 0x08, 2, 0x28, 8, 0x35, 0x3d, 0x33, 0xc8, 0xf4];
        assert_eq!(tiny().encode(), bytes);
        assert_eq!(Record::decode(&tiny().key, &bytes, 1), Ok(tiny()));
        let scalar = Record { shape: Shape::from([]), ..tiny() };
        assert_eq!(scalar.encode()[..4], [0x08, 1, 0x12, 0]);
        let parts = vec![vec![Extent { start: 0, length: Some(1) }], vec![Extent { start: 1, length: None }]];
        let partitioned = Record { slices: parts, ..tiny() };
        assert_eq!(Record::decode(&tiny().key, &partitioned.encode(), 1), Ok(partitioned));
    }

    #[test]
    fn other_spellings_of_the_same_message_are_read() {
        // Zeros written out, fields in another order, the last of two counts, an unknown field 15, no shape.
        let bytes = [0x28, 4, 0x7a, 1, 9, 0x20, 7, 0x18, 0, 0x20, 0, 0x08, 1];
        let record = Record::decode(b"k", &bytes, 1).unwrap();
        assert_eq!((record.shape.rank(), record.offset, record.size, record.shard), (0, 0, 4, 0));
    }

    #[test]
    fn headers_of_other_versions_are_refused() {
        let header = [0x08, 1, 0x1a, 2, 0x08, 1];
        assert_eq!(Header::new(1).encode(), header);
        assert_eq!(Header::decode(&header).unwrap().shards, 1);
        assert!(Header::decode(&[0x08, 2, 0x10, 1]).unwrap().big_endian);
        for (bytes, fault) in [
            (&[0x1a, 2, 0x10, 2][..], Fault::UnsupportedVersion), // min_consumer 2
            (&[0x1a, 3, 0x1a, 1, 1], Fault::UnsupportedVersion),  // bad_consumers [1]
            (&[0x10, 2], Fault::MalformedHeader),                 // a third byte order
            (&[0x08], Fault::MalformedHeader),                    // no value
        ] {
            assert_eq!(Header::decode(bytes).unwrap_err().0, fault);
        }
    }
}
