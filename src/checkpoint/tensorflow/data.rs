//! Data files: mapped when the first tensor is read from them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::checksum;
use super::record::{Problem, Record};
use crate::checkpoint::temporary::{file_error, with_suffix};
use crate::error::{Error, Fault, Result};
use crate::kernels::mapping::Mapping;

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
        // A panic elsewhere leaves the map as good as it was.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.get(&record.shard) {
            return Ok(file.clone());
        }
        let file = Arc::new(DataFile::open(data_path(&self.prefix, record.shard, self.shards))?);
        open.insert(record.shard, file.clone());
        Ok(file)
    }
}

/// A data file in memory, as far as it is touched.
#[derive(Debug)]
pub(super) struct DataFile {
    path: PathBuf,
    bytes: Mapping,
}

impl DataFile {
    fn open(path: PathBuf) -> Result<Self> {
        let bytes = Mapping::open(&path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                Error::format(&path, Fault::MissingShard, "the index leads to this file, but there is none")
            }
            _ => file_error(&path, &e),
        })?;
        Ok(DataFile { path, bytes })
    }

    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes of a tensor.
    pub(super) fn range(&self, record: &Record) -> Result<&[u8]> {
        let (start, size) = (usize::try_from(record.offset).ok(), usize::try_from(record.size).ok());
        let end = start.zip(size).and_then(|(start, size)| start.checked_add(size));
        start.zip(end).and_then(|(start, end)| self.bytes.get(start..end)).ok_or_else(|| {
            let problem =
                format!("{} bytes asked for, but the file ends at {}", record.size, self.bytes.len());
            self.fault(record, (Fault::OutOfRange, problem))
        })
    }

    /// Compares the checksum of a tensor with the one in the index.
    pub(super) fn verify(&self, crc: u32, record: &Record) -> Result<()> {
        let actual = checksum::mask(crc);
        if actual != record.checksum {
            let problem = format!("checksum {actual:08x}, expected {:08x}", record.checksum);
            return Err(self.fault(record, (Fault::TensorChecksum, problem)));
        }
        Ok(())
    }

    /// A fault of the bytes of a tensor.
    pub(super) fn fault(&self, record: &Record, (fault, problem): Problem) -> Error {
        Error::format(&self.path, fault, problem).at_offset(record.offset)
    }
}
