//! Reading a container.

use std::path::{Path, PathBuf};

use super::super::file::{Prepared, TensorFile};
use super::super::graph::ObjectGraph;
use super::super::stored::{Entry, Raw, Stored, StoredDType, Strings};
use super::super::temporary::file_error;
use super::header::{Header, Place, dtype_of};
use super::{COVERED, FIXED, MAGIC, VERSION, checksum, extend};
use crate::codec;
use crate::dtype::DType;
use crate::error::{Error, Fault, Result};
use crate::kernels::mapping::Mapping;
use crate::tensor::{Shape, Tensor};

/// An open container. Its bytes stay as they are while it is open, also when another file takes its name.
#[derive(Debug)]
pub(crate) struct NativeFile {
    path: PathBuf,
    bytes: Mapping,
    graph: Option<ObjectGraph>,
    /// In the order of their keys, as the places and checksums are.
    entries: Vec<Entry>,
    pub(super) places: Vec<(Place, u32)>,
}

impl NativeFile {
    /// Opens a file and verifies its header.
    ///
    /// # Errors
    /// It is no container, is damaged, or ends too early.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let bytes = Mapping::open(path).map_err(|e| file_error(path, &e))?;
        let fault = |fault, problem: String| Error::format(path, fault, problem);
        let length = bytes.len();
        if bytes.get(..MAGIC.len()).is_some_and(|magic| magic != MAGIC) {
            return Err(fault(Fault::BadMagic, "it does not begin as a checkpoint of this library".into())
                .at_offset(0));
        }
        let fixed: &[u8; FIXED] = bytes.first_chunk().ok_or_else(|| {
            fault(
                Fault::Truncated,
                format!("it has {length} bytes, fewer than the {FIXED} that every checkpoint has"),
            )
        })?;
        let number = |at: usize| u32::from_le_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let version = number(8);
        if version != VERSION {
            let problem = format!("it has version {version}, this release reads version {VERSION}");
            return Err(fault(Fault::UnsupportedVersion, problem).at_offset(8));
        }
        let header_length = u64::from(number(16)) | u64::from(number(20)) << 32;
        let header_end = usize::try_from(header_length).ok().and_then(|n| n.checked_add(FIXED));
        let header_bytes = header_end.and_then(|end| bytes.get(FIXED..end)).ok_or_else(|| {
            fault(Fault::Truncated, format!("the header has {header_length} bytes, the file {length}"))
                .at_offset(COVERED as u64)
        })?;
        let malformed = |problem: String| fault(Fault::MalformedHeader, problem).at_offset(FIXED as u64);
        // The number of checksums stands in the header, which is trusted no further before they are all compared.
        let header: Header =
            codec::decode(header_bytes).map_err(|e| malformed(format!("it cannot be read: {}", e.root())))?;
        let table_start = FIXED + header_bytes.len();
        let table_end = header.tensors.len().checked_mul(4).and_then(|n| n.checked_add(table_start));
        let covered = table_end.and_then(|end| bytes.get(COVERED..end)).ok_or_else(|| {
            fault(Fault::Truncated, "it ends within the checksums".into()).at_offset(table_start as u64)
        })?;
        if extend(0, covered) != number(12) {
            let problem = "the header is not the one that was written".to_owned();
            return Err(fault(Fault::HeaderChecksum, problem).at_offset(COVERED as u64));
        }
        let (checksums, _) = bytes[table_start..COVERED + covered.len()].as_chunks::<4>();
        let mut places = Vec::with_capacity(header.tensors.len());
        for (place, checksum) in header.tensors.into_iter().zip(checksums) {
            check(&place, length).map_err(|(kind, problem)| {
                fault(kind, problem).at_offset(place.offset).of_tensor(&place.key)
            })?;
            places.push((place, u32::from_le_bytes(*checksum)));
        }
        places.sort_by(|(a, _), (b, _)| a.key.as_bytes().cmp(b.key.as_bytes()));
        if let Some(twice) = places.windows(2).find(|pair| pair[0].0.key == pair[1].0.key) {
            let problem = format!("there are two tensors of the key {:?}", twice[0].0.key);
            return Err(malformed(problem).of_tensor(&twice[0].0.key));
        }
        let entries = places.iter().map(|(place, _)| entry(place)).collect();
        Ok(NativeFile { path: path.to_owned(), bytes, graph: header.graph, entries, places })
    }

    /// The bytes of a tensor, which are those that were written.
    fn verified(&self, key: &str) -> Result<(&Place, &[u8])> {
        let (place, want) = self.place(key)?;
        let bytes = self.content(place);
        let got = checksum(bytes);
        if got != *want {
            let problem =
                format!("the checksum of its bytes is {got:08x}, that of those written is {want:08x}");
            return Err(self.fault(place, Fault::TensorChecksum, problem));
        }
        if dtype_of(&place.dtype) == StoredDType::Tensor(DType::Bool) && bytes.iter().any(|&byte| byte > 1) {
            let problem = "a byte is neither 0 nor 1".to_owned();
            return Err(self.fault(place, Fault::MalformedTensor, problem));
        }
        Ok((place, bytes))
    }

    fn place(&self, key: &str) -> Result<&(Place, u32)> {
        let found = self.places.binary_search_by(|(place, _)| place.key.as_bytes().cmp(key.as_bytes()));
        found.map(|at| &self.places[at]).map_err(|_| {
            Error::format(&self.path, Fault::MissingTensor, "it holds no tensor of this key").of_tensor(key)
        })
    }

    /// The bytes at a place that was checked against the length of the file.
    fn content(&self, place: &Place) -> &[u8] {
        &self.bytes[place.offset as usize..][..place.bytes as usize]
    }

    fn fault(&self, place: &Place, fault: Fault, problem: String) -> Error {
        Error::format(&self.path, fault, problem).at_offset(place.offset).of_tensor(&place.key)
    }
}

/// What a file says of a tensor must describe one that lies in it.
fn check(place: &Place, length: usize) -> Result<(), (Fault, String)> {
    let end = place.offset.checked_add(place.bytes);
    if end.is_none_or(|end| end > length as u64) {
        let Place { offset, bytes, .. } = place;
        let problem =
            format!("its {bytes} bytes from byte {offset} on end beyond the file, which has {length}");
        return Err((Fault::OutOfRange, problem));
    }
    let size = place.dims.iter().try_fold(1u64, |size, &dim| size.checked_mul(dim));
    // A dim beyond memory would not do, even if another one is 0.
    let fits = place.dims.iter().all(|&dim| isize::try_from(dim).is_ok());
    let Some(size) = size.filter(|_| fits) else {
        return Err((Fault::MalformedEntry, format!("its shape {:?} is beyond any memory", place.dims)));
    };
    if let StoredDType::Tensor(dtype) = dtype_of(&place.dtype)
        && size.checked_mul(dtype.size() as u64) != Some(place.bytes)
    {
        let problem = format!("{dtype}{:?} does not have {} bytes", place.dims, place.bytes);
        return Err((Fault::SizeMismatch, problem));
    }
    Ok(())
}

fn shape(place: &Place) -> Shape {
    place.dims.iter().map(|&dim| dim as usize).collect::<Vec<_>>().into()
}

fn entry(place: &Place) -> Entry {
    Entry { key: place.key.clone(), dtype: dtype_of(&place.dtype), shape: shape(place), bytes: place.bytes }
}

impl TensorFile for NativeFile {
    fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn read(&self, key: &str) -> Result<Stored> {
        let (place, bytes) = self.verified(key)?;
        let shape = shape(place);
        Ok(match dtype_of(&place.dtype) {
            StoredDType::Tensor(dtype) => Tensor::from_bytes(bytes, shape, dtype)
                .map_err(|e| self.fault(place, Fault::MalformedTensor, e.to_string()))?
                .into(),
            StoredDType::String => {
                let malformed = |problem| self.fault(place, Fault::MalformedTensor, problem);
                let values: Vec<Vec<u8>> =
                    codec::decode(bytes).map_err(|e| malformed(e.root().to_string()))?;
                if values.len() != shape.size() {
                    return Err(malformed(format!("{} strings do not make the shape {shape}", values.len())));
                }
                Stored::Strings(Strings { shape, values })
            }
            StoredDType::Other(dtype) => Stored::Raw(Raw { dtype, shape, bytes: bytes.to_vec() }),
        })
    }

    fn prepare(&self, key: &str) -> Result<Prepared> {
        let (place, _) = self.place(key)?;
        match dtype_of(&place.dtype) {
            StoredDType::Tensor(_) => self.verified(key).map(|_| Prepared::Here),
            _ => self.read(key).map(Prepared::Value),
        }
    }

    fn read_into(&self, key: &str, x: &mut Tensor) -> Result<()> {
        let (place, _) = self.place(key)?;
        x.read_bytes(self.content(place))
    }

    fn graph(&self) -> Result<Option<ObjectGraph>> {
        Ok(self.graph.clone())
    }
}
