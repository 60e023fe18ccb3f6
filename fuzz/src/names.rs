//! Formats that hold names of tensors and no objects.

use super::checked::{checkpoint, folder, write};

/// A file `x.safetensors`.
pub fn safetensors(bytes: &[u8]) {
    whole("safetensors", "x.safetensors", bytes);
}

/// An index `x.safetensors.index.json`, beside which lie the shards `a` (tensors `v` and `w`) and `b` (no tensors).
pub fn safetensors_index(bytes: &[u8]) {
    let folder = folder("safetensors_index");
    let header = br#"{"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}}"#;
    write(&folder.join("a"), &[&(header.len() as u64).to_le_bytes(), &header[..], &[0; 6]].concat());
    write(&folder.join("b"), b"\x02\0\0\0\0\0\0\0{}");
    whole("safetensors_index", "x.safetensors.index.json", bytes);
}

/// A file `x.npz`.
pub fn npz(bytes: &[u8]) {
    whole("npz", "x.npz", bytes);
}

/// A file `x.npy`.
pub fn npy(bytes: &[u8]) {
    whole("npy", "x.npy", bytes);
}

fn whole(target: &str, name: &str, bytes: &[u8]) {
    let path = folder(target).join(name);
    write(&path, bytes);
    checkpoint(&path);
}
