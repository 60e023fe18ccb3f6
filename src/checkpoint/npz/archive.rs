//! Arrays in a ZIP archive.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use rawzip::{CompressionMethod, ErrorKind, ZipArchive, ZipFileHeaderRecord, ZipSliceArchive};

use super::super::file::TensorFile;
use super::super::graph::ObjectGraph;
use super::super::stored::{Entry, Stored};
use super::super::temporary::file_error;
use super::elements;
use super::header::{Flaw, Header};
use crate::error::{Error, Fault, Result};
use crate::kernels::mapping::Mapping;

/// Most bytes that one compressed byte stands for: a match of 258 bytes takes two bits.
const MOST_PER_BYTE: u64 = 1032;

/// An open `.npz` file.
#[derive(Debug)]
pub(crate) struct NpzFile {
    path: PathBuf,
    bytes: Mapping,
    entries: Vec<Entry>,
    /// Where each entry lies in the archive.
    members: Vec<Member>,
}

/// An array in the archive.
#[derive(Debug)]
struct Member {
    start: usize,
    end: usize,
    deflated: bool,
    /// Bytes of header and elements.
    size: u64,
    crc: u32,
    header: Header,
}

impl NpzFile {
    /// Opens an archive and checks its directory and the headers of its arrays. Members that are no arrays are left out.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let bytes = Mapping::open(path).map_err(|e| file_error(path, &e))?;
        let archive = ZipArchive::from_slice(&bytes[..]).map_err(|e| not_an_archive(path, &bytes, &e))?;
        let mut list = Vec::new();
        let mut count = 0;
        for record in archive.entries() {
            let record = record.map_err(|e| {
                let error = Error::format(path, Fault::MalformedHeader, format!("the directory: {e}"));
                error.at_offset(archive.directory_offset())
            })?;
            count += 1;
            if let Some(found) = member(path, &bytes, &archive, &record)? {
                list.push(found);
            }
        }
        if count != archive.entries_hint() {
            let problem = format!("{count} members, the directory counts {}", archive.entries_hint());
            return Err(Error::format(path, Fault::MalformedFooter, problem).at_offset(archive.eocd_offset()));
        }
        // Members that share bytes blow a small archive up to many large arrays.
        list.sort_by_key(|(_, member)| member.start);
        for pair in list.windows(2) {
            if let [(_, first), (entry, second)] = pair
                && second.start < first.end
            {
                let problem = "its bytes overlap those of another member";
                let error =
                    Error::format(path, Fault::MalformedEntry, problem).at_offset(second.start as u64);
                return Err(error.of_tensor(&entry.key));
            }
        }
        list.sort_by(|(a, _), (b, _)| a.key.cmp(&b.key));
        for pair in list.windows(2) {
            if let [(first, _), (second, member)] = pair
                && first.key == second.key
            {
                let error = Error::format(path, Fault::MalformedEntry, "the archive has it twice");
                return Err(error.at_offset(member.start as u64).of_tensor(&second.key));
            }
        }
        let (entries, members) = list.into_iter().unzip();
        Ok(NpzFile { path: path.to_owned(), bytes, entries, members })
    }
}

/// What keeps the end of an archive from being understood.
fn not_an_archive(path: &Path, bytes: &[u8], e: &rawzip::Error) -> Error {
    let end = bytes.len() as u64;
    let (fault, at) = match e.kind() {
        ErrorKind::MissingEndOfCentralDirectory if !bytes.starts_with(b"PK") && !bytes.is_empty() => {
            (Fault::BadMagic, 0)
        }
        ErrorKind::MissingEndOfCentralDirectory => (Fault::Truncated, end),
        _ => (Fault::MalformedFooter, e.eocd_offset().unwrap_or(end)),
    };
    Error::format(path, fault, format!("this is no whole ZIP archive: {e}")).at_offset(at)
}

/// The array of a record of the directory, if it is one.
fn member(
    path: &Path,
    bytes: &[u8],
    archive: &ZipSliceArchive<&[u8]>,
    record: &ZipFileHeaderRecord<'_>,
) -> Result<Option<(Entry, Member)>> {
    let (name, at) = (record.file_path(), record.central_directory_offset());
    let key = std::str::from_utf8(name.as_bytes()).map_err(|_| {
        Error::format(path, Fault::MalformedEntry, "the name of a member is no UTF-8").at_offset(at)
    })?;
    let Some(key) = key.strip_suffix(".npy") else { return Ok(None) };
    let refuse =
        |fault, problem: String, at| Error::format(path, fault, problem).at_offset(at).of_tensor(key);
    let method = record.compression_method();
    if record.flags().is_encrypted()
        || ![CompressionMethod::STORE, CompressionMethod::DEFLATE].contains(&method)
    {
        let problem = match method.name() {
            _ if record.flags().is_encrypted() => "it is encrypted".to_owned(),
            Some(method) => format!("it is compressed by {method}, expected deflate or none"),
            None => format!("it is compressed by method {}, expected deflate or none", method.as_u16()),
        };
        return Err(refuse(Fault::UnsupportedCompression, problem, at));
    }
    let place = archive.get_entry(record.wayfinder()).map_err(|e| {
        let fault =
            if matches!(e.kind(), ErrorKind::Eof) { Fault::OutOfRange } else { Fault::MalformedEntry };
        refuse(fault, format!("byte {} of the archive is no member: {e}", record.local_header_offset()), at)
    })?;
    let (start, end) = place.compressed_data_range();
    let (length, size) = (end - start, record.uncompressed_size_hint());
    let deflated = method == CompressionMethod::DEFLATE;
    let most = if deflated { length.saturating_mul(MOST_PER_BYTE) } else { length };
    if size > most || (!deflated && size != length) {
        let problem = format!("{length} bytes cannot hold the {size} that the directory claims");
        return Err(refuse(Fault::SizeMismatch, problem, start));
    }
    let (start, end) = (start as usize, end as usize);
    let data = bytes.get(start..end).unwrap_or(&[]);
    let header = match deflated {
        true => Header::read(&mut DeflateDecoder::new(data)),
        false => Header::read(&mut &data[..]),
    };
    // Within compressed bytes there is no place but their beginning.
    let at = |inner: u64| if deflated { start as u64 } else { start as u64 + inner };
    let flaw = |(fault, inner, problem): Flaw| refuse(fault, problem, at(inner));
    let header = header.map_err(flaw)?;
    let there = size.saturating_sub(header.start);
    if let Some(expected) = header.size().map_err(flaw)?
        && header.start.checked_add(expected) != Some(size)
    {
        let problem =
            format!("{there} bytes, expected {expected} for {}{}", header.descr.dtype(), header.shape);
        return Err(flaw((Fault::SizeMismatch, header.start, problem)));
    }
    let entry = header.entry(key.to_owned(), there);
    Ok(Some((entry, Member { start, end, deflated, size, crc: record.crc32(), header })))
}

impl TensorFile for NpzFile {
    fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn read(&self, key: &str) -> Result<Stored> {
        let found = self.entries.binary_search_by(|entry| entry.key.as_str().cmp(key));
        let Some(member) = found.ok().and_then(|i| self.members.get(i)) else {
            let error = Error::format(&self.path, Fault::MissingTensor, "the archive has none of this key");
            return Err(error.of_tensor(key));
        };
        let refuse = |fault, problem: String, at: u64| {
            Error::format(&self.path, fault, problem).at_offset(at).of_tensor(key)
        };
        let at = member.start as u64;
        let data = self.bytes.get(member.start..member.end).unwrap_or(&[]);
        let mut inflated = Vec::new();
        let array = if member.deflated {
            // The claimed size is possible; memory still grows only as the bytes come.
            let read =
                DeflateDecoder::new(data).take(member.size.saturating_add(1)).read_to_end(&mut inflated);
            read.map_err(|e| refuse(Fault::TensorChecksum, format!("its compressed bytes: {e}"), at))?;
            &inflated[..]
        } else {
            data
        };
        if array.len() as u64 != member.size {
            let problem = format!("{} bytes or more, the directory claims {}", array.len(), member.size);
            return Err(refuse(Fault::SizeMismatch, problem, at));
        }
        let mut crc = Crc::new();
        crc.update(array);
        if crc.sum() != member.crc {
            let problem = format!("CRC-32 {:08x}, the directory has {:08x}", crc.sum(), member.crc);
            return Err(refuse(Fault::TensorChecksum, problem, at));
        }
        let elements = array.get(member.header.start as usize..).unwrap_or(&[]);
        elements::decode(&member.header, elements).map_err(|(fault, inner, problem)| {
            refuse(fault, problem, if member.deflated { at } else { at + inner })
        })
    }

    fn graph(&self) -> Result<Option<ObjectGraph>> {
        Ok(None)
    }
}
