//! What the tests share: folders, small objects, and the messages of `log`.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Once as Start;
use std::sync::atomic::{AtomicU64, Ordering};

use couplet::checkpoint::CheckpointReader;
use couplet::prelude::*;

/// A folder that is removed with all that lies in it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("couplet-checkpoints-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // nothing depends on it
    }
}

/// A variable of some numbers.
pub fn var(values: &[f32]) -> Variable {
    Variable::from_tensor("v", Tensor::from(values.to_vec()))
}

pub fn values(variable: &Variable) -> Vec<f32> {
    variable.value().to_vec().unwrap()
}

/// A module with two variables that exist from the start.
#[derive(Module)]
pub struct Dense {
    scope: Scope,
    pub kernel: Variable,
    pub bias: Variable,
}

impl Dense {
    pub fn new(kernel: &[f32], bias: &[f32]) -> Self {
        Dense { scope: Scope::of::<Self>(), kernel: var(kernel), bias: var(bias) }
    }
}

/// Tracked paths and their keys, as a file has them.
pub fn keys(path: &Path) -> Vec<String> {
    let reader = CheckpointReader::open(path).unwrap();
    reader.entries().iter().map(|entry| entry.key.clone()).collect()
}

/// The paths of all values in a file.
pub fn paths(path: &Path) -> Vec<String> {
    CheckpointReader::open(path).unwrap().paths().keys().cloned().collect()
}

thread_local! {
    static MESSAGES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

struct Messages;

impl log::Log for Messages {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.level() <= log::Level::Warn {
            MESSAGES.with_borrow_mut(|messages| messages.push(record.args().to_string()));
        }
    }

    fn flush(&self) {}
}

/// Warnings and errors that `f` reports through `log` on this thread.
pub fn messages(f: impl FnOnce()) -> Vec<String> {
    static START: Start = Start::new();
    START.call_once(|| {
        log::set_logger(&Messages).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
    });
    MESSAGES.take();
    f();
    MESSAGES.take()
}
