//! Checkpoints in TensorFlow's format.

use std::collections::BTreeMap;

use couplet::checkpoint::tensorflow::{Bundle, BundleWriter};
use couplet::checkpoint::{Checkpoint, Strings};
use couplet::{Tensor, Variable};
use prost::Message;

use super::checked::{checkpoint, folder, refused, write};

const MAGIC: [u8; 8] = [0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb];
const FOOTER: usize = 48;
/// What follows a block: its type and its checksum.
const TRAILER: usize = 5;

/// An index, as it is and with right checksums. The bytes are those of the data file, too.
pub fn index(bytes: &[u8]) {
    let prefix = folder("tensorflow_index").join("x");
    write(&prefix.with_extension("data-00000-of-00001"), bytes);
    let mut file = bytes.to_vec();
    mend_blocks(&mut file);
    for file in [bytes, &file] {
        write(&prefix.with_extension("index"), file);
        checkpoint(&prefix);
        match Bundle::open(&prefix) {
            Ok(bundle) => {
                bundle.debug_string();
                // What is written of it says the same.
                write(&prefix.with_extension("index"), &bundle.index_bytes());
                let again = Bundle::open(&prefix).expect("an index that the library wrote");
                assert_eq!(again.records(), bundle.records());
            }
            Err(e) => refused(&e),
        }
    }
}

/// The lines of an index, which stand one after another as they do in a block, but with `u8` and `u16` for the lengths of key and
/// value; a key of 255 bytes ends them, and what follows is the data file.
pub fn entries(bytes: &[u8]) {
    let (mut lines, mut rest) = (BTreeMap::new(), bytes);
    while let Some((&key, more)) = rest.split_first() {
        rest = more;
        if key == 255 {
            break;
        }
        let Some((&[low, high], more)) = more.split_first_chunk() else { break };
        let (key, value) = (usize::from(key), usize::from(u16::from_le_bytes([low, high])));
        let key = key.min(more.len());
        let value = value.min(more.len() - key);
        let (key, more) = more.split_at(key);
        let (value, more) = more.split_at(value);
        lines.insert(key.to_vec(), value.to_vec());
        rest = more;
    }
    let mut data = rest.to_vec();
    for (key, value) in &mut lines {
        if !key.is_empty()
            && let Some(crc) = mend_tensor(value, &mut data)
        {
            // The last of two fields counts.
            value.push(0x35);
            value.extend_from_slice(&crc.to_le_bytes());
        }
    }
    let prefix = folder("tensorflow_entries").join("x");
    write(&prefix.with_extension("index"), &table(&lines));
    write(&prefix.with_extension("data-00000-of-00001"), &data);
    write(&prefix.with_extension("data-00000-of-00002"), &data);
    if checkpoint(&prefix).is_some() {
        Bundle::open(&prefix).expect("it was just opened").debug_string();
    }
}

/// An object graph, in a checkpoint with a tensor for some of its keys.
pub fn graph(bytes: &[u8]) {
    let prefix = folder("tensorflow_graph").join("x");
    let mut writer = BundleWriter::new(&prefix).overwrite(true);
    let number = Tensor::from(7i64);
    for key in ["step/.ATTRIBUTES/VARIABLE_VALUE", "v/.ATTRIBUTES/VARIABLE_VALUE", "K"] {
        writer.add(key, &number.clone().into()).expect("a key of its own");
    }
    let strings = Strings::scalar(bytes);
    writer
        .add("_CHECKPOINTABLE_OBJECT_GRAPH", &couplet::checkpoint::Stored::Strings(strings))
        .expect("as before");
    writer.finish().expect("room for a temporary file");
    let Some(reader) = checkpoint(&prefix) else { return };
    let step = Variable::from_tensor("step", number.clone());
    let v = Variable::from_tensor("v", number);
    if let Ok(status) = Checkpoint::new().track("step", &step).track("v", &v).restore(&prefix) {
        let _ = status.assert_consumed();
    }
    for format in [couplet::checkpoint::Format::Native, couplet::checkpoint::Format::Safetensors] {
        let copy = prefix.with_file_name("copy");
        if reader.convert(&copy, format).is_ok() && format == couplet::checkpoint::Format::Native {
            checkpoint(&copy).expect("what the library wrote");
        }
    }
}

/// Gives every block that the footer and the index block lead to the checksum that it should have.
fn mend_blocks(file: &mut [u8]) {
    let Some(end) = file.len().checked_sub(FOOTER) else { return };
    let (blocks, footer) = file.split_at_mut(end);
    let mut rest = &*footer;
    let handles = [handle(&mut rest), handle(&mut rest)];
    let [Some(metaindex), Some(index)] = handles else { return };
    mend_block(blocks, metaindex);
    let (offset, size) = index;
    let contents = offset.checked_add(size).and_then(|end| blocks.get(offset..end)).unwrap_or(&[]).to_vec();
    let mut rest = &contents[..];
    // What is no entry is taken for one: nothing but checksums is changed.
    while let (Some(_), Some(own), Some(value)) = (varint(&mut rest), varint(&mut rest), varint(&mut rest)) {
        let Some(mut place) = rest.split_off(..own).and_then(|_| rest.split_off(..value)) else { break };
        if let Some(place) = handle(&mut place) {
            mend_block(blocks, place);
        }
    }
    mend_block(blocks, index);
}

fn mend_block(blocks: &mut [u8], (offset, size): (usize, usize)) {
    let end = offset.checked_add(size).and_then(|end| end.checked_add(TRAILER));
    if let Some(block) = end.and_then(|end| blocks.get_mut(offset..end)) {
        let (checked, stored) = block.split_at_mut(size + 1);
        stored.copy_from_slice(&masked(crc(checked)).to_le_bytes());
    }
}

fn handle(bytes: &mut &[u8]) -> Option<(usize, usize)> {
    Some((varint(bytes)?, varint(bytes)?))
}

fn varint(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let &byte = bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return usize::try_from(value).ok();
        }
    }
    None
}

/// A table of one block, with the block that leads to it.
fn table(lines: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    let mut file = Vec::new();
    let size = block(lines.iter().map(|(key, value)| (&key[..], &value[..])), &mut file);
    let mut place = Vec::new();
    prost::encoding::encode_varint(0, &mut place);
    prost::encoding::encode_varint(size as u64, &mut place);
    let offset = file.len();
    let last = lines.last_key_value().map_or(&[][..], |(key, _)| key);
    let size = block([(last, &place[..])].into_iter(), &mut file);
    let mut footer = vec![0, 0];
    prost::encoding::encode_varint(offset as u64, &mut footer);
    prost::encoding::encode_varint(size as u64, &mut footer);
    footer.resize(FOOTER - MAGIC.len(), 0);
    file.extend(footer);
    file.extend(MAGIC);
    file
}

/// Appends a block and returns its size without its trailer.
fn block<'a>(lines: impl Iterator<Item = (&'a [u8], &'a [u8])>, file: &mut Vec<u8>) -> usize {
    let start = file.len();
    for (key, value) in lines {
        for length in [0, key.len(), value.len()] {
            prost::encoding::encode_varint(length as u64, file);
        }
        file.extend_from_slice(key);
        file.extend_from_slice(value);
    }
    // One restart, at the front, and no compression.
    file.extend([0, 0, 0, 0, 1, 0, 0, 0, 0]);
    let crc = masked(crc(&file[start..]));
    let size = file.len() - 1 - start;
    file.extend(crc.to_le_bytes());
    size
}

/// What of an entry says where its tensor lies.
#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(int32, tag = "1")]
    dtype: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<Shape>,
    #[prost(int64, tag = "4")]
    offset: i64,
    #[prost(int64, tag = "5")]
    size: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Shape {
    #[prost(message, repeated, tag = "2")]
    dim: Vec<Dim>,
}

#[derive(Clone, PartialEq, Message)]
struct Dim {
    #[prost(int64, tag = "1")]
    size: i64,
}

/// The checksum of the tensor of an entry. Strings and variants have others among their bytes, which are set right before.
fn mend_tensor(entry: &[u8], data: &mut [u8]) -> Option<u32> {
    let entry = Entry::decode(entry).ok()?;
    let start = usize::try_from(entry.offset).ok()?;
    let end = start.checked_add(usize::try_from(entry.size).ok()?)?;
    let bytes = data.get_mut(start..end)?;
    let dims = entry.shape.unwrap_or_default().dim;
    let count = dims.iter().try_fold(1usize, |n, dim| n.checked_mul(usize::try_from(dim.size).ok()?))?;
    let plain = match entry.dtype {
        7 => {
            let (mut at, mut lengths) = (0, Vec::new());
            for _ in 0..count {
                let mut rest = &bytes[at..];
                lengths.extend((varint(&mut rest)? as u32).to_le_bytes());
                at = bytes.len() - rest.len();
            }
            let masked = masked(crc(&lengths)).to_le_bytes();
            bytes.get_mut(at..at + 4)?.copy_from_slice(&masked);
            lengths.extend_from_slice(&bytes[at..]);
            crc(&lengths)
        }
        21 => {
            let (mut at, mut all) = (0, Vec::new());
            for _ in 0..count {
                let mut rest = &bytes[at..];
                let length = varint(&mut rest)?;
                at = bytes.len() - rest.len();
                let stored = at.checked_add(length)?;
                all.extend((length as u64).to_le_bytes());
                all.extend_from_slice(bytes.get(at..stored)?);
                let masked = masked(crc(&all)).to_le_bytes();
                bytes.get_mut(stored..stored.checked_add(4)?)?.copy_from_slice(&masked);
                all.extend(masked);
                at = stored + 4;
            }
            crc(&all)
        }
        _ => crc(bytes),
    };
    Some(masked(plain))
}

fn crc(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}
