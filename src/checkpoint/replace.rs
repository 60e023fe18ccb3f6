//! Files that are complete or absent, whatever happens while they are written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// A file under a name of its own, which takes the place of another one when it is whole and durable. Dropped before, it
/// is removed.
#[derive(Debug)]
pub(crate) struct Replacement {
    path: PathBuf,
    temporary: PathBuf,
    /// `None` once the file is in its place.
    file: Option<BufWriter<File>>,
}

/// An error of the system about a file.
pub(crate) fn io_error(path: &Path, what: &str, e: &io::Error) -> Error {
    Error::File { path: path.display().to_string(), problem: format!("{what}: {e}") }
}

impl Replacement {
    /// Begins a file beside `path`.
    ///
    /// # Errors
    /// `path` ends in no name, or its folder cannot be written to.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Some(name) = path.file_name() else {
            let problem = "expected the name of a file".to_owned();
            return Err(Error::File { path: path.display().to_string(), problem });
        };
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut own = std::ffi::OsString::from(".");
        own.push(name);
        own.push(format!(".{}.{count}.tmp", std::process::id()));
        let temporary = path.with_file_name(own);
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary);
        let file = file.map_err(|e| io_error(path, "it cannot be written", &e))?;
        let file = Some(BufWriter::with_capacity(1 << 18, file));
        Ok(Replacement { path: path.to_owned(), temporary, file })
    }

    /// Makes what was written durable and puts it in its place.
    ///
    /// # Errors
    /// The system refuses; then `path` is what it was.
    pub(crate) fn finish(mut self) -> Result<()> {
        let failed = |e: io::Error| io_error(&self.path, "it cannot be written", &e);
        if let Some(file) = &mut self.file {
            file.flush().and_then(|()| file.get_ref().sync_all()).map_err(failed)?;
            fs::rename(&self.temporary, &self.path).map_err(failed)?;
        }
        self.file = None;
        sync_folder(&self.path).map_err(|e| io_error(&self.path, "its folder cannot be made durable", &e))
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Ok(0),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // What is still buffered need not be written any more.
        if let Some(file) = self.file.take() {
            drop(file.into_parts());
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Makes the names in the folder of `path` durable.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Elsewhere folders cannot be opened; their names are made durable with the files.
#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::testing::Folder;

    #[test]
    fn an_older_file_stays_until_the_new_one_is_whole() {
        let folder = Folder::new();
        let path = folder.path("x");
        fs::write(&path, "old").unwrap();
        let mut half = Replacement::create(&path).unwrap();
        half.write_all(b"ne").unwrap();
        drop(half);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let mut whole = Replacement::create(&path).unwrap();
        whole.write_all(b"new").unwrap();
        whole.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(folder.names(), ["x"], "nothing temporary is left");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let folder = Folder::new();
        let e = Replacement::create(&folder.path("absent/x")).unwrap_err().to_string();
        assert!(e.contains("absent/x: it cannot be written"), "{e}");
        fs::create_dir(folder.path("full")).unwrap();
        assert!(Replacement::create(&folder.path("full")).unwrap().finish().is_err());
        assert_eq!(folder.names(), ["full"]);
    }
}
