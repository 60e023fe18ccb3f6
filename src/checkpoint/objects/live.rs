//! The objects of a program as a checkpoint sees them.

use std::collections::{HashMap, VecDeque};
use std::ptr;

use super::graph::{escape, unescape};
use crate::error::Result;
use crate::module::{Edges, Module, Node, SlotOwners, State, Visit, Waiting, Waits, parts};
use crate::variable::Variable;

/// The objects that a checkpoint begins at: one whose parts are the root's, if there is one, and others by name.
#[derive(Clone, Default)]
pub(crate) struct Root<'a> {
    pub(crate) base: Option<&'a dyn Visit>,
    pub(crate) tracked: Vec<(String, &'a dyn Visit)>,
}

/// The objects below a root, in breadth-first order; each once, under the shortest path that leads to it, and of equally short
/// ones the path that comes first.
pub(crate) struct Live<'a> {
    pub(crate) nodes: Vec<LiveNode<'a>>,
}

/// An object of the program.
pub(crate) struct LiveNode<'a> {
    /// The object that leads to it, and the name there.
    from: Option<(usize, String)>,
    /// Name and number of each part.
    pub(crate) parts: Vec<(String, usize)>,
    pub(crate) object: Object<'a>,
}

/// What an object is.
pub(crate) enum Object<'a> {
    /// Something made of parts.
    Inner,
    Module(&'a dyn Module),
    /// A list that may grow.
    Growing(&'a dyn Waits),
    Variable(&'a Variable),
    State(&'a dyn State),
    /// Something that is made later.
    Empty(&'a dyn Waits),
    /// What a restore left for something that is made later.
    Waiting(Waiting),
}

/// What tells one object from another. Lists and maps lie in what holds them and have none.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    Variable(u64),
    Module(u64),
    Place(usize),
}

impl<'a> Live<'a> {
    /// Looks at all objects as they are.
    pub(crate) fn explore(root: &Root<'a>) -> Self {
        Self::walk(root, |_| {})
    }

    /// Looks at all objects; modules make what needs no input before they are asked for their parts.
    ///
    /// # Errors
    /// A module cannot.
    pub(crate) fn materialise(root: &Root<'a>) -> Result<Self> {
        let mut made = Ok(());
        let live = Self::walk(root, |module| {
            if made.is_ok() {
                made = module.materialise();
            }
        });
        made.map(|()| live)
    }

    fn walk(root: &Root<'a>, mut before: impl FnMut(&dyn Module)) -> Self {
        let mut live = Live { nodes: Vec::new() };
        let mut known = HashMap::new();
        let mut next = VecDeque::new();
        let (object, mut found) = match root.base {
            Some(base) => {
                let node = base.node();
                identity(&node).map(|identity| known.insert(identity, 0));
                open(node, &mut before)
            }
            None => (Object::Inner, Vec::new()),
        };
        found.extend(root.tracked.iter().map(|(name, object)| (name.clone(), Part::Live(object.node()))));
        live.nodes.push(LiveNode { from: None, parts: Vec::new(), object });
        next.push_back((0, found));
        while let Some((parent, found)) = next.pop_front() {
            for (name, part) in found {
                let identity = match &part {
                    Part::Live(node) => identity(node),
                    Part::Waiting(_) => None,
                };
                let number = live.nodes.len();
                let number = identity.map_or(number, |identity| *known.entry(identity).or_insert(number));
                if number == live.nodes.len() {
                    let (object, found) = match part {
                        Part::Live(node) => open(node, &mut before),
                        Part::Waiting(values) => open_waiting(values),
                    };
                    let from = Some((parent, name.clone()));
                    live.nodes.push(LiveNode { from, parts: Vec::new(), object });
                    next.push_back((number, found));
                }
                live.nodes[parent].parts.push((name, number));
            }
        }
        live
    }

    /// The path of an object, empty for the root. Only those that have a value are asked for it, so that long chains cost no
    /// more than their length.
    pub(crate) fn path(&self, number: usize) -> String {
        let mut parts = Vec::new();
        let mut next = &self.nodes[number].from;
        while let Some((parent, name)) = next {
            parts.push(escape(name));
            next = &self.nodes[*parent].from;
        }
        parts.reverse();
        parts.join("/")
    }

    /// Who owns the slots of an optimiser.
    pub(crate) fn slot_owners(&self, number: usize) -> Option<&'a dyn SlotOwners> {
        match self.nodes[number].object {
            Object::Module(module) => module.slot_owners(),
            _ => None,
        }
    }

    /// The part of an object with this name.
    pub(crate) fn part(&self, number: usize, name: &str) -> Option<usize> {
        self.nodes[number].parts.iter().find(|(part, _)| part == name).map(|&(_, number)| number)
    }
}

enum Part<'a> {
    Live(Node<'a>),
    Waiting(Waiting),
}

type Parts<'a> = Vec<(String, Part<'a>)>;

fn identity(node: &Node<'_>) -> Option<Identity> {
    Some(match node {
        Node::Variable(variable) => Identity::Variable(variable.id()),
        Node::Module(module) => Identity::Module(module.scope().id()),
        Node::State(state) => Identity::Place(ptr::from_ref::<dyn State>(*state).cast::<()>() as usize),
        Node::Empty(later) => Identity::Place(ptr::from_ref::<dyn Waits>(*later).cast::<()>() as usize),
        _ => return None,
    })
}

/// What an object is, and its parts.
fn open<'a>(node: Node<'a>, before: impl FnOnce(&dyn Module)) -> (Object<'a>, Parts<'a>) {
    match node {
        Node::Module(module) => {
            before(module);
            (Object::Module(module), named(parts(module)))
        }
        Node::Group(edges) => (Object::Inner, named(edges)),
        Node::Growing(edges, later) => {
            let mut list = named(edges);
            list.extend(later.waiting().map_or_else(Vec::new, |values| open_waiting(values).1));
            (Object::Growing(later), list)
        }
        Node::Empty(later) => match later.waiting() {
            Some(Waiting::Tree(tree)) => (Object::Empty(later), open_waiting(Waiting::Tree(tree)).1),
            _ => (Object::Empty(later), Vec::new()),
        },
        Node::Variable(variable) => (Object::Variable(variable), Vec::new()),
        Node::State(state) => (Object::State(state), Vec::new()),
        Node::Nothing => (Object::Inner, Vec::new()),
    }
}

fn open_waiting<'a>(values: Waiting) -> (Object<'a>, Parts<'a>) {
    let Waiting::Tree(tree) = values else { return (Object::Waiting(values), Vec::new()) };
    let part = |(name, values): (String, _)| Some((unescape(&name)?, Part::Waiting(values)));
    (Object::Inner, tree.into_iter().filter_map(part).collect())
}

fn named(edges: Edges<'_>) -> Parts<'_> {
    edges.into_iter().map(|edge| (edge.name.to_text(), Part::Live(edge.node))).collect()
}
