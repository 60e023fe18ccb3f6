use couplet::{Module, Scope};

struct Plain;

#[derive(Module)]
struct Net {
    scope: Scope,
    plain: Plain, //~ `Plain` cannot be a field of a module as it stands
                  //~ #[derive(Visit)]
                  //~ #[derive(Module)] if it is a layer
                  //~ #[module(skip)]
                  //~ #[module(state)]
}

fn main() {}
