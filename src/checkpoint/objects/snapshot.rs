//! What a checkpoint writes: the graph of the program's objects, and their values at one moment.

use std::collections::HashMap;

use super::graph::{Attribute, Child, ObjectGraph, ObjectNode, Slot};
use super::live::{Live, Object, Root};
use super::stored::{Stored, Strings};
use crate::error::Result;
use crate::module::{Owner, Waiting};
use crate::tensor::Tensor;

/// The name of the counter of saves.
pub(crate) const SAVE_COUNTER: &str = "save_counter";
/// The attribute of a variable.
pub(crate) const VARIABLE_VALUE: &str = "VARIABLE_VALUE";
/// The attribute of plain state, which is a string of bytes.
pub(crate) const STATE: &str = "py_state";

/// The graph and the values of one moment. Tensors are handles: what is assigned later does not reach them.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) graph: ObjectGraph,
    /// By key, in the order of the nodes.
    pub(crate) values: Vec<(String, Stored)>,
}

impl Snapshot {
    /// Takes the values of all objects below the root, and what waits for those that are not made yet.
    ///
    /// # Errors
    /// A module cannot make what needs no input, or plain state refuses to be written.
    pub(crate) fn take(root: &Root<'_>) -> Result<Self> {
        let live = Live::materialise(root)?;
        let mut nodes = vec![ObjectNode::default(); live.nodes.len()];
        let mut values = Vec::new();
        for (number, node) in live.nodes.iter().enumerate() {
            if let Some((name, full_name, value)) = own_value(&node.object, || live.path(number))? {
                let key = format!("{}/.ATTRIBUTES/{name}", live.path(number));
                let attribute = Attribute { name: name.to_owned(), full_name, key: key.clone() };
                nodes[number].attributes.push(attribute);
                values.push((key, value));
            }
            let child = |(name, node): &(String, usize)| Child { name: name.clone(), node: *node };
            nodes[number].children = node.parts.iter().map(child).collect();
        }
        add_slots(&live, &mut nodes);
        let mut graph = ObjectGraph { nodes };
        graph.mark_values();
        Ok(Snapshot { graph, values })
    }
}

/// Says for each optimiser which parameter the slots in its lists belong to.
fn add_slots(live: &Live<'_>, nodes: &mut [ObjectNode]) {
    let optimizers = (0..live.nodes.len()).filter_map(|number| Some((number, live.slot_owners(number)?)));
    let optimizers: Vec<_> = optimizers.map(|(number, owners)| (number, owners.numbers())).collect();
    if optimizers.iter().all(|(_, numbers)| numbers.is_empty()) {
        return;
    }
    let mut owners = HashMap::new();
    for (number, node) in live.nodes.iter().enumerate() {
        match &node.object {
            Object::Variable(variable) => drop(owners.insert(Owner::variable(variable.id()), number)),
            Object::Waiting(Waiting::Value(value)) => drop(owners.insert(Owner::waiting(value), number)),
            Object::Empty(later) => {
                if let Some(Waiting::Value(value)) = later.waiting() {
                    owners.insert(Owner::waiting(&value), number);
                }
            }
            _ => {}
        }
    }
    for (optimizer, numbers) in optimizers {
        let lists = live.nodes[optimizer].parts.iter();
        for (name, list) in lists.filter(|&&(_, part)| matches!(live.nodes[part].object, Object::Growing(_)))
        {
            for (owner, number) in &numbers {
                let slot = live.part(*list, &number.to_string());
                if let (Some(&variable), Some(slot_variable)) = (owners.get(owner), slot) {
                    nodes[optimizer].slots.push(Slot { variable, name: name.clone(), slot_variable });
                }
            }
        }
    }
}

/// Attribute, global name and value of an object that has one.
fn own_value(
    object: &Object<'_>,
    path: impl Fn() -> String,
) -> Result<Option<(&'static str, String, Stored)>> {
    let variable = |name: &str, value: Tensor| (VARIABLE_VALUE, name.to_owned(), Stored::Tensor(value));
    let state = |bytes: Vec<u8>| (STATE, String::new(), Stored::Strings(Strings::scalar(bytes)));
    let waiting = |values: Waiting| match values {
        Waiting::Value(value) => Some(variable("", value)),
        Waiting::State(bytes) => Some(state(bytes)),
        Waiting::Tree(_) => None,
    };
    Ok(match object {
        Object::Variable(live) => Some(variable(live.name(), live.peek())),
        Object::State(live) => Some(state(live.save().map_err(|e| e.within(&path()))?)),
        Object::Empty(later) => later.waiting().and_then(waiting),
        Object::Waiting(values) => waiting(values.clone()),
        Object::Inner | Object::Module(_) | Object::Growing(_) => None,
    })
}
