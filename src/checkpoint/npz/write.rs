//! Writing NumPy's files.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::path::{EntryPath, ZipFilePath};
use rawzip::{CompressionMethod, ZipArchiveWriter};

use super::super::replace::replace;
use super::super::stored::{Stored, Strings};
use super::super::temporary::file_error;
use super::descr::Descr;
use super::header::Header;
use crate::error::{Error, Result};

/// Writes one array to a `.npy` file.
///
/// # Errors
/// NumPy has no such type, or the file cannot be written.
pub(crate) fn write_npy(path: &Path, stored: &Stored) -> Result<()> {
    let header = header(path, "the array", stored)?;
    replace(path, |file| array(file, &header, stored).map_err(|e| file_error(path, &e)))
}

/// Writes arrays under their keys, each of which comes once, to a `.npz` file. The elements go to the file in steps, without a
/// copy of a whole tensor unless it is not contiguous.
///
/// # Errors
/// NumPy has no such type, a key is no name in an archive, or the file cannot be written.
pub(crate) fn write_npz(path: &Path, tensors: &[(String, Stored)], compress: bool) -> Result<()> {
    let mut headers = Vec::with_capacity(tensors.len());
    for (key, stored) in tensors {
        headers.push((name(path, key)?, header(path, key, stored)?));
    }
    replace(path, |file| {
        let write = || {
            let mut archive = ZipArchiveWriter::new(file);
            for ((_, stored), (name, header)) in tensors.iter().zip(&headers) {
                add(&mut archive, name, header, stored, compress)?;
            }
            archive.finish().map(|_| ()).map_err(io::Error::other)
        };
        write().map_err(|e| file_error(path, &e))
    })
}

fn refuse(path: &Path, key: &str, problem: &str) -> Error {
    Error::File { path: path.display().to_string(), problem: format!("{key:?} cannot be written: {problem}") }
}

/// The name of a member. Archives know their own rules for names that are not ASCII.
fn name(path: &Path, key: &str) -> Result<String> {
    let name = format!("{key}.npy");
    if name.is_ascii() || ZipFilePath::from_str(&name).as_str() == name {
        return Ok(name);
    }
    Err(refuse(path, key, "the key is no name of a file in an archive"))
}

fn add<W: Write>(
    archive: &mut ZipArchiveWriter<W>,
    name: &str,
    header: &[u8],
    stored: &Stored,
    compress: bool,
) -> io::Result<()> {
    let entry_path =
        if name.is_ascii() { EntryPath::verbatim(name.as_bytes()) } else { EntryPath::conformant(name) };
    let method = if compress { CompressionMethod::DEFLATE } else { CompressionMethod::STORE };
    let builder = archive.new_file(entry_path).compression_method(method).unix_permissions(0o644);
    let (mut entry, config) = builder.start().map_err(io::Error::other)?;
    let descriptor = if compress {
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
        array(&mut writer, header, stored)?;
        let (encoder, descriptor) = writer.finish().map_err(io::Error::other)?;
        encoder.finish()?;
        descriptor
    } else {
        let mut writer = config.wrap(&mut entry);
        array(&mut writer, header, stored)?;
        writer.finish().map_err(io::Error::other)?.1
    };
    entry.finish(descriptor).map_err(io::Error::other)?;
    Ok(())
}

/// The header of an array, after a check that NumPy can hold it.
fn header(path: &Path, key: &str, stored: &Stored) -> Result<Vec<u8>> {
    let descr = match stored {
        Stored::Tensor(x) => Descr::name_of(x.dtype()).map(str::to_owned).ok_or_else(|| {
            refuse(path, key, &format!("NumPy has no {}; cast it to f32 before", x.dtype()))
        })?,
        Stored::Strings(strings) => {
            // NumPy fills strings up with zeros, and takes all zeros at the end for that.
            if strings.values.iter().any(|value| value.ends_with(&[0])) {
                return Err(refuse(path, key, "NumPy has no strings that end in a zero byte"));
            }
            if strings.values.len() != strings.shape.size() {
                return Err(refuse(path, key, "there are more or fewer strings than the shape asks for"));
            }
            format!("|S{}", width(strings))
        }
        Stored::Raw(raw) => {
            let Some((descr, size)) = Descr::of_raw(&raw.dtype) else {
                return Err(refuse(path, key, &format!("NumPy has no dtype {}", raw.dtype)));
            };
            let bytes = raw.shape.iter().try_fold(size, |bytes, &dim| bytes.checked_mul(dim));
            if bytes != Some(raw.bytes.len()) {
                return Err(refuse(
                    path,
                    key,
                    &format!("{} bytes for {}{}", raw.bytes.len(), raw.dtype, raw.shape),
                ));
            }
            descr
        }
    };
    Ok(Header::write(&descr, stored.shape()))
}

/// The bytes of the longest string, and one at least.
fn width(strings: &Strings) -> usize {
    strings.values.iter().map(Vec::len).max().unwrap_or(0).max(1)
}

fn array(file: &mut impl Write, header: &[u8], stored: &Stored) -> io::Result<()> {
    file.write_all(header)?;
    match stored {
        Stored::Tensor(x) => x.each_bytes(|bytes| file.write_all(bytes)),
        Stored::Raw(raw) => file.write_all(&raw.bytes),
        Stored::Strings(strings) => {
            let mut padded = vec![0; width(strings)];
            strings.values.iter().try_for_each(|value| {
                padded.fill(0);
                padded[..value.len()].copy_from_slice(value);
                file.write_all(&padded)
            })
        }
    }
}
