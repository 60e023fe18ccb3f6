//! Reading a checkpoint.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::checksum;
use super::data::DataFiles;
use super::dtypes::Layout;
use super::objects::{self, GRAPH_KEY};
use super::partition::{Assembly, Region};
use super::record::{Header, Problem, Record};
use super::slice_key::slice_key;
use super::table::{self, TableWriter};
use super::{strings, variants};
use crate::checkpoint::file::TensorFile;
use crate::checkpoint::temporary::{file_error, with_suffix};
use crate::checkpoint::{Entry, ObjectGraph, Raw, Stored, Strings};
use crate::dtype::DType;
use crate::error::{Error, Fault, Result};
use crate::tensor::Tensor;

/// An open checkpoint of TensorFlow.
///
/// | dtype in the file                                            | what is read                                          |
/// |--------------------------------------------------------------|-------------------------------------------------------|
/// | the thirteen of [`DType`](crate::DType)                      | [`Stored::Tensor`]                                    |
/// | `string`                                                     | [`Stored::Strings`]                                   |
/// | `complex64`, `qint8`, `float8_e5m2`, `int4` and their like   | [`Stored::Raw`] with the name in TensorFlow           |
/// | `variant`                                                    | [`Stored::Raw`]: the bytes of the file, to be copied  |
/// | `resource`, `int2`, `uint2`, `float4_e2m1fn`, unknown ones   | an error; [`entries`](Bundle::entries) lists them     |
///
/// Opening reads the index and verifies all of it. The data files are mapped when the first tensor is read from them, and the
/// checksum of every tensor is verified as it is read. Tensors that are stored in slices are put together, whatever their dtype.
/// Files of machines of either byte order are read.
///
/// No length in a file is believed: what is reserved for a tensor is never more than the files hold. Opening takes memory in
/// proportion to the size of the index.
#[derive(Debug)]
pub struct Bundle {
    index_path: PathBuf,
    header: Header,
    /// In ascending order of the keys: slices, then tensors.
    records: Vec<Record>,
    entries: Vec<Entry>,
    data: DataFiles,
}

impl Bundle {
    /// Opens the checkpoint with this prefix: the path of its index without `.index`.
    ///
    /// # Errors
    /// There is no such checkpoint, or its index is damaged or of a later version.
    pub fn open(prefix: impl AsRef<Path>) -> Result<Self> {
        let prefix = prefix.as_ref();
        let index_path = with_suffix(prefix, ".index");
        let file = fs::read(&index_path).map_err(|e| not_opened(prefix, &index_path, &e))?;

        let mut header = None;
        let mut records = Vec::new();
        table::read(&index_path, &file, |key, value, at| {
            let fault = |(fault, problem): Problem| Error::format(&index_path, fault, problem).at_offset(at);
            match &header {
                None if key.is_empty() => header = Some(Header::decode(value).map_err(fault)?),
                None => {
                    return Err(fault((
                        Fault::MissingHeader,
                        "the first key is not the empty one".to_owned(),
                    )));
                }
                Some(Header { shards, .. }) => {
                    let record = Record::decode(key, value, *shards);
                    records.push(record.map_err(|e| fault(e).of_tensor(&key.escape_ascii().to_string()))?);
                }
            }
            Ok(())
        })?;
        let header = header.ok_or_else(|| {
            Error::format(&index_path, Fault::MissingHeader, "the index has no entries at all")
        })?;
        let data = DataFiles::new(prefix.to_owned(), header.shards);
        let mut bundle = Bundle { index_path, header, records, entries: Vec::new(), data };
        bundle.entries = bundle.list()?;
        Ok(bundle)
    }

    /// All tensors but the object graph, in ascending order of the keys' bytes. Of a partitioned tensor this is the whole.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// All lines of the index but its header, in order: also those of slices and of the object graph.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The number of data files.
    pub fn shards(&self) -> usize {
        self.header.shards as usize
    }

    /// Reads the tensor with this key and verifies its checksum.
    ///
    /// # Errors
    /// There is none of this key, a data file is missing, the tensor or its entry is damaged, or it has a dtype that is not known.
    pub fn read(&self, key: &str) -> Result<Stored> {
        let record = self.find(key.as_bytes()).filter(|record| !record.is_slice());
        let record = record.ok_or_else(|| {
            Error::format(&self.index_path, Fault::MissingTensor, "the checkpoint has no tensor of this key")
        });
        record
            .and_then(
                |record| if record.slices.is_empty() { self.whole(record) } else { self.partitioned(record) },
            )
            .map_err(|e| e.of_tensor(key))
    }

    /// The object graph, or `None` if the checkpoint was written by name.
    ///
    /// # Errors
    /// The file is damaged, the tensor is no scalar string, or its bytes are no graph with a root whose edges all lead to nodes.
    pub fn graph(&self) -> Result<Option<ObjectGraph>> {
        if self.find(GRAPH_KEY.as_bytes()).is_none() {
            return Ok(None);
        }
        let stored = self.read(GRAPH_KEY)?;
        let malformed = |problem: String| {
            Error::format(&self.index_path, Fault::MalformedGraph, problem).of_tensor(GRAPH_KEY)
        };
        match &stored {
            Stored::Strings(Strings { shape, values }) if shape.is_empty() && values.len() == 1 => {
                objects::decode(&values[0]).map(Some).map_err(malformed)
            }
            _ => {
                let (dtype, shape) = (stored.dtype(), stored.shape());
                Err(malformed(format!("a tensor {dtype}{shape:?}, expected one string")))
            }
        }
    }

    /// One line a tensor, the object graph among them: `key (DT_FLOAT) [2,3]`. Partitioned tensors have one line, with the
    /// shape of the whole; TensorFlow lists their slices instead.
    pub fn debug_string(&self) -> String {
        let lines = self.records.iter().filter(|record| !record.is_slice()).map(|record| {
            let dims: Vec<String> = record.shape.iter().map(usize::to_string).collect();
            let key = String::from_utf8_lossy(&record.key);
            format!("{key} ({}) [{}]\n", record.element().constant(), dims.join(","))
        });
        lines.collect()
    }

    /// The index as TensorFlow writes one: the bytes of the file, if TensorFlow wrote it. An index that was compressed, or in
    /// which something is written that has no meaning, becomes a plain one that says the same.
    pub fn index_bytes(&self) -> Vec<u8> {
        index_bytes(&self.header, &self.records)
    }

    fn find(&self, key: &[u8]) -> Option<&Record> {
        let at = self.records.binary_search_by(|record| record.key.as_slice().cmp(key)).ok()?;
        self.records.get(at)
    }

    /// The parts of a partitioned tensor with the keys under which they are stored.
    fn parts<'a>(&'a self, record: &'a Record) -> impl Iterator<Item = Option<&'a Record>> {
        record.slices.iter().map(|slice| self.find(&slice_key(&record.key, slice)))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let tensors = self.records.iter().filter(|r| !r.is_slice() && r.key != GRAPH_KEY.as_bytes());
        let entries = tensors.map(|record| {
            let key = String::from_utf8(record.key.clone()).map_err(|_| {
                let key = record.key.escape_ascii().to_string();
                Error::format(&self.index_path, Fault::MalformedEntry, "the key is not UTF-8").of_tensor(&key)
            })?;
            let bytes = if record.slices.is_empty() {
                record.size
            } else {
                self.parts(record).flatten().fold(0, |sum, part| part.size.saturating_add(sum))
            };
            Ok(Entry { key, dtype: record.element().stored(), shape: record.shape.clone(), bytes })
        });
        entries.collect()
    }

    /// A fault of what the index says.
    fn fault(&self, (fault, problem): Problem) -> Error {
        Error::format(&self.index_path, fault, problem)
    }

    /// A tensor that is stored in one piece.
    fn whole(&self, record: &Record) -> Result<Stored> {
        let count = record.elements().map_err(|e| self.fault(e))?;
        match record.element().layout() {
            Layout::Fixed { size, number } => {
                let bytes = count.checked_mul(size).filter(|&bytes| bytes <= isize::MAX as usize);
                if bytes.is_none_or(|bytes| bytes as u64 != record.size) {
                    let (name, shape) = (record.element().name(), &record.shape);
                    let problem = format!("{} bytes for {name}{shape}, {size} an element", record.size);
                    return Err(self.fault((Fault::SizeMismatch, problem)));
                }
                self.numbers(record, number)
            }
            Layout::Strings => {
                let file = self.data.of(record)?;
                let decoded = strings::decode(file.range(record)?, count, self.header.big_endian);
                let (values, crc) = decoded.map_err(|e| file.fault(record, e))?;
                file.verify(crc, record)?;
                Ok(Stored::Strings(Strings { shape: record.shape.clone(), values }))
            }
            Layout::Variants if !self.header.big_endian => {
                let file = self.data.of(record)?;
                let bytes = file.range(record)?;
                let crc = variants::verify(bytes, count).map_err(|e| file.fault(record, e))?;
                file.verify(crc, record)?;
                Ok(self.raw(record, bytes.to_vec()))
            }
            Layout::Variants => {
                let problem = "variants of a machine of the other byte order cannot be read".to_owned();
                Err(self.fault((Fault::UnsupportedDType, problem)))
            }
            Layout::Unknown => {
                let problem = format!("elements of dtype {} cannot be read", record.element().name());
                Err(self.fault((Fault::UnsupportedDType, problem)))
            }
        }
    }

    /// A tensor of numbers of `width` bytes, whose size is what its shape asks for.
    fn numbers(&self, record: &Record, width: usize) -> Result<Stored> {
        let file = self.data.of(record)?;
        let bytes = file.range(record)?;
        file.verify(checksum::extend(0, bytes), record)?;
        if record.element().dtype() == Some(DType::Bool) && bytes.iter().any(|&byte| byte > 1) {
            let problem = "a bool that is neither 0 nor 1".to_owned();
            return Err(file.fault(record, (Fault::MalformedTensor, problem)));
        }
        if !self.header.big_endian || width == 1 {
            return self.stored(record, bytes.into());
        }
        let mut turned = bytes.to_vec();
        turned.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        self.stored(record, turned.into())
    }

    /// The tensor of these elements, each in little-endian order.
    fn stored(&self, record: &Record, bytes: Cow<'_, [u8]>) -> Result<Stored> {
        let Some(dtype) = record.element().dtype() else {
            return Ok(self.raw(record, bytes.into_owned()));
        };
        Tensor::from_bytes(&bytes, record.shape.clone(), dtype).map(Stored::Tensor)
    }

    fn raw(&self, record: &Record, bytes: Vec<u8>) -> Stored {
        Stored::Raw(Raw { dtype: record.element().name().into_owned(), shape: record.shape.clone(), bytes })
    }

    /// A tensor that is stored in slices.
    fn partitioned(&self, record: &Record) -> Result<Stored> {
        let count = record.elements().map_err(|e| self.fault(e))?;
        let mut parts = Vec::with_capacity(record.slices.len());
        for (slice, part) in record.slices.iter().zip(self.parts(record)) {
            let region = Region::new(slice, &record.shape).map_err(|e| self.fault(e))?;
            let part = part.ok_or_else(|| {
                self.fault((Fault::MissingSlice, format!("the index has no slice {slice:?} of this tensor")))
            })?;
            if part.dtype != record.dtype || part.shape != *region.dims() || !part.slices.is_empty() {
                let problem = format!(
                    "a slice {:?} is stored as {}{}",
                    region.dims(),
                    part.element().name(),
                    part.shape
                );
                return Err(self.fault((Fault::MalformedEntry, problem)));
            }
            parts.push((region, part));
        }
        self.check_room(record, count, &parts)?;

        let joined = |e| self.fault(e);
        match record.element().layout() {
            Layout::Fixed { size, .. } => {
                let mut assembly = Assembly::new(&record.shape, count, size);
                for (region, part) in &parts {
                    let bytes = match self.whole(part)? {
                        Stored::Tensor(x) => {
                            let mut bytes = Vec::new();
                            x.write_bytes(&mut bytes)?;
                            bytes
                        }
                        Stored::Raw(raw) => raw.bytes,
                        Stored::Strings(_) => Vec::new(),
                    };
                    assembly.put(region, &bytes).map_err(joined)?;
                }
                let bytes = assembly.finish().map_err(joined)?;
                match record.element().dtype() {
                    Some(dtype) => {
                        Tensor::from_bytes(&bytes, record.shape.clone(), dtype).map(Stored::Tensor)
                    }
                    None => Ok(self.raw(record, bytes)),
                }
            }
            Layout::Strings => {
                let mut assembly = Assembly::new(&record.shape, count, 1);
                for (region, part) in &parts {
                    if let Stored::Strings(strings) = self.whole(part)? {
                        assembly.put(region, &strings.values).map_err(joined)?;
                    }
                }
                let values = assembly.finish().map_err(joined)?;
                Ok(Stored::Strings(Strings { shape: record.shape.clone(), values }))
            }
            Layout::Variants | Layout::Unknown => {
                let problem = format!("slices of dtype {} cannot be put together", record.element().name());
                Err(self.fault((Fault::UnsupportedDType, problem)))
            }
        }
    }

    /// Sees to it that the parts have `count` elements together, and the files the bytes for them: before memory is reserved.
    fn check_room(&self, record: &Record, count: usize, parts: &[(Region, &Record)]) -> Result<()> {
        let (mut elements, mut files) = (0usize, BTreeMap::new());
        for (_, part) in parts {
            elements = elements.saturating_add(part.elements().map_err(|e| self.fault(e))?);
            files.insert(part.shard, self.data.of(part)?.length());
        }
        if elements != count {
            let fault = if elements < count { Fault::MissingSlice } else { Fault::MalformedEntry };
            let problem = format!("slices of {elements} elements together for shape {}", record.shape);
            return Err(self.fault((fault, problem)));
        }
        let width = match record.element().layout() {
            Layout::Fixed { size, .. } => size,
            _ => 1,
        };
        let there = files.values().fold(0usize, |sum, &length| sum.saturating_add(length));
        if count.checked_mul(width).is_none_or(|bytes| bytes > there) {
            let problem =
                format!("{count} elements of {width} bytes or more, but the files have {there} bytes");
            return Err(self.fault((Fault::OutOfRange, problem)));
        }
        Ok(())
    }
}

impl TensorFile for Bundle {
    fn entries(&self) -> &[Entry] {
        self.entries()
    }

    fn read(&self, key: &str) -> Result<Stored> {
        self.read(key)
    }

    fn graph(&self) -> Result<Option<ObjectGraph>> {
        self.graph()
    }
}

/// The bytes of an index with records in ascending order of their keys.
pub(super) fn index_bytes<'a>(header: &Header, records: impl IntoIterator<Item = &'a Record>) -> Vec<u8> {
    let mut table = TableWriter::new();
    table.add(b"", &header.encode());
    for record in records {
        table.add(&record.key, &record.encode());
    }
    table.finish()
}

/// Why there is no index at this path, and what to give instead.
fn not_opened(prefix: &Path, index_path: &Path, e: &io::Error) -> Error {
    let name = prefix.to_string_lossy();
    let of_file = name.strip_suffix(".index").or_else(|| name.rfind(".data-").map(|at| &name[..at]));
    let problem = match of_file {
        _ if e.kind() != io::ErrorKind::NotFound => return file_error(index_path, e),
        Some(prefix) if Path::new(name.as_ref()).is_file() => {
            format!("a file of a checkpoint, which is opened by its prefix {prefix}")
        }
        _ if prefix.is_dir() => "a folder, give the prefix of a checkpoint in it".to_owned(),
        _ => format!(
            "no checkpoint: there is no {}; a prefix may end in a number, as in ckpt-1",
            index_path.display()
        ),
    };
    Error::File { path: name.into_owned(), problem }
}
