//! What waits for parts of a module that do not exist yet.

use std::collections::BTreeMap;

use crate::tensor::Tensor;

/// What a part of a module will take when it is made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Waiting {
    /// The value of a variable.
    Value(Tensor),
    /// Plain state, as bytes.
    State(Vec<u8>),
    /// What the parts of a part will take, by name.
    Tree(BTreeMap<String, Waiting>),
}

/// A place where values wait for a part that does not exist yet.
pub trait Waits: Send + Sync {
    /// What waits now.
    fn waiting(&self) -> Option<Waiting>;

    /// Replaces what waits; `None` forgets it.
    fn set_waiting(&self, waiting: Option<Waiting>);

    /// Freezes or thaws the variables of the part as soon as it is made.
    fn freeze_when_made(&self, frozen: bool);
}

impl Waiting {
    /// Nothing yet, to be filled by [`insert`](Waiting::insert).
    pub(crate) fn tree() -> Self {
        Waiting::Tree(BTreeMap::new())
    }

    /// Puts `leaf` at the end of a path. Returns false if something that is no tree, or anything at the path itself, is
    /// in the way.
    pub(crate) fn insert(&mut self, path: &str, leaf: Waiting) -> bool {
        let Waiting::Tree(tree) = self else { return false };
        match path.split_once('/') {
            Some((name, rest)) => {
                tree.entry(name.to_owned()).or_insert_with(Waiting::tree).insert(rest, leaf)
            }
            None if tree.contains_key(path) => false,
            None => {
                tree.insert(path.to_owned(), leaf);
                true
            }
        }
    }

    /// What waits when `newer` arrives: trees are merged, anything else is replaced.
    pub(crate) fn updated(self, newer: Waiting) -> Waiting {
        match (self, newer) {
            (Waiting::Tree(mut tree), Waiting::Tree(newer)) => {
                for (name, part) in newer {
                    let part = match tree.remove(&name) {
                        Some(older) => older.updated(part),
                        None => part,
                    };
                    tree.insert(name, part);
                }
                Waiting::Tree(tree)
            }
            (_, newer) => newer,
        }
    }

    /// Paths of all leaves below `path`.
    pub(crate) fn paths(&self, path: &str, out: &mut Vec<String>) {
        match self {
            Waiting::Tree(tree) => tree.iter().for_each(|(name, part)| part.paths(&join(path, name), out)),
            _ => out.push(path.to_owned()),
        }
    }
}

/// `path/name`, or `name` at the root.
pub(crate) fn join(path: &str, name: impl std::fmt::Display) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    fn value() -> Waiting {
        Waiting::Value(Tensor::zeros([], DType::F32).unwrap())
    }

    fn paths(waiting: &Waiting) -> Vec<String> {
        let mut paths = Vec::new();
        waiting.paths("", &mut paths);
        paths
    }

    #[test]
    fn a_path_is_used_once_and_ends_in_a_leaf() {
        let mut tree = Waiting::tree();
        assert!(tree.insert("a/b", value()) && tree.insert("a/c", value()));
        assert!(!tree.insert("a/b", value()) && !tree.insert("a", value()) && !tree.insert("a/b/d", value()));
        assert_eq!(paths(&tree), ["a/b", "a/c"]);
    }

    #[test]
    fn what_arrives_later_leaves_its_neighbours_alone() {
        let (mut older, mut newer) = (Waiting::tree(), Waiting::tree());
        assert!(older.insert("a/b", value()) && newer.insert("a/c", value()) && newer.insert("d", value()));
        assert_eq!(paths(&older.updated(newer)), ["a/b", "a/c", "d"]);
    }
}
