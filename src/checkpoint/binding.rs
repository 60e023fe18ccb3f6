//! Which object of a file is which object of the program: both are walked side by side, by the names of their parts.

use std::collections::VecDeque;

use super::graph::{ObjectGraph, ObjectNode, escape};
use super::live::{Live, Object};
use super::snapshot::{STATE, VARIABLE_VALUE};

/// Parts of something that is not made yet lie at most so deep: no module has as many levels.
const DEEPEST: usize = 200;

/// What became of an object of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    /// The program has nothing there.
    None,
    /// It is this object of the program, by its number.
    Live(usize),
    /// It belongs to this object of the program, which is made later.
    Later(usize),
}

/// What will be given to a part that is made later: nodes of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Later {
    /// The value of one node.
    Value(usize),
    /// By escaped name.
    Tree(Vec<(String, Later)>),
}

/// The pairs of objects.
pub(crate) struct Binding {
    /// By node of the file.
    pub(crate) matches: Vec<Match>,
    /// Node of the file and object of the program, for each variable and plain state that takes a value at once.
    pub(crate) values: Vec<(usize, usize)>,
    /// What is left for objects that are made later.
    pub(crate) later: Vec<(usize, Later)>,
    /// Objects of the program that have a value and found one in the file.
    pub(crate) found: Vec<bool>,
    /// Pairs of a variable and plain state, which cannot take each other's value.
    pub(crate) unlike: Vec<(usize, usize)>,
}

impl Binding {
    /// Walks both graphs from their roots.
    ///
    /// Parts are paired by name. An object of the file belongs to the first object of the program that it meets; an object of
    /// the program takes the first value that it meets.
    pub(crate) fn new(graph: &ObjectGraph, live: &Live<'_>) -> Self {
        let mut binding = Binding {
            matches: vec![Match::None; graph.nodes.len()],
            values: Vec::new(),
            later: Vec::new(),
            found: vec![false; live.nodes.len()],
            unlike: Vec::new(),
        };
        let mut next = VecDeque::new();
        if let (Some(first), false) = (binding.matches.first_mut(), live.nodes.is_empty()) {
            *first = Match::Live(0);
            next.push_back((0, 0));
        }
        while let Some((saved, number)) = next.pop_front() {
            binding.take_value(graph, saved, live, number);
            match live.nodes[number].object {
                Object::Empty(_) => {
                    if let Some(later) = binding.leave(graph, saved, number, 0) {
                        binding.later.push((number, later));
                    }
                    continue;
                }
                Object::Variable(_) | Object::State(_) | Object::Waiting(_) => continue,
                Object::Inner | Object::Module(_) | Object::Growing(_) => {}
            }
            let mut future = Vec::new();
            for child in &graph.nodes[saved].children {
                if binding.matches.get(child.node) != Some(&Match::None) {
                    continue; // it belongs to another object, or there is no such node
                }
                let part = live.part(number, &child.name);
                let part = part.filter(|&part| !matches!(live.nodes[part].object, Object::Waiting(_)));
                match (part, &live.nodes[number].object) {
                    (Some(part), _) => {
                        binding.matches[child.node] = Match::Live(part);
                        next.push_back((child.node, part));
                    }
                    (None, Object::Growing(_)) if child.name.parse::<usize>().is_ok() => {
                        future.extend(
                            binding
                                .leave(graph, child.node, number, 0)
                                .map(|later| (child.name.clone(), later)),
                        );
                    }
                    (None, _) => {}
                }
            }
            if !future.is_empty() {
                binding.later.push((number, Later::Tree(future)));
            }
        }
        binding
    }

    /// Gives the value of a node to an object.
    fn take_value(&mut self, graph: &ObjectGraph, saved: usize, live: &Live<'_>, number: usize) {
        let node = &graph.nodes[saved];
        let (wanted, other) = match live.nodes[number].object {
            Object::Variable(_) => (VARIABLE_VALUE, STATE),
            Object::State(_) => (STATE, VARIABLE_VALUE),
            _ => return,
        };
        if value_key(node, wanted).is_some() {
            if !self.found[number] {
                self.found[number] = true;
                self.values.push((saved, number));
            }
        } else if value_key(node, other).is_some() {
            self.unlike.push((saved, number));
        }
    }

    /// What a node and all below it, as far as it belongs to nobody, leave for an object that is made later.
    fn leave(&mut self, graph: &ObjectGraph, saved: usize, number: usize, depth: usize) -> Option<Later> {
        let node = &graph.nodes[saved];
        if depth > DEEPEST || !has_values(node) {
            return None;
        }
        self.matches[saved] = Match::Later(number);
        if [VARIABLE_VALUE, STATE].iter().any(|name| value_key(node, name).is_some()) {
            return Some(Later::Value(saved));
        }
        let mut parts = Vec::new();
        for child in &node.children {
            if self.matches.get(child.node) == Some(&Match::None) {
                let later = self.leave(graph, child.node, number, depth + 1);
                parts.extend(later.map(|later| (escape(&child.name), later)));
            }
        }
        (!parts.is_empty()).then_some(Later::Tree(parts))
    }
}

/// Whether there is anything to restore at a node or below it; files that do not say are taken to have something.
fn has_values(node: &ObjectNode) -> bool {
    let has_any = !node.children.is_empty() || !node.attributes.is_empty();
    node.has_values.unwrap_or(has_any)
}

/// The key of an attribute of a node. Its name is that in the key: TensorFlow calls some by another one beside it.
pub(crate) fn value_key<'g>(node: &'g ObjectNode, name: &str) -> Option<&'g str> {
    let is_wanted = |key: &str| key.rsplit_once(".ATTRIBUTES/").is_some_and(|(_, found)| found == name);
    let mut found =
        node.attributes.iter().filter(|attribute| attribute.name == name || is_wanted(&attribute.key));
    found.next().map(|attribute| attribute.key.as_str())
}
