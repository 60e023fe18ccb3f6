//! Values for a module that has not been called: its variables take them instead of drawing their own.

use std::collections::BTreeMap;
use std::fmt;

use couplet::{Copies, Edges, Module, Node, Scope, Tensor, Variable, Visit};

use crate::case::Case;
use crate::{Outcome, problem};

/// A module with the variables of a case, whatever the real one is made of.
struct Donor {
    scope: Scope,
    parts: BTreeMap<String, Part>,
}

enum Part {
    Variable(Variable),
    Parts(BTreeMap<String, Part>),
}

fn add_parts<'a>(parts: &'a BTreeMap<String, Part>, edges: &mut Edges<'a>) {
    parts.iter().for_each(|(name, part)| edges.add(name.as_str(), part));
}

impl Visit for Part {
    fn node(&self) -> Node<'_> {
        match self {
            Part::Variable(variable) => variable.node(),
            Part::Parts(parts) => {
                let mut edges = Edges::new();
                add_parts(parts, &mut edges);
                edges.into_node()
            }
        }
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        match self {
            Part::Variable(variable) => Part::Variable(variable.copy(copies)),
            Part::Parts(parts) => {
                Part::Parts(parts.iter().map(|(name, part)| (name.clone(), part.copy(copies))).collect())
            }
        }
    }
}

impl Visit for Donor {
    fn node(&self) -> Node<'_> {
        Node::Module(self)
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        let parts = self.parts.iter().map(|(name, part)| (name.clone(), part.copy(copies)));
        Donor { parts: parts.collect(), scope: self.scope.copy(copies) }
    }
}

impl Module for Donor {
    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn visit<'a>(&'a self, edges: &mut Edges<'a>) {
        add_parts(&self.parts, edges);
    }
}

impl fmt::Debug for Donor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Donor")
    }
}

fn insert(parts: &mut BTreeMap<String, Part>, path: &str, value: Tensor) -> Outcome {
    let Some((first, rest)) = path.split_once('/') else {
        parts.insert(path.to_owned(), Part::Variable(Variable::from_tensor(path, value)));
        return Ok(());
    };
    match parts.entry(first.to_owned()).or_insert_with(|| Part::Parts(BTreeMap::new())) {
        Part::Parts(parts) => insert(parts, rest, value),
        Part::Variable(_) => Err(problem(format!("{path} leads through a variable"))),
    }
}

/// Gives the arrays of a case whose keys begin with `prefix` to the variables of a module.
pub fn fill(module: &dyn Module, case: &Case, prefix: &str) -> Outcome {
    let mut parts = BTreeMap::new();
    for (key, value) in &case.arrays {
        if let Some(path) = key.strip_prefix(prefix) {
            insert(&mut parts, path, value.clone())?;
        }
    }
    if parts.is_empty() {
        return Ok(());
    }
    Ok(module.copy_weights_from(&Donor { scope: Scope::new("donor"), parts })?)
}
