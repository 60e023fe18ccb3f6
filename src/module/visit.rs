//! What lies inside a value: variables, modules, lists and maps of them, saved state.

use std::borrow::Cow;
use std::fmt;

use super::Module;
use super::copies::Copies;
use super::print::Description;
use super::state::State;
use super::waiting::Waits;
use crate::variable::Variable;

/// A value that may be a field of a module: it shows what lies inside it, copies itself and prints itself.
///
/// Numbers, strings, `Option`, tuples, arrays, `Vec`, maps, `Arc`, `Box<dyn Module>`, `Box<dyn Forward>`, tensors,
/// variables and modules are. `#[derive(Visit)]` makes a struct or an enum of such values one; `#[derive(Module)]`
/// does so for a module.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a module as it stands: it does not implement `Visit`",
    label = "what lies inside this type is not known",
    note = "if it holds layers or variables, write #[derive(Visit)] on it, or #[derive(Module)] if it is a layer",
    note = "if files need not hold it, mark the field #[module(skip)]",
    note = "if files must hold it, wrap it in a Mutex and mark the field #[module(state)]"
)]
pub trait Visit {
    /// What lies inside.
    fn node(&self) -> Node<'_>;

    /// A deep copy: each variable and each module once, however often `copies` meets it.
    #[must_use]
    fn copy(&self, copies: &mut Copies) -> Self
    where
        Self: Sized;

    /// The printed form as an argument of a module, or `None` if it is not printed.
    fn describe(&self) -> Option<Description> {
        None
    }
}

/// What lies inside a value.
#[non_exhaustive]
pub enum Node<'a> {
    /// Nothing that is listed or saved.
    Nothing,
    /// A variable.
    Variable(&'a Variable),
    /// A module, which names its own parts.
    Module(&'a dyn Module),
    /// The parts of a list, a tuple, a map or a plain struct, in their order.
    Group(Edges<'a>),
    /// The parts of a list, and the place where values of its future parts wait.
    Growing(Edges<'a>, &'a dyn Waits),
    /// Something not made yet, which may be given what it will take when it is.
    Empty(&'a dyn Waits),
    /// Plain state that is saved along with the variables.
    State(&'a dyn State),
}

/// Name of one part of a value: a field, a key or a position.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name<'a> {
    /// Position in a list or tuple.
    Index(usize),
    /// Name of a field, or key of a map.
    Text(Cow<'a, str>),
}

impl From<usize> for Name<'_> {
    fn from(index: usize) -> Self {
        Name::Index(index)
    }
}

impl<'a> From<&'a str> for Name<'a> {
    fn from(text: &'a str) -> Self {
        Name::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Name<'_> {
    fn from(text: String) -> Self {
        Name::Text(Cow::Owned(text))
    }
}

impl Name<'_> {
    /// The name itself: the key of a map as it is, the position in a list as digits.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Name::Index(index) => index.to_string(),
            Name::Text(text) => text.to_string(),
        }
    }
}

impl fmt::Display for Name<'_> {
    /// As a component of a path: a dot in a key is written `..`, a slash `.S`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Index(index) => write!(f, "{index}"),
            Name::Text(text) if text.contains(['.', '/']) => {
                f.write_str(&text.replace('.', "..").replace('/', ".S"))
            }
            Name::Text(text) => f.write_str(text),
        }
    }
}

/// One named part of a value.
pub struct Edge<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// What lies inside it.
    pub node: Node<'a>,
}

/// The named parts of a value, without those that hold nothing.
#[derive(Default)]
pub struct Edges<'a> {
    list: Vec<Edge<'a>>,
}

impl<'a> Edges<'a> {
    /// No parts.
    pub fn new() -> Self {
        Edges { list: Vec::new() }
    }

    /// No parts, and room for those of most modules.
    pub(crate) fn with_room() -> Self {
        Edges { list: Vec::with_capacity(8) }
    }

    /// The elements of a list, named by position.
    pub fn of_list<T: Visit + 'a>(items: impl IntoIterator<Item = &'a T>) -> Self {
        let mut edges = Edges::new();
        for (index, item) in items.into_iter().enumerate() {
            edges.add(index, item);
        }
        edges
    }

    /// Adds a part.
    pub fn add(&mut self, name: impl Into<Name<'a>>, part: &'a dyn Visit) {
        self.add_node(name, part.node());
    }

    /// Adds plain state that is saved along with the variables.
    pub fn add_state(&mut self, name: impl Into<Name<'a>>, state: &'a dyn State) {
        self.add_node(name, Node::State(state));
    }

    fn add_node(&mut self, name: impl Into<Name<'a>>, node: Node<'a>) {
        if !matches!(node, Node::Nothing) {
            self.list.push(Edge { name: name.into(), node });
        }
    }

    /// The parts as one node.
    pub fn into_node(self) -> Node<'a> {
        if self.list.is_empty() { Node::Nothing } else { Node::Group(self) }
    }

    /// The parts sorted by the code points of their names.
    pub(crate) fn sorted_by_name(mut self) -> Self {
        self.list.sort_by(|a, b| a.name.cmp(&b.name)); // stable, and cheap for the few parts of a module
        self
    }
}

impl<'a> IntoIterator for Edges<'a> {
    type Item = Edge<'a>;
    type IntoIter = std::vec::IntoIter<Edge<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}
