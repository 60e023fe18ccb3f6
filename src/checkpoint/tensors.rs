//! Files of named tensors, by the endings of their names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::format::open;
use super::stored::Stored;
use crate::error::{Error, Result};

/// Writes named tensors. `compress` is heeded by formats that know it.
///
/// # Errors
/// The name of the file does not end as that of a known format, a key comes twice, the format cannot hold something, or the
/// file cannot be written.
#[cfg_attr(
    not(any(feature = "npz", feature = "safetensors")),
    expect(unused_variables, reason = "without a format nothing is compressed")
)]
pub(crate) fn write(path: &Path, tensors: &[(String, Stored)], compress: bool) -> Result<()> {
    let mut keys = BTreeSet::new();
    if let Some((key, _)) = tensors.iter().find(|(key, _)| !keys.insert(key)) {
        return Err(Error::argument("save", "key", format!("{key:?} twice"), "each key once"));
    }
    match (ending(path).as_str(), tensors) {
        #[cfg(feature = "safetensors")]
        ("safetensors", _) if compress => Err(Error::usage(
            "save",
            "safetensors files are not compressed",
            "leave compress out, or write a .npz file",
        )),
        #[cfg(feature = "safetensors")]
        ("safetensors", tensors) => super::safetensors::write(path, tensors),
        #[cfg(feature = "npz")]
        ("npz", tensors) => super::npz::write_npz(path, tensors, compress),
        #[cfg(feature = "npz")]
        ("npy", [(_, stored)]) => super::npz::write_npy(path, stored),
        #[cfg(feature = "npz")]
        ("npy", _) => Err(Error::usage(
            "save",
            format!("{}: a .npy file holds one tensor, not {}", path.display(), tensors.len()),
            "write a .npz file",
        )),
        _ => Err(unknown(path)),
    }
}

/// The ending of a file's name in lower case.
fn ending(path: &Path) -> String {
    path.extension().map_or_else(String::new, |ending| ending.to_string_lossy().to_ascii_lowercase())
}

fn unknown(path: &Path) -> Error {
    let formats: &[&str] = &[
        #[cfg(feature = "safetensors")]
        ".safetensors",
        #[cfg(feature = "npz")]
        ".npz or .npy",
    ];
    let expected = if formats.is_empty() {
        "one of the features safetensors and npz, without which the crate was built".to_owned()
    } else {
        format!("a name that ends in {}", formats.join(", "))
    };
    Error::File {
        path: path.display().to_string(),
        problem: format!("the format is not known; expected {expected}"),
    }
}

/// Reads all tensors of a file: `.safetensors`, `.safetensors.index.json`, `.npz` or `.npy`, or of a checkpoint by its prefix. The
/// one array of a `.npy` file has the file's name without the ending as its key.
///
/// # Errors
/// The file cannot be read or is damaged; the error names the place and the tensor.
pub fn load_tensors(path: impl AsRef<Path>) -> Result<BTreeMap<String, Stored>> {
    let file = open(path.as_ref())?;
    file.entries().iter().map(|entry| Ok((entry.key.clone(), file.read(&entry.key)?))).collect()
}

/// Writes named tensors to a `.safetensors`, `.npz` or, if it is one, `.npy` file, which is complete or absent whatever happens.
///
/// ```
/// use couplet::Tensor;
/// use couplet::checkpoint::{Stored, load_tensors, save_tensors};
/// # let folder = std::env::temp_dir().join(format!("couplet-doc-tensors-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// let path = folder.join("points.npz"); // numpy.load reads it
/// save_tensors(&path, [("x", Tensor::from([1.0f32, 2.0])), ("y", Tensor::from([3.0f32, 4.0]))])?;
/// let tensors = load_tensors(&path)?;
/// let Stored::Tensor(y) = &tensors["y"] else { panic!() };
/// assert_eq!(y.to_vec::<f32>()?, [3.0, 4.0]);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// A key comes twice, the format cannot hold something, or the file cannot be written.
pub fn save_tensors<K: Into<String>, T: Into<Stored>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (K, T)>,
) -> Result<()> {
    let tensors: Vec<_> = tensors.into_iter().map(|(key, x)| (key.into(), x.into())).collect();
    write(path.as_ref(), &tensors, false)
}
