//! Layers with one input and one output.

use couplet::{Deferred, Module};

use super::{Build, Inputs, Layer, Subject, one};
use crate::args::Args;
use crate::{Outcome, Outputs};

pub const MODULES: &[(&str, Build)] = &[];

impl<M: Layer> Subject for M {
    fn module(&self) -> &dyn Module {
        self
    }

    fn call(&self, x: &mut Inputs, args: &mut Args) -> Outcome<Outputs> {
        let x = x.next()?;
        one(match args.get("is_training")? {
            Some(is_training) => self.forward_t(&x, is_training),
            None => self.forward(&x),
        })
    }
}
