//! Files that come into being under another name and are gone if anything fails before they are whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// A new file. It is removed when dropped, also after [`rename`](TemporaryFile::rename), unless it was
/// [kept](TemporaryFile::keep).
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    file: File,
    path: PathBuf,
    kept: bool,
}

impl TemporaryFile {
    /// Creates a file beside `target`, with a name that no other file of this or another process has.
    pub(crate) fn create(target: &Path) -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = with_suffix(target, &format!(".{}-{number}.tmp", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(TemporaryFile { file, path, kept: false }),
                // Left by a process that died and had the same number.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(file_error(&path, &e)),
            }
        }
    }

    /// The file itself.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| file_error(&self.path, &e))
    }

    /// Waits until the content is on the disk.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(|e| file_error(&self.path, &e))
    }

    /// Gives the file its name, in place of any file that has it.
    pub(crate) fn rename(&mut self, target: &Path) -> Result<()> {
        fs::rename(&self.path, target).map_err(|e| file_error(target, &e))?;
        self.path = target.to_owned();
        Ok(())
    }

    /// Gives the file its name as soon as its content is on the disk, and waits until the name is, too.
    pub(crate) fn put_in_place(mut self, target: &Path) -> Result<()> {
        self.sync()?;
        self.rename(target)?;
        self.keep();
        sync_folder(target)
    }

    /// Lets the file be.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be removed stays behind; the error that led here says more.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Waits until the names in the folder of `path` are on the disk, where a system can do so.
pub(crate) fn sync_folder(path: &Path) -> Result<()> {
    if cfg!(unix) {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|e| file_error(folder, &e))?;
    }
    Ok(())
}

/// The path with more at the end of its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// What the system says of a file.
pub(crate) fn file_error(path: &Path, e: &io::Error) -> Error {
    Error::File { path: path.display().to_string(), problem: e.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::testing::Folder;

    #[test]
    fn only_kept_files_stay() {
        let folder = Folder::new();
        let target = folder.path("a.b");
        for (rename, keep) in [(false, false), (true, false), (true, true)] {
            let mut file = TemporaryFile::create(&target).unwrap();
            assert_ne!(folder.names(), ["a.b"]);
            file.write(b"xyz").unwrap();
            file.sync().unwrap();
            if rename {
                file.rename(&target).unwrap();
                sync_folder(&target).unwrap();
            }
            if keep {
                file.keep();
            } else {
                drop(file);
                assert!(folder.names().is_empty());
            }
        }
        assert_eq!(folder.names(), ["a.b"]);
        assert_eq!(fs::read(&target).unwrap(), b"xyz");
    }
}
