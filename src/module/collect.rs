//! The variables and modules below a module, in the order of the reference.

use std::collections::HashSet;

use super::Module;
use super::visit::{Edges, Node};
use crate::error::{Error, Result};
use crate::variable::Variable;

/// Identities of variables and modules met so far.
#[derive(Default)]
pub(crate) struct Seen {
    variables: HashSet<u64>,
    modules: HashSet<u64>,
}

impl Seen {
    /// Whether a variable is met for the first time.
    pub(crate) fn is_new_variable(&mut self, variable: &Variable) -> bool {
        self.variables.insert(variable.id())
    }

    /// Whether a module is met for the first time.
    pub(crate) fn is_new_module(&mut self, module: &dyn Module) -> bool {
        self.modules.insert(module.scope().id())
    }
}

/// The parts of a module in the order of their declaration.
pub(crate) fn parts(module: &dyn Module) -> Edges<'_> {
    let mut edges = Edges::new();
    module.visit(&mut edges);
    edges
}

/// What a module owns without going through another module.
#[derive(Default)]
struct Own<'a> {
    variables: Vec<&'a Variable>,
    modules: Vec<&'a dyn Module>,
}

impl<'a> Own<'a> {
    fn of(module: &'a dyn Module, seen: &mut Seen) -> Self {
        let mut own = Own::default();
        own.take(parts(module).sorted_by_name(), seen);
        own
    }

    fn take(&mut self, edges: Edges<'a>, seen: &mut Seen) {
        for edge in edges {
            match edge.node {
                Node::Variable(variable) if seen.is_new_variable(variable) => self.variables.push(variable),
                Node::Module(module) if seen.is_new_module(module) => self.modules.push(module),
                Node::Group(edges) | Node::Growing(edges, _) => self.take(edges, seen),
                _ => {}
            }
        }
    }
}

/// Calls `each` with what every module owns, each module once: a module, then all below its first child, and so on.
fn walk<'a>(root: &'a dyn Module, mut each: impl FnMut(&Own<'a>)) -> Result<()> {
    let mut seen = Seen::default();
    seen.is_new_module(root);
    let mut next = vec![root];
    while let Some(module) = next.pop() {
        module.materialise()?;
        let own = Own::of(module, &mut seen);
        each(&own);
        next.extend(own.modules.iter().rev());
    }
    Ok(())
}

/// The variables that `keep` accepts: a module's own, sorted by the code points of the names of its parts, then those
/// of its first child and all below, and so on; each variable once.
pub(crate) fn variables(root: &dyn Module, keep: impl Fn(&Variable) -> bool) -> Result<Vec<Variable>> {
    let mut found = Vec::new();
    walk(root, |own| {
        found
            .extend(own.variables.iter().filter(|variable| keep(variable)).map(|&variable| variable.clone()));
    })?;
    Ok(found)
}

/// As [`variables`], but finding none is an error unless the module allows it.
pub(crate) fn expected_variables(
    root: &dyn Module,
    what: &'static str,
    keep: impl Fn(&Variable) -> bool,
) -> Result<Vec<Variable>> {
    let found = variables(root, keep)?;
    if found.is_empty() && !root.allows_empty_variables() {
        return Err(no_variables(root, what)?);
    }
    Ok(found)
}

fn no_variables(root: &dyn Module, what: &'static str) -> Result<Error> {
    let all = variables(root, |_| true)?;
    let frozen = all.iter().filter(|variable| variable.is_frozen()).count();
    if frozen > 0 {
        let cure = "thaw what is to be trained, e.g. module.thaw(\"\")?";
        return Ok(Error::usage(
            what,
            format!("no variable of {root:?} is left to train: {frozen} are frozen"),
            cure,
        ));
    }
    if !all.is_empty() {
        let cure = "ask for variables() instead, or mark the module with allow_empty_variables()";
        return Ok(Error::usage(what, format!("no variable of {root:?} is trainable"), cure));
    }
    let cure = format!(
        "parameters appear when a module sees its first input, so call it once before: \
         `let y = module.forward(&x)?; let params = module.{what}()?;`; \
         a module that has none on purpose says so with allow_empty_variables()"
    );
    Ok(Error::usage(what, format!("{root:?} has no variables yet"), cure))
}

/// The modules below `root`: all children of a module come before the children of the first of them.
pub(crate) fn submodules(root: &dyn Module) -> Vec<&dyn Module> {
    fn below<'a>(modules: Vec<&'a dyn Module>, seen: &mut Seen, found: &mut Vec<&'a dyn Module>) {
        found.extend(&modules);
        for module in modules {
            below(Own::of(module, seen).modules, seen, found);
        }
    }
    let mut seen = Seen::default();
    seen.is_new_module(root);
    let mut found = Vec::new();
    below(Own::of(root, &mut seen).modules, &mut seen, &mut found);
    found
}
