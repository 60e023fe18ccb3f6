//! The form in which Keras keeps the slots of optimisers: with their variables.

use super::graph::{ObjectGraph, escape};
use super::snapshot::{Snapshot, VARIABLE_VALUE};

/// What lists of slots are called there.
const NAMES: &[(&str, &str)] = &[("accumulated_momentum", "momentum"), ("mom", "momentum"), ("ms", "rms")];

impl Snapshot {
    /// The same values with the slots of each optimiser beside their variables, under
    /// `VARIABLE/.OPTIMIZER_SLOT/OPTIMIZER/NAME`, and its count of steps as `iter`.
    pub(crate) fn with_keras_slots(mut self) -> Self {
        for optimizer in 0..self.graph.nodes.len() {
            if !self.graph.nodes[optimizer].slots.is_empty() {
                self.move_slots(optimizer);
            }
        }
        self.graph.mark_values();
        self
    }

    fn move_slots(&mut self, optimizer: usize) {
        let before = self.graph.clone();
        let routes = before.routes();
        let Some(own_path) = routes.path(optimizer) else { return };
        let node = &mut self.graph.nodes[optimizer];
        let (mut renamed, mut lists) = (Vec::new(), Vec::new());
        for slot in &mut node.slots {
            let list = before.nodes[optimizer].children.iter().find(|child| child.name == slot.name);
            let is_listed = |graph: &ObjectGraph, list: usize| {
                graph.nodes[list].children.iter().any(|child| child.node == slot.slot_variable)
            };
            let (Some(list), Some(variable)) = (list, routes.path(slot.variable)) else { continue };
            if !is_listed(&before, list.node) {
                continue;
            }
            node.children.retain(|child| child.name != list.name);
            lists.push(list.node);
            if let Some((_, theirs)) = NAMES.iter().find(|(ours, _)| *ours == slot.name) {
                slot.name = (*theirs).to_owned();
            }
            let name = escape(&slot.name);
            let path = format!("{variable}/.OPTIMIZER_SLOT/{own_path}/{name}");
            renamed.push((slot.slot_variable, path));
        }
        if let Some(step) = node.children.iter_mut().find(|child| child.name == "step") {
            step.name = "iter".to_owned();
            let path = if own_path.is_empty() { "iter".to_owned() } else { format!("{own_path}/iter") };
            renamed.push((step.node, path));
        }
        // Nothing leads to the lists any more.
        lists.into_iter().for_each(|list| self.graph.nodes[list].children.clear());
        for (node, path) in renamed {
            for attribute in &mut self.graph.nodes[node].attributes {
                let key = format!("{path}/.ATTRIBUTES/{VARIABLE_VALUE}");
                if let Some((found, _)) = self.values.iter_mut().find(|(found, _)| *found == attribute.key) {
                    found.clone_from(&key);
                }
                attribute.key = key;
            }
        }
    }
}
