//! The object graph as a protocol message, and back.

use prost::Message;

use super::proto;
use crate::checkpoint::{Attribute, Child, ObjectGraph, ObjectNode, Slot};

/// The key of the scalar string that holds the object graph.
pub(super) const GRAPH_KEY: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";

/// The graph in a message; what is wrong with it otherwise. It has a root, and every edge leads to a node.
pub(super) fn decode(bytes: &[u8]) -> Result<ObjectGraph, String> {
    let graph =
        proto::TrackableObjectGraph::decode(bytes).map_err(|e| format!("not an object graph: {e}"))?;
    let count = graph.nodes.len();
    if count == 0 {
        return Err("an object graph without a root".to_owned());
    }
    let node = |id: i32| {
        usize::try_from(id)
            .ok()
            .filter(|&id| id < count)
            .ok_or_else(|| format!("an edge to node {id}, but there are {count}"))
    };
    let child =
        |child: proto::ObjectReference| Ok(Child { name: child.local_name, node: node(child.node_id)? });
    let slot = |slot: proto::SlotVariableReference| {
        let (variable, slot_variable) =
            (node(slot.original_variable_node_id)?, node(slot.slot_variable_node_id)?);
        Ok(Slot { variable, name: slot.slot_name, slot_variable })
    };
    let attribute = |attribute: proto::SerializedTensor| Attribute {
        name: attribute.name,
        full_name: attribute.full_name,
        key: attribute.checkpoint_key,
    };
    let nodes = graph.nodes.into_iter().map(|object| {
        Ok(ObjectNode {
            children: object.children.into_iter().map(child).collect::<Result<_, String>>()?,
            attributes: object.attributes.into_iter().map(attribute).collect(),
            slots: object.slot_variables.into_iter().map(slot).collect::<Result<_, String>>()?,
            has_values: object.has_checkpoint_values.map(|values| values.value),
            saver: object.registered_saver.map(|saver| (saver.name, saver.object_name)),
        })
    });
    Ok(ObjectGraph { nodes: nodes.collect::<Result<_, String>>()? })
}

/// The message of a graph.
pub(super) fn encode(graph: &ObjectGraph) -> Vec<u8> {
    let nodes = graph.nodes.iter().map(|object| proto::TrackableObject {
        children: object
            .children
            .iter()
            .map(|child| proto::ObjectReference {
                node_id: child.node as i32,
                local_name: child.name.clone(),
            })
            .collect(),
        attributes: object
            .attributes
            .iter()
            .map(|attribute| proto::SerializedTensor {
                name: attribute.name.clone(),
                full_name: attribute.full_name.clone(),
                checkpoint_key: attribute.key.clone(),
            })
            .collect(),
        slot_variables: object
            .slots
            .iter()
            .map(|slot| proto::SlotVariableReference {
                original_variable_node_id: slot.variable as i32,
                slot_name: slot.name.clone(),
                slot_variable_node_id: slot.slot_variable as i32,
            })
            .collect(),
        registered_saver: object.saver.as_ref().map(|(name, object_name)| proto::RegisteredSaver {
            name: name.clone(),
            object_name: object_name.clone(),
        }),
        has_checkpoint_values: object.has_values.map(|value| proto::BoolValue { value }),
    });
    proto::TrackableObjectGraph { nodes: nodes.collect() }.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_has_the_bytes_of_the_format() {
        // The root with an edge `v` to a node with one attribute.
        let attribute = Attribute { name: "N".into(), full_name: "F".into(), key: "K".into() };
        let root = ObjectNode {
            children: vec![Child { name: "v".into(), node: 1 }],
            slots: vec![Slot { variable: 1, name: "m".into(), slot_variable: 0 }],
            has_values: Some(true),
            saver: Some(("s".into(), "o".into())),
            ..ObjectNode::default()
        };
        let leaf =
            ObjectNode { attributes: vec![attribute], has_values: Some(false), ..ObjectNode::default() };
        let graph = ObjectGraph { nodes: vec![root, leaf] };
        let bytes = [
            &b"\x0a\x1a\x0a\x05\x08\x01\x12\x01v\x1a\x05\x08\x01\x12\x01m\x22\x06\x0a\x01s\x12\x01o\x2a\x02\x08\x01"[..],
            b"\x0a\x0d\x12\x09\x0a\x01N\x12\x01F\x1a\x01K\x2a\0",
        ];
        assert_eq!(encode(&graph), bytes.concat());
        assert_eq!(decode(&bytes.concat()), Ok(graph));
    }

    #[test]
    fn graphs_without_a_root_and_edges_to_nowhere_are_refused() {
        assert!(decode(b"").is_err());
        assert!(decode(b"\x0a\x04\x0a\x02\x08\x01").is_err(), "node 1 of 1");
        assert!(decode(b"\x0a\x0d\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").is_err(), "node -1");
        assert!(decode(b"\x0a\x04\x1a\x02\x18\x01").is_err(), "slot variable 1 of 1");
        assert_eq!(decode(b"\x0a\0").unwrap().nodes.len(), 1);
    }
}
