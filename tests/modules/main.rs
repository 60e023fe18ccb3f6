//! One suite over one list of all modules: what each of them promises.
//!
//! A new module goes into `list.rs`; without it the suite fails.

mod bytes;
mod list;
mod promises;
mod travelling;
mod variables;

use std::collections::BTreeSet;
use std::path::Path;

use couplet::DType;
use list::every_module;

/// A module of the library that is missing above fails here: the list is compared with the source.
#[test]
fn the_list_is_complete() {
    let mut declared = BTreeSet::new();
    for folder in ["nn", "nets", "nets/dnc", "metrics", "recurrent"] {
        let Ok(files) = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder))
        else {
            continue;
        };
        for file in files {
            let path = file.unwrap().path();
            if path.is_dir() {
                continue; // tests of the file beside it
            }
            let source = std::fs::read_to_string(path).unwrap();
            for (_, after) in source.match_indices("#[derive(Module)]").map(|(at, _)| source.split_at(at)) {
                // Attributes, then the declaration; a private one is a helper of its file.
                let is_declaration =
                    |line: &&str| ["struct ", "enum "].iter().any(|word| line.contains(word));
                let declaration = after.lines().find(is_declaration).unwrap();
                let Some(name) = declaration.strip_prefix("pub struct ") else { continue };
                declared.insert(name.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned());
            }
        }
    }
    // One struct stands for the convolutions of all ranks.
    let name = |kind: &str| match kind {
        "Conv1D" | "Conv2D" | "Conv3D" => "ConvND".to_owned(),
        "Conv1DTranspose" | "Conv2DTranspose" | "Conv3DTranspose" => "ConvNDTranspose".to_owned(),
        "Conv1DLSTM" | "Conv2DLSTM" | "Conv3DLSTM" => "ConvNDLSTM".to_owned(),
        kind => kind.to_owned(),
    };
    let listed: BTreeSet<String> =
        every_module().iter().map(|make| name(make(DType::F32).module().kind())).collect();
    let missing: Vec<_> = declared.difference(&listed).collect();
    assert!(declared.contains("Linear") && missing.is_empty(), "missing in the list: {missing:?}");
}
