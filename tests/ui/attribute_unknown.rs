use couplet::{Module, Scope};

#[derive(Module)]
struct Net {
    scope: Scope,
    #[module(skipped)] //~ unknown here; see the documentation of #[derive(Module)]
    label: String,
}

#[derive(Module)]
struct Other {
    scope: Scope,
    #[module(skip, name = "x")] //~ a field that is skipped takes no other attribute
    label: String,
}

fn main() {}
