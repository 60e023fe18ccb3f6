//! Files as slices of bytes.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

/// The bytes of a file, read by the system where they are touched.
///
/// Whoever cuts the file short while it is mapped ends the process at the next touch of a missing page. The library never
/// does that to a file: what it writes takes the place of an older file, whose bytes stay as long as they are mapped.
pub(crate) struct Mapping(Option<Mmap>);

impl Mapping {
    /// # Errors
    /// The file cannot be opened, is no plain file, or cannot be mapped.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
        }
        if metadata.len() == 0 {
            return Ok(Mapping(None));
        }
        // SAFETY: the mapping is private and read-only, lies over the whole of a plain file, and is unmapped only when
        // this value is dropped, which outlives every slice of it. Any pattern of bits is a `u8`. Every reader copies
        // the bytes out before it relies on what it saw twice, or checks each position against the length again, so
        // another process that writes into the file changes values, not the bounds of any access.
        let map = unsafe { memmap2::MmapOptions::new().map_copy_read_only(&file) }?;
        Ok(Mapping(Some(map)))
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or(&[])
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_file_are_there_as_long_as_they_are_mapped() {
        let path = std::env::temp_dir().join(format!("couplet-mapping-{}", std::process::id()));
        std::fs::write(&path, b"abc").unwrap();
        let mapping = Mapping::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(&mapping[..], b"abc");
        std::fs::write(&path, b"").unwrap();
        assert!(Mapping::open(&path).unwrap().is_empty());
        std::fs::remove_file(&path).unwrap();
        assert!(Mapping::open(&path).is_err() && Mapping::open(&std::env::temp_dir()).is_err());
    }
}
