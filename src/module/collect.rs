//! The variables and modules below a module, in the order of the reference.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use super::Module;
use super::visit::{Edges, Node};
use crate::error::{Error, Result};
use crate::variable::Variable;

/// Identities of variables and modules met so far.
pub(crate) struct Seen {
    variables: Ids,
    modules: Ids,
}

type Ids = HashSet<u64, BuildHasherDefault<IdHasher>>;

impl Default for Seen {
    /// Room for a small network: lists of variables are asked for in every training step.
    fn default() -> Self {
        let ids = || Ids::with_capacity_and_hasher(28, BuildHasherDefault::default());
        Seen { variables: ids(), modules: ids() }
    }
}

/// Spreads identities, which are counted up, over the table. The order of the table is never seen.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(self.0 ^ u64::from(byte)));
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
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
    let mut edges = Edges::with_room();
    module.visit(&mut edges);
    edges
}

/// What a walk calls for each variable and for each module below the root, each once.
struct Walk<'a, V, M> {
    seen: Seen,
    variable: V,
    module: M,
    /// Modules still to be walked, the next one last.
    next: Vec<&'a dyn Module>,
}

impl<'a, V: FnMut(&'a Variable), M: FnMut(&'a dyn Module)> Walk<'a, V, M> {
    /// Walks a module's own variables and children, in the order of their names, then all below its first child, and so on.
    /// `before` is called on a module before its parts are asked for.
    fn run(root: &'a dyn Module, mut before: impl FnMut(&dyn Module), variable: V, module: M) {
        let mut walk = Walk { seen: Seen::default(), variable, module, next: vec![root] };
        walk.seen.is_new_module(root);
        while let Some(module) = walk.next.pop() {
            before(module);
            let children = walk.next.len();
            walk.take(parts(module).sorted_by_name());
            walk.next[children..].reverse();
        }
    }

    fn take(&mut self, edges: Edges<'a>) {
        for edge in edges {
            match edge.node {
                Node::Variable(variable) if self.seen.is_new_variable(variable) => (self.variable)(variable),
                Node::Module(module) if self.seen.is_new_module(module) => {
                    (self.module)(module);
                    self.next.push(module);
                }
                Node::Group(edges) | Node::Growing(edges, _) => self.take(edges),
                _ => {}
            }
        }
    }
}

/// The variables that `keep` accepts: a module's own, sorted by the code points of the names of its parts, then those
/// of its first child and all below, and so on; each variable once.
pub(crate) fn variables(root: &dyn Module, keep: impl Fn(&Variable) -> bool) -> Result<Vec<Variable>> {
    let mut found = Vec::with_capacity(16);
    let add = |variable: &Variable| {
        if keep(variable) {
            found.push(variable.clone());
        }
    };
    let mut made = Ok(());
    let materialise = |module: &dyn Module| {
        if made.is_ok() {
            made = module.materialise();
        }
    };
    Walk::run(root, materialise, add, |_| {});
    made.map(|()| found)
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
    let mut found = Vec::new();
    Walk::run(root, |_| {}, |_| {}, |module| found.push(module));
    found
}
