//! The protocol messages of the format, field by field; a field that is missing has its default, one that is not listed is skipped.

use prost::Message;

/// The header: the value of the empty key.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Header {
    #[prost(int32, tag = "1")]
    pub num_shards: i32,
    /// 0 little, 1 big.
    #[prost(int32, tag = "2")]
    pub endianness: i32,
    #[prost(message, optional, tag = "3")]
    pub version: Option<Version>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Version {
    #[prost(int32, tag = "1")]
    pub producer: i32,
    #[prost(int32, tag = "2")]
    pub min_consumer: i32,
    #[prost(int32, repeated, tag = "3")]
    pub bad_consumers: Vec<i32>,
}

/// A tensor, or a slice of one.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Entry {
    #[prost(int32, tag = "1")]
    pub dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<Shape>,
    #[prost(int32, tag = "3")]
    pub shard_id: i32,
    #[prost(int64, tag = "4")]
    pub offset: i64,
    #[prost(int64, tag = "5")]
    pub size: i64,
    #[prost(fixed32, tag = "6")]
    pub crc32c: u32,
    #[prost(message, repeated, tag = "7")]
    pub slices: Vec<Slice>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Shape {
    #[prost(message, repeated, tag = "2")]
    pub dim: Vec<Dim>,
    #[prost(bool, tag = "3")]
    pub unknown_rank: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Dim {
    #[prost(int64, tag = "1")]
    pub size: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Slice {
    #[prost(message, repeated, tag = "1")]
    pub extent: Vec<Extent>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Extent {
    #[prost(int64, tag = "1")]
    pub start: i64,
    /// Missing for a whole axis.
    #[prost(int64, optional, tag = "2")]
    pub length: Option<i64>,
}

/// The object graph.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackableObjectGraph {
    #[prost(message, repeated, tag = "1")]
    pub nodes: Vec<TrackableObject>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackableObject {
    #[prost(message, repeated, tag = "1")]
    pub children: Vec<ObjectReference>,
    #[prost(message, repeated, tag = "2")]
    pub attributes: Vec<SerializedTensor>,
    #[prost(message, repeated, tag = "3")]
    pub slot_variables: Vec<SlotVariableReference>,
    #[prost(message, optional, tag = "4")]
    pub registered_saver: Option<RegisteredSaver>,
    #[prost(message, optional, tag = "5")]
    pub has_checkpoint_values: Option<BoolValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ObjectReference {
    #[prost(int32, tag = "1")]
    pub node_id: i32,
    #[prost(string, tag = "2")]
    pub local_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SerializedTensor {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub full_name: String,
    #[prost(string, tag = "3")]
    pub checkpoint_key: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SlotVariableReference {
    #[prost(int32, tag = "1")]
    pub original_variable_node_id: i32,
    #[prost(string, tag = "2")]
    pub slot_name: String,
    #[prost(int32, tag = "3")]
    pub slot_variable_node_id: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RegisteredSaver {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub object_name: String,
}

/// A bool that may be missing, which is not the same as false.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BoolValue {
    #[prost(bool, tag = "1")]
    pub value: bool,
}
