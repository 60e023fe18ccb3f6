//! Looking into checkpoint files, without the program that wrote them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::file::{TensorFile, find};
use super::format::{self, Format};
use super::graph::ObjectGraph;
use super::manager::latest_checkpoint;
use super::restore::check;
use super::snapshot::Snapshot;
use super::stored::{Entry, Stored, StoredDType};
use crate::error::{Error, Fault, Result};
use crate::module::nearest;
use crate::tensor::Shape;

/// An open checkpoint of any format: its tensors by key, and its objects.
///
/// ```
/// use couplet::{checkpoint::{Checkpoint, CheckpointReader}, prelude::*};
/// # let folder = std::env::temp_dir().join(format!("couplet-reader-{}", std::process::id()));
/// let step = Variable::from_tensor("step", Tensor::from(7i64));
/// let path = Checkpoint::new().track("step", &step).save(folder.join("ckpt"))?;
/// let reader = CheckpointReader::open(&path)?;
/// assert_eq!(reader.paths()["step"], "step/.ATTRIBUTES/VARIABLE_VALUE");
/// assert_eq!(reader.get("step")?.shape().len(), 0);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Debug)]
pub struct CheckpointReader {
    path: PathBuf,
    file: Box<dyn TensorFile>,
    graph: Option<ObjectGraph>,
    /// The key of each path.
    paths: BTreeMap<String, String>,
}

impl CheckpointReader {
    /// Opens what [`Checkpoint::save`](super::Checkpoint::save) returned, a file of any format, or the latest checkpoint of a
    /// folder.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let mut path = path.as_ref().to_owned();
        if path.is_dir()
            && let Some(latest) = latest_checkpoint(&path)?
        {
            path = latest;
        }
        let file = format::open(&path)?;
        let graph = file.graph()?;
        let mut paths = BTreeMap::new();
        if let Some(graph) = &graph {
            check(&path, graph)?;
            let routes = graph.routes();
            let with_tensors = graph.nodes.iter().enumerate().filter(|(_, node)| !node.attributes.is_empty());
            for (number, node) in with_tensors {
                let Some(route) = routes.path(number) else { continue };
                for attribute in &node.attributes {
                    // Most objects have one tensor, which goes by the object's path.
                    let name = match node.attributes.len() {
                        1 => route.clone(),
                        _ => format!("{route}/.ATTRIBUTES/{}", attribute.name),
                    };
                    paths.insert(name, attribute.key.clone());
                }
            }
        }
        Ok(CheckpointReader { path, file, graph, paths })
    }

    /// The prefix or the file that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Key, dtype, shape and size of all tensors, in ascending order of the keys' bytes.
    pub fn entries(&self) -> &[Entry] {
        self.file.entries()
    }

    /// The objects, unless the file holds names only.
    pub fn graph(&self) -> Option<&ObjectGraph> {
        self.graph.as_ref()
    }

    /// The key of every object that has a tensor, by its path.
    pub fn paths(&self) -> &BTreeMap<String, String> {
        &self.paths
    }

    /// Whether there is a tensor of this key or path.
    pub fn has(&self, key: &str) -> bool {
        self.key(key).is_some()
    }

    fn key<'s>(&'s self, key: &'s str) -> Option<&'s str> {
        let of_path =
            || self.paths.get(key).map(String::as_str).filter(|key| find(&*self.file, key).is_some());
        find(&*self.file, key).map(|_| key).or_else(of_path)
    }

    /// The tensor of a key or path, whose checksum is verified.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn get(&self, key: &str) -> Result<Stored> {
        if let Some(key) = self.key(key) {
            return self.file.read(key);
        }
        let mut known: Vec<String> = self.paths.keys().cloned().collect();
        known.extend(self.entries().iter().map(|entry| entry.key.clone()));
        let problem = match nearest(key, &known) {
            Some(near) => format!("it holds no tensor of this key or path; {near} is near"),
            None => format!("it holds no tensor of this key or path, but {} others", self.entries().len()),
        };
        Err(Error::format(&self.path, Fault::MissingTensor, problem).of_tensor(key))
    }

    /// Reads every tensor and verifies its checksum.
    ///
    /// # Errors
    /// The first one that is damaged.
    pub fn verify(&self) -> Result<()> {
        self.entries().iter().try_for_each(|entry| self.file.prepare(&entry.key).map(drop))
    }

    /// What two checkpoints have in common, and what not, by path if both hold objects and by key otherwise.
    ///
    /// # Errors
    /// A tensor is damaged.
    pub fn compare(&self, other: &CheckpointReader) -> Result<CheckpointDifference> {
        let by_key = |reader: &CheckpointReader| {
            let keys = reader.entries().iter().map(|entry| (entry.key.clone(), entry.key.clone()));
            keys.collect::<BTreeMap<_, _>>()
        };
        let (left, right) = match (&self.graph, &other.graph) {
            (Some(_), Some(_)) => (self.paths.clone(), other.paths.clone()),
            _ => (by_key(self), by_key(other)),
        };
        let mut difference = CheckpointDifference::default();
        for (path, key) in &left {
            let Some(other_key) = right.get(path) else {
                difference.only_left.push(path.clone());
                continue;
            };
            let (Some(a), Some(b)) = (find(&*self.file, key), find(&*other.file, other_key)) else {
                continue;
            };
            if (&a.dtype, &a.shape) != (&b.dtype, &b.shape) {
                let (a, b) = ((a.dtype.clone(), a.shape.clone()), (b.dtype.clone(), b.shape.clone()));
                difference.unlike.push((path.clone(), a, b));
            } else if same(&self.file.read(key)?, &other.file.read(other_key)?)? {
                difference.equal.push(path.clone());
            } else {
                difference.changed.push(path.clone());
            }
        }
        difference.only_right = right.into_keys().filter(|path| !left.contains_key(path)).collect();
        Ok(difference)
    }

    /// Writes everything to another checkpoint, in any format that can be written. To files of names, values go by path.
    ///
    /// Returns the keys of what the format cannot hold and was left out: tensors of strings, and the iterators that TensorFlow
    /// stores in a form of its own.
    ///
    /// # Errors
    /// The file holds no objects, a tensor is damaged or of a dtype that the format lacks, or a file cannot be written.
    pub fn convert(&self, prefix: impl AsRef<Path>, format: Format) -> Result<Vec<String>> {
        let Some(graph) = &self.graph else {
            let problem = "the file holds no objects, only names of tensors".to_owned();
            return Err(Error::File { path: self.path.display().to_string(), problem });
        };
        let mut values = Vec::new();
        for attribute in graph.nodes.iter().flat_map(|node| &node.attributes) {
            match find(&*self.file, &attribute.key) {
                Some(_) => values.push((attribute.key.clone(), self.file.read(&attribute.key)?)),
                // TensorFlow stores some objects under longer keys than it names.
                None => {
                    let parts = self.entries().iter().filter(|entry| entry.key.starts_with(&attribute.key));
                    for entry in parts {
                        values.push((entry.key.clone(), self.file.read(&entry.key)?));
                    }
                }
            }
        }
        values.dedup_by(|(a, _), (b, _)| a == b);
        let (values, left_out): (Vec<_>, Vec<_>) =
            values.into_iter().partition(|(_, value)| format.holds(value));
        format.write(prefix.as_ref(), &Snapshot { graph: graph.clone(), values })?;
        Ok(left_out.into_iter().map(|(key, _)| key).collect())
    }
}

/// The difference between two checkpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckpointDifference {
    /// Paths of equal values.
    pub equal: Vec<String>,
    /// Paths of values that differ.
    pub changed: Vec<String>,
    /// Paths of values whose dtype or shape differs, and both.
    pub unlike: Vec<(String, (StoredDType, Shape), (StoredDType, Shape))>,
    /// Paths that the first alone has.
    pub only_left: Vec<String>,
    /// Paths that the second alone has.
    pub only_right: Vec<String>,
}

/// Whether two values of the same dtype and shape have the same bits.
fn same(a: &Stored, b: &Stored) -> Result<bool> {
    Ok(match (a, b) {
        (Stored::Tensor(a), Stored::Tensor(b)) => {
            let bytes = |x: &crate::Tensor| {
                let mut bytes = Vec::new();
                x.write_bytes(&mut bytes).map(|()| bytes)
            };
            bytes(a)? == bytes(b)?
        }
        (Stored::Strings(a), Stored::Strings(b)) => a == b,
        (Stored::Raw(a), Stored::Raw(b)) => a == b,
        _ => false,
    })
}
