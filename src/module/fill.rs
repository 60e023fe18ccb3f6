//! Giving values to a module by path: to what exists at once, to the rest when it is made.

use std::collections::{BTreeMap, HashSet};

use super::Module;
use super::collect::parts;
use super::copies::Copies;
use super::paths::existing_variables;
use super::state::State;
use super::visit::{Edges, Node, Visit};
use super::waiting::{Waiting, Waits, join};
use crate::dry;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// What giving values to a module will do. Nothing is changed before [`apply`](Plan::apply).
#[derive(Default)]
pub(crate) struct Plan<'a> {
    assign: Vec<(&'a Variable, Tensor)>,
    load: Vec<(String, &'a dyn State, Vec<u8>)>,
    wait: Vec<(&'a dyn Waits, Waiting)>,
    modules: Vec<(String, &'a dyn Module)>,
    /// Paths of values taken at once.
    pub(crate) taken: Vec<String>,
    /// Paths of values that wait for a part to be made.
    pub(crate) waiting: Vec<String>,
    /// Paths of values that nothing will take.
    pub(crate) unused: Vec<String>,
    /// Paths of values that do not fit, and why.
    pub(crate) mismatched: Vec<String>,
}

impl<'a> Plan<'a> {
    /// Distributes `values` over what lies below `node`.
    pub(crate) fn new(node: Node<'a>, values: Waiting) -> Self {
        let mut plan = Plan::default();
        plan.add(node, values, "");
        plan
    }

    /// Adds plain state that takes these bytes.
    pub(crate) fn load(&mut self, path: String, state: &'a dyn State, bytes: Vec<u8>) {
        self.load.push((path, state, bytes));
    }

    /// Adds what a part takes that is made later.
    pub(crate) fn leave(&mut self, place: &'a dyn Waits, values: Waiting) {
        self.wait.push((place, values));
    }

    /// Adds a module that makes what needs no input, when values wait for it.
    pub(crate) fn materialise(&mut self, path: String, module: &'a dyn Module) {
        self.modules.push((path, module));
    }

    fn add(&mut self, node: Node<'a>, values: Waiting, path: &str) {
        match (node, values) {
            (Node::Variable(variable), Waiting::Value(value)) => {
                if value.shape() == variable.shape() && value.dtype() == variable.dtype() {
                    self.taken.push(path.to_owned());
                    self.assign.push((variable, value));
                } else {
                    self.mismatched.push(format!(
                        "{path}: the value is {}{}, the variable {} is {}{}",
                        value.dtype(),
                        value.shape(),
                        variable.name(),
                        variable.dtype(),
                        variable.shape()
                    ));
                }
            }
            (Node::State(state), Waiting::State(bytes)) => {
                self.taken.push(path.to_owned());
                self.load.push((path.to_owned(), state, bytes));
            }
            (Node::Module(module), values @ Waiting::Tree(_)) => {
                self.modules.push((path.to_owned(), module));
                self.add_parts(parts(module), None, values, path);
            }
            (Node::Group(edges), values @ Waiting::Tree(_)) => self.add_parts(edges, None, values, path),
            (Node::Growing(edges, later), values @ Waiting::Tree(_)) => {
                self.add_parts(edges, Some(later), values, path);
            }
            (Node::Empty(later), values) => self.add_waiting(later, values, path),
            (_, values) => values.paths(path, &mut self.unused),
        }
    }

    fn add_parts(&mut self, edges: Edges<'a>, later: Option<&'a dyn Waits>, values: Waiting, path: &str) {
        let Waiting::Tree(mut values) = values else { return };
        for edge in edges {
            let name = edge.name.to_string();
            if let Some(values) = values.remove(&name) {
                self.add(edge.node, values, &join(path, name));
            }
        }
        if let Some(later) = later {
            let is_position = |(name, _): &(String, Waiting)| name.parse::<usize>().is_ok();
            let (future, rest): (BTreeMap<_, _>, _) = values.into_iter().partition(is_position);
            values = rest;
            if !future.is_empty() {
                self.add_waiting(later, Waiting::Tree(future), path);
            }
        }
        Waiting::Tree(values).paths(path, &mut self.unused);
    }

    fn add_waiting(&mut self, later: &'a dyn Waits, values: Waiting, path: &str) {
        values.paths(path, &mut self.waiting);
        self.wait.push((later, values));
    }

    /// Identities of the variables that are given a value at once.
    pub(crate) fn given(&self) -> HashSet<u64> {
        self.assign.iter().map(|(variable, _)| variable.id()).collect()
    }

    /// Paths of variables below `module` that exist and are given no value.
    pub(crate) fn missing(&self, module: &dyn Module) -> Vec<String> {
        let given = self.given();
        let waiting: HashSet<&String> = self.waiting.iter().collect();
        let existing = existing_variables(Node::Module(module)).into_iter();
        let missing =
            existing.filter(|(path, variable)| !given.contains(&variable.id()) && !waiting.contains(path));
        missing.map(|(path, _)| path).collect()
    }

    /// Gives the values, and makes what modules make without an input.
    ///
    /// # Errors
    /// Values do not fit; all that are known not to are listed. Nothing was changed, except that a part which needs no
    /// input may have been made.
    pub(crate) fn apply(self, op: &'static str) -> Result<()> {
        if !self.mismatched.is_empty() {
            let cure = "give values of the shapes and dtypes of the variables";
            return Err(Error::usage(op, format!("values do not fit: {}", self.mismatched.join("; ")), cure));
        }
        let before: Vec<_> = self.wait.iter().map(|&(later, _)| (later, later.waiting())).collect();
        let mut loaded = Vec::new();
        let done = self.give(&mut loaded);
        if done.is_err() {
            for (later, waiting) in before {
                later.set_waiting(waiting);
            }
            for (state, bytes) in loaded {
                state.load(&bytes)?;
            }
        }
        done
    }

    fn give(self, loaded: &mut Vec<(&'a dyn State, Vec<u8>)>) -> Result<()> {
        for (later, values) in self.wait {
            later.set_waiting(Some(match later.waiting() {
                Some(older) => older.updated(values),
                None => values,
            }));
        }
        for (path, state, bytes) in self.load {
            let at = |e: Error| e.within(&path);
            let before = state.save().map_err(at)?;
            state.load(&bytes).map_err(at)?;
            loaded.push((state, before));
        }
        for (path, module) in self.modules {
            let at = |e: Error| if path.is_empty() { e } else { e.at_edge(&path) };
            module.materialise().map_err(at)?;
        }
        for (variable, value) in self.assign {
            variable.assign(&value)?;
            variable.was_restored(&value);
        }
        Ok(())
    }
}

/// Gives values to a part that was made just now. Values that nothing takes are reported through `log`.
///
/// Returns whether all variables of the part got one.
pub(crate) fn fill_part(part: &dyn Visit, values: Waiting) -> Result<bool> {
    let plan = Plan::new(part.node(), values);
    for path in &plan.unused {
        log::warn!("the value restored for {path:?} found no owner when its module was made");
    }
    let given = plan.given();
    plan.apply("restore")?;
    Ok(existing_variables(part.node()).iter().all(|(_, variable)| given.contains(&variable.id())))
}

/// Runs `f` with a copy of a module, whose variables it neither draws nor computes. A part that was made cannot be unmade, so
/// what may fail when values are given is tried out on a copy first.
///
/// # Errors
/// Those of `f`, or the module cannot be copied.
pub(crate) fn on_copy<R>(
    op: &'static str,
    module: &dyn Module,
    f: impl FnOnce(&dyn Module) -> Result<R>,
) -> Result<R> {
    let mut copies = Copies::default();
    let copy = module.copy_boxed_module(&mut copies);
    if copies.met_a_cycle() {
        let problem = format!("{module:?} holds itself through an Arc");
        return Err(Error::usage(op, problem, "break the cycle before"));
    }
    dry::blank(|| f(&*copy))
}

/// The values of a list of paths as a tree.
///
/// # Errors
/// A path comes twice, or leads through a value.
pub(crate) fn tree(op: &'static str, values: impl IntoIterator<Item = (String, Waiting)>) -> Result<Waiting> {
    let mut tree = Waiting::tree();
    for (path, value) in values {
        if !tree.insert(&path, value) {
            return Err(Error::argument(
                op,
                "path",
                format!("{path:?}"),
                "each path once, and none through a value",
            ));
        }
    }
    Ok(tree)
}
