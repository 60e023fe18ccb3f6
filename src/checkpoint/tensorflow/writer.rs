//! Writing a checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::bundle::{Bundle, index_bytes};
use super::checksum;
use super::data::data_path;
use super::dtypes::{ElementType, Layout};
use super::objects::{self, GRAPH_KEY};
use super::record::{Header, Record};
use super::{strings, variants};
use crate::checkpoint::temporary::{TemporaryFile, file_error, sync_folder, with_suffix};
use crate::checkpoint::{ObjectGraph, Raw, Stored, Strings};
use crate::error::{Error, Result};
use crate::tensor::Shape;

const OP: &str = "BundleWriter";

/// Bytes that are collected before they are written.
const BUFFER: usize = 256 << 10;

/// Writes a checkpoint that TensorFlow reads: the bytes that it would write itself, if the tensors come in its order.
///
/// The tensors go to data files with temporary names as they are added, each through a small buffer. [`finish`](BundleWriter::finish)
/// waits until the files are on the disk and gives them their names, the index last: where there is an index, there is a whole
/// checkpoint. If anything fails, or the writer is dropped before, no file is left.
#[derive(Debug)]
pub struct BundleWriter {
    prefix: PathBuf,
    align: u64,
    max_shard_size: u64,
    overwrite: bool,
    shards: Vec<Shard>,
    records: BTreeMap<Vec<u8>, Record>,
    /// Whether a tensor was written in part: its bytes stand where the next would be expected.
    failed: bool,
}

impl BundleWriter {
    /// A writer for the checkpoint with this prefix. Its folder is made if there is none.
    pub fn new(prefix: impl Into<PathBuf>) -> Self {
        BundleWriter {
            prefix: prefix.into(),
            align: 1,
            max_shard_size: u64::MAX,
            overwrite: false,
            shards: Vec::new(),
            records: BTreeMap::new(),
            failed: false,
        }
    }

    /// Every tensor begins at a multiple of so many bytes, and every file ends at one, as is good for files that are mapped.
    /// Default: 1, as TensorFlow writes; 0 is the same.
    #[must_use]
    pub fn align(mut self, bytes: usize) -> Self {
        self.align = (bytes as u64).max(1);
        self
    }

    /// A data file that would grow larger is followed by another. Tensors are not divided: one that is larger than this has a
    /// file of its own. Default: one file.
    #[must_use]
    pub fn max_shard_size(mut self, bytes: u64) -> Self {
        self.max_shard_size = bytes;
        self
    }

    /// Whether a checkpoint with the same prefix may be replaced. Its files are removed when all of the new one are written.
    /// Default: no, finishing is an error.
    #[must_use]
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Writes a tensor. The order of the calls is that of the data.
    ///
    /// # Errors
    /// The key is empty, begins with a zero byte or was used before; a [`Raw`](crate::checkpoint::Raw) tensor has a dtype that
    /// TensorFlow has not or more or fewer bytes than it asks for; a file cannot be written.
    pub fn add(&mut self, key: &str, stored: &Stored) -> Result<()> {
        if key.is_empty() || key.starts_with('\0') || self.records.contains_key(key.as_bytes()) {
            return Err(Error::argument(
                OP,
                "key",
                format!("{key:?}"),
                "a key that is not empty, is new and begins with no zero byte",
            ));
        }
        let plan = Plan::new(stored)?;
        self.write(key, stored, plan).inspect_err(|_| self.failed = true)
    }

    /// Writes the object graph, which comes last in what TensorFlow writes.
    ///
    /// # Errors
    /// There is one already, or a file cannot be written.
    pub fn add_graph(&mut self, graph: &ObjectGraph) -> Result<()> {
        self.add(GRAPH_KEY, &Stored::Strings(Strings::scalar(objects::encode(graph))))
    }

    /// Makes the checkpoint appear under its prefix.
    ///
    /// # Errors
    /// There is one with this prefix and it may not be replaced, an [`add`](BundleWriter::add) failed, or a file cannot be written.
    pub fn finish(mut self) -> Result<()> {
        if self.failed {
            return Err(Error::usage(OP, "a tensor could not be written", "begin anew"));
        }
        self.make_folder()?;
        let index_path = with_suffix(&self.prefix, ".index");
        if !self.overwrite && index_path.exists() {
            let problem = "there is a checkpoint of this name".to_owned();
            return Err(Error::File { path: index_path.display().to_string(), problem });
        }
        if self.shards.is_empty() {
            self.shards.push(Shard::create(&self.prefix)?);
        }
        let count = self.shards.len() as u32;
        for shard in &mut self.shards {
            shard.flush()?;
            shard.file.sync()?;
        }
        let mut index = TemporaryFile::create(&index_path)?;
        index.write(&index_bytes(&Header::new(count), self.records.values()))?;
        index.sync()?;

        remove(&self.prefix, &index_path)?;
        for (i, shard) in self.shards.iter_mut().enumerate() {
            shard.file.rename(&data_path(&self.prefix, i as u32, count))?;
        }
        // The names of the data must be on the disk before that of the index is.
        sync_folder(&index_path)?;
        index.rename(&index_path)?;
        sync_folder(&index_path)?;
        index.keep();
        self.shards.into_iter().for_each(|shard| shard.file.keep());
        Ok(())
    }

    fn write(&mut self, key: &str, stored: &Stored, plan: Plan) -> Result<()> {
        let Plan { element, size, head, mut crc } = plan;
        let (i, offset) = self.place(size)?;
        let (shard, align) = (&mut self.shards[i], self.align);
        shard.write(&head)?;
        match stored {
            Stored::Tensor(x) => x.each_bytes(|bytes| {
                crc = checksum::extend(crc, bytes);
                shard.write(bytes)
            })?,
            Stored::Strings(strings) => {
                for value in &strings.values {
                    crc = checksum::extend(crc, value);
                    shard.write(value)?;
                }
            }
            Stored::Raw(raw) => shard.write(&raw.bytes)?,
        }
        shard.fill_up(align)?;
        let record = Record {
            key: key.as_bytes().to_vec(),
            dtype: element.0,
            shape: Shape::from(stored.shape()),
            shard: i as u32,
            offset,
            size,
            checksum: checksum::mask(crc),
            slices: Vec::new(),
        };
        self.records.insert(record.key.clone(), record);
        Ok(())
    }

    /// The number of the data file for `size` more bytes, and where in it they begin.
    fn place(&mut self, size: u64) -> Result<(usize, u64)> {
        let fits = |shard: &Shard| {
            shard.length == 0 || shard.length.checked_add(size).is_some_and(|end| end <= self.max_shard_size)
        };
        if !self.shards.last().is_some_and(fits) {
            if let Some(shard) = self.shards.last_mut() {
                shard.flush()?;
            }
            self.make_folder()?;
            self.shards.push(Shard::create(&self.prefix)?);
        }
        let last = self.shards.len() - 1;
        Ok((last, self.shards[last].length))
    }

    fn make_folder(&self) -> Result<()> {
        match self.prefix.parent() {
            Some(folder) => fs::create_dir_all(folder).map_err(|e| file_error(folder, &e)),
            None => Ok(()),
        }
    }
}

/// How a tensor is stored.
struct Plan {
    element: ElementType,
    /// Bytes in all.
    size: u64,
    /// What stands before the elements.
    head: Vec<u8>,
    /// The checksum of what is known already: of the head, or of all.
    crc: u32,
}

impl Plan {
    fn new(stored: &Stored) -> Result<Self> {
        match stored {
            Stored::Tensor(x) => {
                let (element, size) = (ElementType::of(x.dtype()), x.size() * x.dtype().size());
                Ok(Plan { element, size: size as u64, head: Vec::new(), crc: 0 })
            }
            Stored::Strings(Strings { shape, values }) => {
                if shape.size() != values.len() {
                    let expected = format!("as many as shape {shape} has elements");
                    return Err(Error::argument(OP, "stored", format!("{} strings", values.len()), expected));
                }
                let (head, crc) = strings::head(values);
                let size = head.len() + values.iter().map(Vec::len).sum::<usize>();
                Ok(Plan { element: ElementType::STRING, size: size as u64, head, crc })
            }
            Stored::Raw(Raw { dtype, shape, bytes }) => {
                let element = ElementType::named(dtype);
                let crc = element.and_then(|element| raw_checksum(element, shape, bytes));
                let Some((element, crc)) = element.zip(crc) else {
                    let got = format!("{} bytes of dtype {dtype} with shape {shape}", bytes.len());
                    let expected = "a dtype of TensorFlow and the bytes of its elements";
                    return Err(Error::argument(OP, "stored", got, expected));
                };
                Ok(Plan { element, size: bytes.len() as u64, head: Vec::new(), crc })
            }
        }
    }
}

/// A data file on its way.
#[derive(Debug)]
struct Shard {
    file: TemporaryFile,
    /// What is not in the file yet.
    buffer: Vec<u8>,
    /// Bytes of the file and the buffer.
    length: u64,
}

impl Shard {
    fn create(prefix: &Path) -> Result<Self> {
        let file = TemporaryFile::create(&with_suffix(prefix, ".data"))?;
        Ok(Shard { file, buffer: Vec::new(), length: 0 })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        if bytes.len() >= BUFFER {
            self.file.write(bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Appends zeros up to a multiple of so many bytes.
    fn fill_up(&mut self, align: u64) -> Result<()> {
        let end = self.length.next_multiple_of(align);
        while self.length < end {
            let zeros = (end - self.length).min(BUFFER as u64);
            self.write(&vec![0; zeros as usize])?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// The checksum of the bytes of a tensor that is none of ours, if they are one.
fn raw_checksum(element: ElementType, shape: &Shape, bytes: &[u8]) -> Option<u32> {
    match element.layout() {
        Layout::Fixed { size, .. } => {
            (shape.size().checked_mul(size) == Some(bytes.len())).then(|| checksum::extend(0, bytes))
        }
        Layout::Variants => variants::verify(bytes, shape.size()).ok(),
        Layout::Strings | Layout::Unknown => None,
    }
}

/// Removes the checkpoint of this prefix, if there is one: its index first, and then the data files that it names.
fn remove(prefix: &Path, index_path: &Path) -> Result<()> {
    if !index_path.exists() {
        return Ok(());
    }
    // A damaged index does not say which files are its own: they stay, or are replaced.
    let (mut shards, mut count) = (BTreeSet::from([0]), 0);
    if let Ok(bundle) = Bundle::open(prefix) {
        shards.extend(bundle.records().iter().map(|record| record.shard));
        count = bundle.shards() as u32;
    }
    fs::remove_file(index_path).map_err(|e| file_error(index_path, &e))?;
    sync_folder(index_path)?;
    for shard in shards {
        let path = data_path(prefix, shard, count);
        if path.exists() {
            fs::remove_file(&path).map_err(|e| file_error(&path, &e))?;
        }
    }
    Ok(())
}
