//! Tensors spread over several safetensors files, which a JSON file names: `model.safetensors.index.json`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::super::file::TensorFile;
use super::super::graph::ObjectGraph;
use super::super::stored::{Entry, Stored};
use super::super::temporary::file_error;
use super::SafetensorsFile;
use super::header::place;
use crate::error::{Error, Fault, Result};
use crate::kernels::mapping::Mapping;

/// The open files of one index.
#[derive(Debug)]
pub(crate) struct ShardedFile {
    path: PathBuf,
    shards: Vec<SafetensorsFile>,
    entries: Vec<Entry>,
    /// Which shard has the tensor of each entry.
    places: Vec<usize>,
}

/// The index: which file has which tensor.
#[derive(Deserialize)]
struct Index {
    weight_map: WeightMap,
}

/// By key, each of which comes once.
struct WeightMap(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for WeightMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Files;
        impl<'de> Visitor<'de> for Files {
            type Value = WeightMap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("names of files by the keys of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WeightMap, A::Error> {
                let mut files = BTreeMap::new();
                while let Some((key, file)) = map.next_entry::<String, String>()? {
                    if files.contains_key(&key) {
                        return Err(A::Error::custom(format!("{key:?} comes twice")));
                    }
                    files.insert(key, file);
                }
                Ok(WeightMap(files))
            }
        }
        deserializer.deserialize_map(Files)
    }
}

impl ShardedFile {
    /// Opens an index and the files that it names, which lie in its folder.
    ///
    /// # Errors
    /// One of them cannot be read, is damaged or lacks a tensor.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let json = Mapping::open(path).map_err(|e| file_error(path, &e))?;
        let index: Index = serde_json::from_slice(&json).map_err(|e| {
            Error::format(path, Fault::MalformedHeader, e.to_string()).at_offset(place(&json, &e))
        })?;
        let (mut shards, mut numbers) = (Vec::new(), BTreeMap::new());
        let (mut entries, mut places) = (Vec::new(), Vec::new());
        for (key, name) in index.weight_map.0 {
            let number = match numbers.get(&name) {
                Some(&number) => number,
                None => {
                    shards.push(open_shard(path, &name).map_err(|e| e.of_tensor(&key))?);
                    numbers.insert(name.clone(), shards.len() - 1);
                    shards.len() - 1
                }
            };
            let own: &[Entry] = shards.get(number).map_or(&[], |shard: &SafetensorsFile| &shard.entries);
            let Ok(found) = own.binary_search_by(|entry| entry.key.cmp(&key)) else {
                let problem = format!("the index places it in {name}, which does not have it");
                return Err(Error::format(path, Fault::MissingTensor, problem).of_tensor(&key));
            };
            entries.push(own[found].clone());
            places.push(number);
        }
        Ok(ShardedFile { path: path.to_owned(), shards, entries, places })
    }
}

/// Opens one of the files. An index that comes from elsewhere must not lead out of its folder.
fn open_shard(index: &Path, name: &str) -> Result<SafetensorsFile> {
    let mut parts = Path::new(name).components();
    if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
        let problem = format!("{name:?} is not the name of a file in the folder of the index");
        return Err(Error::format(index, Fault::MalformedHeader, problem));
    }
    let path = index.with_file_name(name);
    if !path.exists() {
        return Err(Error::format(
            index,
            Fault::MissingShard,
            format!("there is no file {}", path.display()),
        ));
    }
    SafetensorsFile::open(&path)
}

impl TensorFile for ShardedFile {
    fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn read(&self, key: &str) -> Result<Stored> {
        let found = self.entries.binary_search_by(|entry| entry.key.as_str().cmp(key));
        match found.ok().and_then(|i| self.shards.get(*self.places.get(i)?)) {
            Some(shard) => shard.read(key),
            None => Err(Error::format(&self.path, Fault::MissingTensor, "the index does not name this key")
                .of_tensor(key)),
        }
    }

    fn graph(&self) -> Result<Option<ObjectGraph>> {
        Ok(None)
    }
}
