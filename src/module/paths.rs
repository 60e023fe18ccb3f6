//! Paths of variables: the names of the parts that lead to them, `_layers/0/w`.

use std::collections::VecDeque;

use super::Module;
use super::collect::{Seen, parts};
use super::visit::{Edges, Node};
use super::waiting::join;
use crate::error::{Error, Result};
use crate::variable::Variable;

/// The variables below `root`, each once, under the shortest path that leads to it; of equally short ones the path that
/// comes first in the order of declaration.
pub(crate) fn named_variables(root: &dyn Module) -> Result<Vec<(String, Variable)>> {
    let (mut made, mut found) = (Ok(()), Vec::new());
    walk(Node::Module(root), |path, node| match node {
        Node::Module(module) if made.is_ok() => made = module.materialise(),
        Node::Variable(variable) => found.push((path.to_owned(), (*variable).clone())),
        _ => {}
    });
    made.map(|()| found)
}

/// As [`named_variables`], below anything, and without making those that need no input.
pub(crate) fn existing_variables(root: Node<'_>) -> Vec<(String, Variable)> {
    let mut found = Vec::new();
    walk(root, |path, node| {
        if let Node::Variable(variable) = node {
            found.push((path.to_owned(), (*variable).clone()));
        }
    });
    found
}

/// Calls `meet` with everything below `root`, level by level, and its path; each variable and each module once, under its
/// shortest path. A module is met before it is asked for its parts.
pub(crate) fn walk<'a>(root: Node<'a>, mut meet: impl FnMut(&str, &Node<'a>)) {
    let mut seen = Seen::default();
    let mut next = VecDeque::from([(String::new(), root)]);
    while let Some((path, node)) = next.pop_front() {
        let is_new = match &node {
            Node::Variable(variable) => seen.is_new_variable(variable),
            Node::Module(module) => seen.is_new_module(*module),
            _ => true,
        };
        if !is_new {
            continue;
        }
        meet(&path, &node);
        let edges = match node {
            Node::Module(module) => parts(module),
            Node::Group(edges) | Node::Growing(edges, _) => edges,
            _ => continue,
        };
        next.extend(edges.into_iter().map(|edge| (join(&path, edge.name), edge.node)));
    }
}

/// What a path leads to. The empty path leads to the module itself.
///
/// # Errors
/// Nothing has that path; the names that come near it are listed.
pub(crate) fn resolve<'a>(op: &'static str, root: &'a dyn Module, path: &str) -> Result<Node<'a>> {
    let mut node = Node::Module(root);
    let mut so_far = String::new();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let edges = match node {
            Node::Module(module) => parts(module),
            Node::Group(edges) | Node::Growing(edges, _) => edges,
            Node::Empty(_) => {
                let cure = "call the module once before, or name the part as a whole";
                return Err(Error::usage(
                    op,
                    format!("{so_far:?} is not made yet, so it has no {name:?}"),
                    cure,
                ));
            }
            _ => Edges::new(),
        };
        let mut names = Vec::new();
        let mut found = None;
        for edge in edges {
            let candidate = edge.name.to_string();
            if candidate == name {
                found = Some(edge.node);
                break;
            }
            names.push(candidate);
        }
        node = found.ok_or_else(|| unknown(op, path, &so_far, name, names))?;
        so_far = join(&so_far, name);
    }
    Ok(node)
}

/// The variable that a path leads to; one that needs no input is made.
pub(crate) fn variable(root: &dyn Module, path: &str) -> Result<Variable> {
    const OP: &str = "variable";
    let mut node = resolve(OP, root, path)?;
    if matches!(node, Node::Empty(_)) {
        named_variables(root)?;
        node = resolve(OP, root, path)?;
    }
    match node {
        Node::Variable(variable) => Ok((*variable).clone()),
        Node::Empty(_) => {
            let problem = format!("{path:?} is not made yet");
            Err(Error::usage(OP, problem, "call the module on an input before"))
        }
        other => {
            let below = existing_variables(other).into_iter().map(|(below, _)| join(path, below));
            let below: Vec<_> = below.take(SHOWN).collect();
            let expected = match below.is_empty() {
                true => "the path of a variable".to_owned(),
                false => format!("the path of a variable, as {}", below.join(", ")),
            };
            Err(Error::argument(OP, "path", format!("{path:?}"), expected))
        }
    }
}

/// How many names a message lists.
const SHOWN: usize = 8;

fn unknown(op: &'static str, path: &str, so_far: &str, name: &str, mut names: Vec<String>) -> Error {
    names.sort_by_cached_key(|candidate| distance(name, candidate));
    let place = if so_far.is_empty() { "the module".to_owned() } else { format!("{so_far:?}") };
    let expected = if names.is_empty() {
        format!("a shorter path: {place} has no parts")
    } else {
        let more = if names.len() > SHOWN { ", ..." } else { "" };
        names.truncate(SHOWN);
        format!("a part of {place}: {}{more}", names.join(", "))
    };
    Error::argument(op, "path", format!("{path:?}"), expected)
}

/// The one among some paths that is most like another, if it is like it at all: at most a third of it differs.
pub(crate) fn nearest<'p>(path: &str, others: &'p [String]) -> Option<&'p str> {
    let near = others.iter().map(|other| (distance(path, other), other));
    let (distance, other) = near.min_by_key(|&(distance, _)| distance)?;
    (3 * distance <= path.len().max(3)).then_some(other)
}

/// Edits that turn one word into the other: insertions, removals and replacements of one character.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("encodr", "encoder"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
