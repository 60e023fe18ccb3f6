//! The formats of checkpoint files, and which of them a path leads to.

use std::fs;
use std::path::{Path, PathBuf};

use super::file::TensorFile;
use super::native::{self, NativeFile};
use super::snapshot::Snapshot;
use super::stored::Stored;
use super::temporary::{file_error, with_suffix};
use crate::error::{Error, Result};

/// A format of checkpoint files.
///
/// ```
/// use couplet::{checkpoint::{Checkpoint, Format}, prelude::*};
/// # let folder = std::env::temp_dir().join(format!("couplet-format-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// let linear = Linear::new(2);
/// linear.forward(&Tensor::ones([1, 3], DType::F32)?)?;
/// let checkpoint = Checkpoint::new().track("linear", &linear).format(Format::TensorFlow);
/// let path = checkpoint.save(folder.join("ckpt"))?;
/// assert!(folder.join("ckpt-1.index").exists());
/// checkpoint.restore(&path)?.assert_consumed()?;
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Format {
    /// One file, `PREFIX.couplet`: the fastest, and the default.
    #[default]
    Native,
    /// What TensorFlow 2 writes and reads: `PREFIX.index` and `PREFIX.data-00000-of-00001`.
    #[cfg(feature = "tensorflow")]
    TensorFlow,
    /// One file, `PREFIX.safetensors`: values by path, plain state as bytes. Which objects are shared is not in it.
    #[cfg(feature = "safetensors")]
    Safetensors,
}

impl Format {
    /// Whether it has room for such a value.
    pub(crate) fn holds(self, value: &Stored) -> bool {
        match (self, value) {
            #[cfg(feature = "safetensors")]
            (Format::Safetensors, Stored::Raw(raw)) => raw.dtype != "variant",
            #[cfg(feature = "safetensors")]
            (Format::Safetensors, Stored::Strings(strings)) => strings.values.len() == 1,
            _ => true,
        }
    }

    /// Writes a checkpoint, in place of an older one with the same prefix.
    pub(crate) fn write(self, prefix: &Path, snapshot: &Snapshot) -> Result<()> {
        make_folder(prefix)?;
        match self {
            Format::Native => native::write(&native_path(prefix), Some(&snapshot.graph), &snapshot.values),
            #[cfg(feature = "tensorflow")]
            Format::TensorFlow => {
                let mut writer = super::tensorflow::BundleWriter::new(prefix).overwrite(true);
                snapshot.values.iter().try_for_each(|(key, value)| writer.add(key, value))?;
                writer.add_graph(&snapshot.graph.without_listed_slots())?;
                writer.finish()
            }
            #[cfg(feature = "safetensors")]
            Format::Safetensors => {
                super::safetensors::write(&safetensors_path(prefix), &super::by_path::tensors(snapshot)?)
            }
        }
    }
}

#[cfg(feature = "safetensors")]
fn safetensors_path(prefix: &Path) -> PathBuf {
    with_suffix(prefix, ".safetensors")
}

fn native_path(prefix: &Path) -> PathBuf {
    with_suffix(prefix, &format!(".{}", native::EXTENSION))
}

/// Removes the checkpoint of a prefix: what makes it one first, then the rest. Only files of exactly its names are touched.
pub(crate) fn remove(prefix: &Path) -> Result<()> {
    let mut files: Vec<PathBuf> = NAMES.iter().map(|ending| with_suffix(prefix, ending)).collect();
    files.extend(data_files(prefix));
    for path in files {
        match fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(file_error(&path, &e)),
            _ => {}
        }
    }
    Ok(())
}

/// The data files of a TensorFlow checkpoint: `PREFIX.data-DDDDD-of-DDDDD`.
fn data_files(prefix: &Path) -> Vec<PathBuf> {
    let Some(name) = prefix.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let folder = prefix.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_data = |file: &str| {
        let numbers = file.strip_prefix(name).and_then(|rest| rest.strip_prefix(".data-"));
        numbers.and_then(|rest| rest.split_once("-of-")).is_some_and(|(i, n)| is_number(i) && is_number(n))
    };
    let Ok(list) = fs::read_dir(folder) else { return Vec::new() };
    let names = list.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|file| is_data(file)).map(|file| prefix.with_file_name(file)).collect()
}

/// The checkpoints `NAME-N` that lie in a folder, by number.
pub(crate) fn numbered(folder: &Path, name: &str) -> Vec<String> {
    let prefix = folder.join(name);
    let (Some(place), Some(own)) = (prefix.parent(), prefix.file_name().and_then(|own| own.to_str())) else {
        return Vec::new();
    };
    let Ok(list) = fs::read_dir(place) else { return Vec::new() };
    let number = |file: String| {
        let rest = file.strip_prefix(own)?.strip_prefix('-')?;
        let number = NAMES.iter().find_map(|ending| rest.strip_suffix(ending))?;
        number.parse::<u64>().ok()
    };
    let mut numbers: Vec<u64> =
        list.filter_map(|entry| number(entry.ok()?.file_name().into_string().ok()?)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().map(|number| format!("{name}-{number}")).collect()
}

fn make_folder(prefix: &Path) -> Result<()> {
    match prefix.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => fs::create_dir_all(folder).map_err(|e| file_error(folder, &e)),
        None => Ok(()),
    }
}

fn file(path: &Path, problem: impl Into<String>) -> Error {
    Error::File { path: path.display().to_string(), problem: problem.into() }
}

/// The endings of the files that make a checkpoint one.
const NAMES: [&str; 3] = [".couplet", ".index", ".safetensors"];

/// Whether there is a checkpoint with this prefix.
pub(crate) fn exists(prefix: &Path) -> bool {
    NAMES.iter().any(|ending| with_suffix(prefix, ending).is_file())
}

/// Opens what a path leads to: the prefix that a checkpoint was written with, or the name of one file.
///
/// # Errors
/// There is nothing, or it is no checkpoint; the message says what would be.
pub(crate) fn open(path: &Path) -> Result<Box<dyn TensorFile>> {
    if path.as_os_str().is_empty() {
        return Err(file(path, "the path is empty; give the prefix that save returned"));
    }
    let native = native_path(path);
    if native.is_file() {
        return Ok(Box::new(NativeFile::open(&native)?));
    }
    #[cfg(feature = "tensorflow")]
    if with_suffix(path, ".index").is_file() {
        return Ok(Box::new(super::tensorflow::Bundle::open(path)?));
    }
    #[cfg(feature = "safetensors")]
    if safetensors_path(path).is_file() {
        return by_path(super::safetensors::SafetensorsFile::open(&safetensors_path(path))?);
    }
    if path.is_dir() {
        return Err(folder_instead(path));
    }
    if !path.is_file() {
        return Err(nothing(path));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name.ends_with(".couplet") {
        return Ok(Box::new(NativeFile::open(path)?));
    }
    #[cfg(feature = "safetensors")]
    if name.ends_with(".safetensors") {
        return by_path(super::safetensors::SafetensorsFile::open(path)?);
    }
    #[cfg(feature = "safetensors")]
    if name.ends_with(".safetensors.index.json") {
        return by_path(super::safetensors::ShardedFile::open(path)?);
    }
    #[cfg(feature = "npz")]
    if name.ends_with(".npz") {
        return by_path(super::npz::NpzFile::open(path)?);
    }
    #[cfg(feature = "npz")]
    if name.ends_with(".npy") {
        return by_path(super::npz::NpyFile::open(path)?);
    }
    let prefix = name.strip_suffix(".index").or_else(|| name.split_once(".data-").map(|(prefix, _)| prefix));
    Err(match prefix {
        Some(prefix) => {
            let prefix = path.with_file_name(prefix);
            file(
                path,
                format!("this is one of the files of a checkpoint; give its prefix, {}", prefix.display()),
            )
        }
        None => file(path, "no format of checkpoints has files of this name"),
    })
}

/// A file without objects, whose keys are their paths.
#[cfg(any(feature = "safetensors", feature = "npz"))]
fn by_path(file: impl TensorFile + 'static) -> Result<Box<dyn TensorFile>> {
    Ok(Box::new(super::by_path::ByPath::new(Box::new(file))))
}

fn folder_instead(path: &Path) -> Error {
    let cure = if path.join("saved_model.pb").is_file() {
        format!(
            "the values of this exported model have the prefix {}",
            path.join("variables/variables").display()
        )
    } else if path.join("checkpoint").is_file() {
        "give one of its checkpoints, say what checkpoint::latest_checkpoint returns for it".to_owned()
    } else {
        "give the prefix of a checkpoint in it".to_owned()
    };
    file(path, format!("this is a folder; {cure}"))
}

/// The error about a path that leads nowhere, with those in its folder that begin alike.
fn nothing(path: &Path) -> Error {
    let wanted = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut near: Vec<String> = fs::read_dir(folder)
        .map(|list| list.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
        .unwrap_or_default();
    near.retain_mut(|name| {
        let prefix = NAMES.iter().find_map(|ending| name.strip_suffix(ending));
        match prefix.filter(|prefix| prefix.starts_with(&wanted)) {
            Some(prefix) => {
                *name = prefix.to_owned();
                true
            }
            None => false,
        }
    });
    near.sort();
    let cure = if near.is_empty() {
        "give the path that save returned, number included".to_owned()
    } else {
        format!("these begin alike: {}", near.join(", "))
    };
    file(path, format!("there is no checkpoint of this name; {cure}"))
}
