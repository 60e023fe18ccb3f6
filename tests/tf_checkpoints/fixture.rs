//! The checkpoints of the folder, and what is known of each.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use couplet::checkpoint::tensorflow::Bundle;
use serde_json::Value;

/// The folder with the checkpoints.
pub fn root() -> PathBuf {
    let default = || concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tf_checkpoints").into();
    std::env::var_os("COUPLET_TF_FIXTURES").map_or_else(default, PathBuf::from)
}

/// A checkpoint.
#[derive(Debug)]
pub struct Fixture {
    /// Its prefix.
    pub prefix: PathBuf,
    /// The folder with the files that describe it.
    beside: PathBuf,
    /// Whether its index says what another one does, in other blocks.
    pub rewritten: bool,
}

impl Fixture {
    fn new(index: &Path) -> Self {
        let prefix = index.with_extension("");
        let note = prefix.with_file_name("note.txt").exists();
        // The tables in other blocks stand for `many_vars`; an exported model is described where it lies.
        let beside = if note { root().join("many_vars") } else { prefix.parent().unwrap().to_owned() };
        let described =
            |folder: &&Path| folder.join("manifest.json").exists() || folder.join("expected.json").exists();
        let beside =
            beside.ancestors().find(described).expect("no manifest beside or above a checkpoint").to_owned();
        Fixture { prefix, beside, rewritten: note }
    }

    pub fn open(&self) -> Bundle {
        Bundle::open(&self.prefix).unwrap_or_else(|e| panic!("{e}"))
    }

    /// The path of a file that describes the checkpoint: its own, or that of all checkpoints in the folder.
    pub fn described_by(&self, name: &str) -> Option<PathBuf> {
        let own = format!("{}.{name}", self.prefix.file_name().unwrap().display());
        [own.as_str(), name].iter().map(|name| self.beside.join(name)).find(|path| path.exists())
    }

    /// A description in JSON.
    pub fn json(&self, name: &str) -> Option<Value> {
        self.described_by(name).map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
    }

    /// The bytes of the index.
    pub fn index(&self) -> Vec<u8> {
        fs::read(with_suffix(&self.prefix, ".index")).unwrap()
    }
}

/// All checkpoints that are whole.
pub fn all() -> Vec<Fixture> {
    let mut fixtures = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() && !path.ends_with("corrupt") {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "index") {
                fixtures.push(Fixture::new(&path));
            }
        }
    }
    let ok = root().join("corrupt/ok/t.index");
    if ok.exists() {
        fixtures.push(Fixture::new(&ok));
    }
    assert!(!fixtures.is_empty(), "no checkpoints in {}", root().display());
    fixtures
}

/// The path with more at the end of its name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// The bytes that hexadecimal digits stand for.
pub fn from_hex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
}

/// A folder that is removed with all that lies in it.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("couplet-tf-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
