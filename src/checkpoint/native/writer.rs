//! Writing a container.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use super::super::graph::ObjectGraph;
use super::super::stored::Stored;
use super::super::temporary::{TemporaryFile, file_error};
use super::header::{Header, Place, dtype_name};
use super::{ALIGNMENT, COVERED, FIXED, MAGIC, VERSION, extend};
use crate::codec;
use crate::error::Result;
use crate::kernels::parallel::threads;

/// Bytes that are written at a time.
const PIECE: usize = 1 << 18;

/// Bytes that are made durable at a time while more are written.
const PART: usize = 64 << 20;

/// The bytes of a tensor: where they lie, or a copy of them.
enum Content<'a> {
    InPlace(&'a [u8]),
    Copy(Vec<u8>),
}

impl Content<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Content::InPlace(bytes) => bytes,
            Content::Copy(bytes) => bytes,
        }
    }
}

/// Writes a file that is complete and durable when this returns, and absent or what it was before otherwise.
///
/// Tensors are written from where they lie; only those that are not contiguous, and strings, are copied.
pub(crate) fn write(path: &Path, graph: Option<&ObjectGraph>, values: &[(String, Stored)]) -> Result<()> {
    let contents = values.iter().map(|(_, value)| content(value)).collect::<Result<Vec<_>>>()?;
    let mut header = Header {
        writer: env!("CARGO_PKG_VERSION").to_owned(),
        graph: graph.cloned(),
        tensors: values
            .iter()
            .zip(&contents)
            .map(|((key, value), content)| place(key, value, content))
            .collect(),
    };
    let front = layout(&mut header)?;
    let file = TemporaryFile::create(path)?;
    let checksums = write_contents(file.file(), &header, &contents).map_err(|e| file_error(path, &e))?;
    let front = seal(front, &checksums);
    write_at(file.file(), &front, 0).map_err(|e| file_error(path, &e))?;
    // The older file is let go of when nobody waits for it: a system takes as long to forget a file as to sync it.
    let older = File::open(path);
    file.put_in_place(path)?;
    if let Ok(older) = older.and_then(|older| Ok((older.metadata()?.len() >= PART as u64).then_some(older))) {
        // If there is no thread for it, it is dropped here.
        let _ = thread::Builder::new().name("couplet-close".to_owned()).spawn(move || drop(older));
    }
    Ok(())
}

fn content(value: &Stored) -> Result<Content<'_>> {
    Ok(match value {
        Stored::Tensor(x) => match x.bytes_in_place()? {
            Some(bytes) => Content::InPlace(bytes),
            None => {
                let mut bytes = Vec::with_capacity(x.size() * x.dtype().size());
                x.write_bytes(&mut bytes)?;
                Content::Copy(bytes)
            }
        },
        Stored::Strings(strings) => Content::Copy(codec::encode(&strings.values)?),
        Stored::Raw(raw) => Content::InPlace(&raw.bytes),
    })
}

fn place(key: &str, value: &Stored, content: &Content<'_>) -> Place {
    let dims = value.shape().iter().map(|&dim| dim as u64).collect();
    let bytes = content.bytes().len() as u64;
    Place { key: key.to_owned(), dtype: dtype_name(value), dims, offset: u64::MAX, bytes }
}

/// Chooses the places of the tensors, and returns the header's bytes. Its length depends on the places and they on it: places
/// are first taken to be far away, which makes it no shorter.
fn layout(header: &mut Header) -> Result<Vec<u8>> {
    loop {
        let bytes = codec::encode(header)?;
        let mut next = (FIXED + bytes.len() + 4 * header.tensors.len()) as u64;
        let mut moved = false;
        for tensor in &mut header.tensors {
            let offset = next.next_multiple_of(ALIGNMENT);
            moved |= tensor.offset != offset;
            tensor.offset = offset;
            next = offset + tensor.bytes;
        }
        if !moved {
            return Ok(bytes);
        }
    }
}

/// Everything before the tensors.
fn seal(header: Vec<u8>, checksums: &[u32]) -> Vec<u8> {
    let mut front = Vec::with_capacity(FIXED + header.len() + 4 * checksums.len());
    front.extend(MAGIC);
    front.extend(VERSION.to_le_bytes());
    front.extend([0; 4]);
    front.extend((header.len() as u64).to_le_bytes());
    front.extend(header);
    checksums.iter().for_each(|checksum| front.extend(checksum.to_le_bytes()));
    let checksum = extend(0, &front[COVERED..]);
    front[COVERED - 4..COVERED].copy_from_slice(&checksum.to_le_bytes());
    front
}

/// Writes the tensors to their places, and returns their checksums.
///
/// One thread writes: systems let no two write to one file at the same time. Pieces are so small that they are still in the cache
/// when the system copies them. Of large files a second thread makes the first part durable while the next one is written.
fn write_contents(file: &File, header: &Header, contents: &[Content<'_>]) -> io::Result<Vec<u32>> {
    // Also when the last tensors are empty, the file ends where the header says.
    file.set_len(header.tensors.last().map_or(0, |tensor| tensor.offset + tensor.bytes))?;
    let write = |mut written: Option<SyncSender<()>>| {
        let mut checksums = Vec::with_capacity(contents.len());
        let mut since = 0;
        for (content, place) in contents.iter().zip(&header.tensors) {
            let (mut checksum, mut offset) = (0, place.offset);
            for piece in content.bytes().chunks(PIECE) {
                checksum = extend(checksum, piece);
                write_at(file, piece, offset)?;
                offset += piece.len() as u64;
                since += piece.len();
                if since >= PART && written.as_ref().is_some_and(|written| written.send(()).is_err()) {
                    written = None; // it could not be made durable: the end of the file will say why
                }
                since %= PART;
            }
            checksums.push(checksum);
        }
        Ok(checksums)
    };
    let all: usize = contents.iter().map(|content| content.bytes().len()).sum();
    if all < 2 * PART || threads() == 1 {
        return write(None);
    }
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(all / PART + 1); // never full
        let sync = move || receiver.iter().try_for_each(|()| file.sync_data());
        match thread::Builder::new().name("couplet-sync".to_owned()).spawn_scoped(scope, sync) {
            Ok(_) => write(Some(sender)),
            Err(_) => write(None),
        }
    })
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}
