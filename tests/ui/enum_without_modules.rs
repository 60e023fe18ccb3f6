use couplet::Module;

#[derive(Module)]
enum Layer {
    Identity, //~ a variant of a module holds one module
}

fn main() {}
