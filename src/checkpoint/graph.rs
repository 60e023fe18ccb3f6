//! The object graph of a checkpoint: which objects there were, and by which names they led to each other.

use serde::{Deserialize, Serialize};

/// A rooted graph of objects. The root is node 0. A file may hold one that makes no sense: nothing here is checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectGraph {
    /// The objects: those that can be reached from the root in breadth-first order, and then the slots.
    pub nodes: Vec<ObjectNode>,
}

/// An object: a module, a variable, a list, an optimiser.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectNode {
    /// The objects that it holds, in its order.
    pub children: Vec<Child>,
    /// The tensors that are its own. A variable has one, named `VARIABLE_VALUE`.
    pub attributes: Vec<Attribute>,
    /// The slots of an optimiser that keeps its state by variable.
    pub slots: Vec<Slot>,
    /// Whether it, or anything below it, has a tensor. Older files do not say.
    pub has_values: Option<bool>,
    /// The program that wrote its values to files of their own: its name and that of the object.
    pub saver: Option<(String, String)>,
}

/// An edge to another object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// The name of the edge, not escaped.
    pub name: String,
    /// The number of the node that it leads to.
    pub node: usize,
}

/// A tensor of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// What the object calls it.
    pub name: String,
    /// The global name of the object, for messages.
    pub full_name: String,
    /// The key under which the file holds it.
    pub key: String,
}

/// A slot: what an optimiser keeps for one variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// The number of the variable's node.
    pub variable: usize,
    /// Its name, e.g. `m`.
    pub name: String,
    /// The number of the slot's own node.
    pub slot_variable: usize,
}

/// An edge's name as a part of a path: a dot is written `..`, a slash `.S`.
pub fn escape(name: &str) -> String {
    name.replace('.', "..").replace('/', ".S")
}

/// The name that [`escape`] wrote; `None` if it cannot have written this.
pub fn unescape(part: &str) -> Option<String> {
    let mut name = String::with_capacity(part.len());
    let mut rest = part.chars();
    while let Some(c) = rest.next() {
        match c {
            '.' => match rest.next()? {
                '.' => name.push('.'),
                'S' => name.push('/'),
                _ => return None,
            },
            '/' => return None,
            c => name.push(c),
        }
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_markers_are_no_names() {
        for (name, part) in
            [("l1", "l1"), ("a/b", "a.Sb"), ("x.y", "x..y"), ("..S/", "....S.S"), ("", ""), ("ü.", "ü..")]
        {
            assert_eq!(escape(name), part);
            assert_eq!(unescape(part).as_deref(), Some(name));
        }
        for marker in [".ATTRIBUTES", ".OPTIMIZER_SLOT", "a.", "a/b"] {
            assert_eq!(unescape(marker), None, "{marker}");
        }
    }
}
