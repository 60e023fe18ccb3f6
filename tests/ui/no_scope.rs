use couplet::{Module, Once, Variable};

#[derive(Module)]
struct Net { //~ a module needs a field `scope: couplet::Scope`
    w: Once<Variable>,
}

fn main() {}
