//! Data files: opened when the first tensor is read from them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::checksum;
use super::record::Record;
use crate::checkpoint::temporary::{file_error, with_suffix};
use crate::error::{Error, Fault, Result};

/// The name of a data file.
pub(super) fn data_path(prefix: &Path, shard: u32, shards: u32) -> PathBuf {
    with_suffix(prefix, &format!(".data-{shard:05}-of-{shards:05}"))
}

/// The data files of a checkpoint.
#[derive(Debug)]
pub(super) struct DataFiles {
    prefix: PathBuf,
    shards: u32,
    open: Mutex<BTreeMap<u32, Arc<DataFile>>>,
}

impl DataFiles {
    pub(super) fn new(prefix: PathBuf, shards: u32) -> Self {
        DataFiles { prefix, shards, open: Mutex::new(BTreeMap::new()) }
    }

    /// The file that holds the tensor.
    pub(super) fn of(&self, record: &Record) -> Result<Arc<DataFile>> {
        let mut open = lock(&self.open);
        if let Some(file) = open.get(&record.shard) {
            return Ok(file.clone());
        }
        let file = Arc::new(DataFile::open(data_path(&self.prefix, record.shard, self.shards))?);
        open.insert(record.shard, file.clone());
        Ok(file)
    }
}

/// An open data file.
#[derive(Debug)]
pub(super) struct DataFile {
    path: PathBuf,
    file: Mutex<File>,
    length: u64,
}

impl DataFile {
    fn open(path: PathBuf) -> Result<Self> {
        let file = File::open(&path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                Error::format(&path, Fault::MissingShard, "the index leads to this file, but there is none")
            }
            _ => file_error(&path, &e),
        })?;
        let length = file.metadata().map_err(|e| file_error(&path, &e))?.len();
        Ok(DataFile { path, file: Mutex::new(file), length })
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The bytes of a tensor, to be read from front to end.
    pub(super) fn range(&self, record: &Record) -> Result<Range<'_>> {
        match record.offset.checked_add(record.size) {
            Some(end) if end <= self.length => {
                Ok(Range { file: self, start: record.offset, position: record.offset, end, crc: 0 })
            }
            _ => {
                let problem =
                    format!("{} bytes asked for, but the file ends at {}", record.size, self.length);
                Err(Error::format(&self.path, Fault::OutOfRange, problem).at_offset(record.offset))
            }
        }
    }
}

/// Bytes of a data file that have not been read yet.
#[derive(Debug)]
pub(super) struct Range<'a> {
    file: &'a DataFile,
    start: u64,
    position: u64,
    end: u64,
    crc: u32,
}

impl Range<'_> {
    /// Reads the next bytes.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        let mut file = lock(&self.file.file);
        file.seek(SeekFrom::Start(self.position))
            .and_then(|_| file.read_exact(bytes))
            .map_err(|e| file_error(&self.file.path, &e))?;
        drop(file);
        self.position += bytes.len() as u64;
        self.crc = checksum::extend(self.crc, bytes);
        Ok(())
    }

    /// All bytes that are left.
    pub(super) fn rest(&mut self) -> Result<Vec<u8>> {
        let size = self.end - self.position;
        let mut bytes = Vec::new();
        let room =
            usize::try_from(size).ok().and_then(|size| bytes.try_reserve_exact(size).ok().map(|()| size));
        let Some(size) = room else {
            return Err(Error::File {
                path: self.file.path.display().to_string(),
                problem: format!("no memory for {size} bytes"),
            });
        };
        bytes.resize(size, 0);
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// The checksum of the bytes read.
    pub(super) fn checksum(&self) -> u32 {
        self.crc
    }

    /// Compares a checksum, usually that of all bytes, with the one in the index.
    pub(super) fn verify(&self, crc: u32, record: &Record) -> Result<()> {
        let actual = checksum::mask(crc);
        if actual != record.checksum {
            let problem = format!("checksum {actual:08x}, expected {:08x}", record.checksum);
            return Err(self.fault(Fault::TensorChecksum, problem));
        }
        Ok(())
    }

    /// A fault of the bytes.
    pub(super) fn fault(&self, fault: Fault, problem: impl Into<String>) -> Error {
        Error::format(&self.file.path, fault, problem).at_offset(self.start)
    }
}

/// The value under a lock. A panic elsewhere leaves files and maps as good as they were.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
