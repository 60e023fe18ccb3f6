//! Files of named tensors as checkpoints: the names are taken for the paths of objects.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;

use super::file::TensorFile;
use super::graph::{Attribute, Child, ObjectGraph, ObjectNode, unescape};
use super::snapshot::{STATE, VARIABLE_VALUE};
use super::stored::{Entry, Stored, StoredDType};
use crate::dtype::DType;
use crate::error::Result;

/// A file without an object graph, with the one that its keys describe.
#[derive(Debug)]
pub(crate) struct ByPath {
    file: Box<dyn TensorFile>,
    graph: ObjectGraph,
}

impl ByPath {
    pub(crate) fn new(file: Box<dyn TensorFile>) -> Self {
        let graph = graph(file.entries());
        ByPath { file, graph }
    }
}

/// An object for each part of a key, and the tensor for the last. A row of bytes may be a variable or plain state.
fn graph(entries: &[Entry]) -> ObjectGraph {
    let mut nodes = vec![ObjectNode::default()];
    // Looked up here: a search among the children of an object with very many would take forever.
    let mut places = HashMap::new();
    for entry in entries {
        let mut at = 0;
        for part in entry.key.split('/') {
            let name = unescape(part).unwrap_or_else(|| part.to_owned());
            at = match places.entry((at, name)) {
                Place::Occupied(known) => *known.get(),
                Place::Vacant(new) => {
                    let (node, name) = (nodes.len(), new.key().1.clone());
                    nodes.push(ObjectNode::default());
                    nodes[at].children.push(Child { name, node });
                    *new.insert(node)
                }
            };
        }
        let attribute = |name: &str| Attribute {
            name: name.to_owned(),
            full_name: String::new(),
            key: entry.key.clone(),
        };
        nodes[at].attributes.push(attribute(VARIABLE_VALUE));
        if entry.dtype == StoredDType::Tensor(DType::U8) && entry.shape.len() == 1 {
            nodes[at].attributes.push(attribute(STATE));
        }
    }
    let mut graph = ObjectGraph { nodes };
    graph.mark_values();
    graph
}

/// The values of a snapshot by the paths of their objects; plain state becomes a row of bytes.
#[cfg(feature = "safetensors")]
pub(crate) fn tensors(snapshot: &super::snapshot::Snapshot) -> Result<Vec<(String, Stored)>> {
    use super::stored::Strings;
    use crate::tensor::Tensor;

    let path = |key: &str| key.split_once("/.ATTRIBUTES/").map_or(key, |(path, _)| path).to_owned();
    let value = |value: &Stored| match value {
        Stored::Strings(Strings { values, .. }) if values.len() == 1 => {
            Tensor::from(values[0].clone()).into()
        }
        other => other.clone(),
    };
    Ok(snapshot.values.iter().map(|(key, stored)| (path(key), value(stored))).collect())
}

impl TensorFile for ByPath {
    fn entries(&self) -> &[Entry] {
        self.file.entries()
    }

    fn read(&self, key: &str) -> Result<Stored> {
        self.file.read(key)
    }

    fn graph(&self) -> Result<Option<ObjectGraph>> {
        Ok(Some(self.graph.clone()))
    }
}
