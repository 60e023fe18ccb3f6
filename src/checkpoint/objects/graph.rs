//! The object graph of a checkpoint: which objects there were, and by which names they led to each other.

use std::collections::VecDeque;

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

impl ObjectGraph {
    /// Says of each object whether it, or anything below it, has a tensor.
    pub(crate) fn mark_values(&mut self) {
        let mut parents = vec![Vec::new(); self.nodes.len()];
        for (parent, node) in self.nodes.iter().enumerate() {
            for child in &node.children {
                if let Some(list) = parents.get_mut(child.node) {
                    list.push(parent);
                }
            }
        }
        self.nodes.iter_mut().for_each(|node| node.has_values = Some(false));
        let has_own =
            |node: &ObjectNode| !node.attributes.is_empty() || !node.slots.is_empty() || node.saver.is_some();
        let mut next: Vec<usize> = (0..self.nodes.len()).filter(|&i| has_own(&self.nodes[i])).collect();
        while let Some(i) = next.pop() {
            if self.nodes[i].has_values.replace(true) == Some(false) {
                next.extend(&parents[i]);
            }
        }
    }

    /// The graph as TensorFlow knows it: a slot is either a part of its optimiser or referred to by it, not both.
    #[cfg(feature = "tensorflow")]
    pub(crate) fn without_listed_slots(&self) -> ObjectGraph {
        let parts = self.nodes.iter().flat_map(|node| node.children.iter().map(|child| child.node));
        let parts: std::collections::HashSet<usize> = parts.collect();
        let mut graph = self.clone();
        for node in &mut graph.nodes {
            node.slots.retain(|slot| !parts.contains(&slot.slot_variable));
        }
        graph
    }

    /// For each object the shortest way to it: the object before, and the name there; the root and what nothing leads to
    /// have none. Slots are reached from their variable.
    pub(crate) fn routes(&self) -> Routes<'_> {
        let mut from: Vec<Option<(usize, Step<'_>)>> = vec![None; self.nodes.len()];
        let mut sizes = vec![0; self.nodes.len()];
        let mut seen = vec![false; self.nodes.len()];
        let mut next = VecDeque::new();
        if let Some(root) = seen.first_mut() {
            *root = true;
            next.push_back(0);
        }
        while let Some(i) = next.pop_front() {
            for child in &self.nodes[i].children {
                if seen.get(child.node) == Some(&false) {
                    seen[child.node] = true;
                    from[child.node] = Some((i, Step::Child(&child.name)));
                    sizes[child.node] = part_size(sizes[i], &child.name);
                    next.push_back(child.node);
                }
            }
        }
        for (optimizer, node) in self.nodes.iter().enumerate().filter(|&(i, _)| seen[i]) {
            for slot in &node.slots {
                // The root has no way before it either, and must not get one: paths would go round for ever.
                let is_new = from.get(slot.slot_variable) == Some(&None) && !seen[slot.slot_variable];
                if is_new && seen.get(slot.variable) == Some(&true) {
                    from[slot.slot_variable] = Some((slot.variable, Step::Slot(optimizer, &slot.name)));
                    let before: u64 = part_size(sizes[slot.variable], ".OPTIMIZER_SLOT");
                    sizes[slot.slot_variable] =
                        part_size(before.saturating_add(sizes[optimizer]), &slot.name);
                }
            }
        }
        Routes { from, sizes }
    }

    /// Bytes that the paths of all tensors take together, about: a graph of a few megabytes can ask for terabytes.
    pub(crate) fn size_of_paths(&self) -> u64 {
        let sizes = self.routes().sizes;
        let of_node = |(node, &size): (&ObjectNode, &u64)| size.saturating_mul(node.attributes.len() as u64);
        self.nodes.iter().zip(&sizes).map(of_node).fold(0, u64::saturating_add)
    }
}

/// Bytes of a path with one more part.
fn part_size(before: u64, name: &str) -> u64 {
    let escaped = name.len() + name.bytes().filter(|byte| b"./".contains(byte)).count();
    before.saturating_add(escaped as u64 + 1)
}

/// How one object leads to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<'a> {
    Child(&'a str),
    /// The number of the optimiser, and the name of the slot.
    Slot(usize, &'a str),
}

/// The shortest ways to the objects of a graph.
pub(crate) struct Routes<'a> {
    from: Vec<Option<(usize, Step<'a>)>>,
    /// Bytes of each path, with a separator for each part.
    sizes: Vec<u64>,
}

impl Routes<'_> {
    /// The path to an object, empty for the root; `None` if nothing leads to it.
    pub(crate) fn path(&self, node: usize) -> Option<String> {
        let mut parts = Vec::new();
        let mut at = node;
        while let Some((before, step)) = self.from.get(at)? {
            match step {
                Step::Child(name) => parts.push(escape(name)),
                Step::Slot(optimizer, name) => {
                    parts.push(escape(name));
                    parts.push(self.path(*optimizer)?);
                    parts.push(".OPTIMIZER_SLOT".to_owned());
                }
            }
            at = *before;
        }
        if at != 0 {
            return None;
        }
        parts.reverse();
        Some(parts.join("/"))
    }
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

    fn object(children: &[(&str, usize)]) -> ObjectNode {
        let children = children.iter().map(|&(name, node)| Child { name: name.into(), node }).collect();
        let attribute = Attribute { name: "V".into(), full_name: String::new(), key: "k".into() };
        ObjectNode { children, attributes: vec![attribute], ..ObjectNode::default() }
    }

    #[test]
    fn a_slot_that_is_the_root_keeps_the_roots_path() {
        let mut nodes = vec![object(&[("v", 1)]), object(&[])];
        nodes[0].slots.push(Slot { variable: 1, name: "m".into(), slot_variable: 0 });
        let graph = ObjectGraph { nodes };
        assert_eq!(graph.routes().path(0).as_deref(), Some(""));
        assert_eq!(graph.routes().path(1).as_deref(), Some("v"));
    }

    #[test]
    fn the_size_of_paths_is_that_of_their_text_and_a_separator_a_part() {
        let mut nodes = vec![object(&[("a.b", 1), ("opt", 2)]), object(&[]), object(&[]), object(&[])];
        nodes[2].slots.push(Slot { variable: 1, name: "m".into(), slot_variable: 3 });
        let graph = ObjectGraph { nodes };
        let path = "a..b/..OPTIMIZER_SLOT/opt/m";
        let path = path.replacen("..OPT", ".OPT", 1);
        assert_eq!(graph.routes().path(3), Some(path));
        // a..b/ 5, opt/ 4; a..b/ 5, .OPTIMIZER_SLOT/ 16 and one for its dot, opt/ 4, m/ 2.
        assert_eq!(graph.size_of_paths(), 5 + 4 + (5 + 17 + 4 + 2));
    }
}
