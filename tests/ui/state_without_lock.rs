use couplet::{Module, Scope};

#[derive(Module)]
struct Net {
    scope: Scope,
    #[module(state)]
    words: Vec<String>, //~ `Vec<String>` cannot be state that a checkpoint restores
                        //~ wrap it in a Mutex
}

fn main() {}
