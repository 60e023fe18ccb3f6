//! Files that are complete or absent, whatever happens while they are written.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::temporary::{TemporaryFile, file_error};
use crate::error::Result;

/// Writes a file and puts it in the place of an older one as soon as it is whole and durable.
///
/// # Errors
/// Those of `write`, or the system refuses; then `path` is what it was.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut BufWriter<&File>) -> Result<()>) -> Result<()> {
    let temporary = TemporaryFile::create(path)?;
    let mut file = BufWriter::with_capacity(1 << 18, temporary.file());
    write(&mut file)?;
    file.flush().map_err(|e| file_error(path, &e))?;
    drop(file);
    temporary.put_in_place(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::checkpoint::testing::Folder;
    use crate::error::Error;

    #[test]
    fn an_older_file_stays_until_the_new_one_is_whole() {
        let folder = Folder::new();
        let path = folder.file("x", "old");
        let failing = replace(&path, |file| {
            file.write_all(b"ne").unwrap();
            Err(Error::usage("test", "it fails", "let it"))
        });
        assert!(failing.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        replace(&path, |file| file.write_all(b"new").map_err(|e| file_error(&path, &e))).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(folder.names(), ["x"], "nothing temporary is left");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let folder = Folder::new();
        let e = replace(&folder.path("absent/x"), |_| Ok(())).unwrap_err().to_string();
        assert!(e.contains("absent/x"), "{e}");
        fs::create_dir(folder.path("full")).unwrap();
        assert!(replace(&folder.path("full"), |_| Ok(())).is_err());
        assert_eq!(folder.names(), ["full"]);
    }
}
