//! Freezing and thawing of variables, also of those that are not made yet.

use super::collect::{Seen, parts};
use super::visit::{Edges, Node};

/// Freezes or thaws every variable below `node`, now or when it is made.
pub(crate) fn set_frozen(node: Node<'_>, frozen: bool) {
    set(node, frozen, &mut Seen::default());
}

fn set(node: Node<'_>, frozen: bool, seen: &mut Seen) {
    match node {
        Node::Variable(variable) => variable.set_frozen(frozen),
        Node::Module(module) if seen.is_new_module(module) => set_parts(parts(module), frozen, seen),
        Node::Group(edges) => set_parts(edges, frozen, seen),
        Node::Growing(edges, later) => {
            set_parts(edges, frozen, seen);
            later.freeze_when_made(frozen);
        }
        Node::Empty(later) => later.freeze_when_made(frozen),
        _ => {}
    }
}

fn set_parts(edges: Edges<'_>, frozen: bool, seen: &mut Seen) {
    for edge in edges {
        set(edge.node, frozen, seen);
    }
}
