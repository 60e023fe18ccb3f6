//! Names, scopes and the paths in errors.

use std::sync::Arc;

use super::*;

/// A module that makes a layer and a variable in its constructor, and others when it is called first.
#[derive(Module)]
struct Net {
    scope: Scope,
    a: Linear,
    v: Variable,
    b: Once<Linear>,
    w: Once<Variable>,
}

impl Net {
    fn new() -> Result<Self> {
        let scope = Scope::of::<Self>();
        let (a, v) = {
            let _in = scope.enter();
            (Linear::new(2), variable("v", &[])?)
        };
        Ok(Net { scope, a, v, b: Once::new(), w: Once::new() })
    }
}

#[scoped]
impl Net {
    fn call(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.a.forward(x)?;
        let b = self.b.get_or_init(|| Ok(Linear::new(2).name("late")))?;
        self.w.get_or_init(|| variable("w", &[]))?;
        b.forward(&y)
    }

    fn scoped_factory(&self) -> Linear {
        Linear::new(2)
    }

    #[no_name_scope]
    fn free_factory(&self) -> Linear {
        Linear::new(2)
    }

    fn rebuilt(&mut self) -> Result<&mut Linear> {
        self.a = Linear::new(3);
        Ok(&mut self.a)
    }

    fn first_of<'a>(&'a self, _other: &str) -> Result<&'a Linear> {
        Ok(&self.a)
    }

    fn sizes(&self) -> Result<impl Iterator<Item = usize>> {
        Ok([self.a.output_size].into_iter())
    }
}

#[test]
fn names_tell_where_a_variable_was_made() {
    let net = Net::new().unwrap();
    net.call(&x(3)).unwrap();
    let variables = net.variables().unwrap();
    let expected = ["net/v", "net/w", "net/linear/b", "net/linear/w", "net/late/b", "net/late/w"];
    assert_eq!(names(&variables), expected);
}

#[test]
fn a_call_from_another_scope_changes_no_name() {
    let linear = Linear::new(2);
    let other = Scope::new("callscope");
    let _in = other.enter();
    linear.forward(&x(3)).unwrap();
    assert_eq!(names(&linear.variables().unwrap()), ["linear/b", "linear/w"]);
}

#[test]
fn a_module_passed_in_keeps_its_scope() {
    #[derive(Module)]
    struct Holder {
        scope: Scope,
        held: Arc<Linear>,
    }
    let holder = Holder { scope: Scope::of::<Holder>(), held: Arc::new(Linear::new(2)) };
    holder.held.forward(&x(3)).unwrap();
    assert_eq!(names(&holder.variables().unwrap()), ["linear/b", "linear/w"]);
}

#[test]
fn factories_run_in_the_scope_of_the_caller_if_they_say_so() {
    let net = Net::new().unwrap();
    assert_eq!(net.scoped_factory().scope().path(), "net/linear");
    assert_eq!(net.free_factory().scope().path(), "linear");
    let zz = Scope::new("zz");
    let _in = zz.enter();
    assert_eq!(net.scoped_factory().scope().path(), "net/linear");
    assert_eq!(net.free_factory().scope().path(), "zz/linear");
}

#[test]
fn scoped_methods_may_return_references_and_opaque_types() {
    let mut net = Net::new().unwrap();
    assert_eq!(net.first_of("").unwrap().output_size, 2);
    assert_eq!(net.sizes().unwrap().sum::<usize>(), 2);
    assert_eq!(net.rebuilt().unwrap().scope().path(), "net/linear");
}

#[test]
fn a_renamed_module_takes_its_children_along() {
    let net = Net::new().unwrap().name("stem");
    net.call(&x(3)).unwrap();
    // `v` was made before the module was renamed.
    let expected = ["net/v", "stem/w", "stem/linear/b", "stem/linear/w", "stem/late/b", "stem/late/w"];
    assert_eq!(names(&net.variables().unwrap()), expected);
}

#[test]
fn an_invalid_name_is_reported_by_the_first_call() {
    let linear = Linear::new(2).name("a/b");
    let message = linear.forward(&x(3)).unwrap_err().to_string();
    assert!(message.contains("\"a/b\"") && message.contains("identifier"), "{message}");
    assert!(linear.w.get().is_none());
    assert!(linear.name("ok").forward(&x(3)).is_ok());
}

#[test]
fn an_error_names_the_module_and_leaves_the_scope() {
    let net = Net::new().unwrap();
    let message = net.call(&full(&[3], 0.0)).unwrap_err().to_string();
    assert_eq!(message, "in net/linear: linear: x has shape [3], expected rank 2");
    assert_eq!(Scope::new("after").path(), "after");
}

#[test]
fn an_error_of_a_module_from_elsewhere_names_both() {
    #[derive(Module)]
    struct Holder {
        scope: Scope,
        held: Linear,
    }
    #[scoped]
    impl Forward for Holder {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            self.held.forward(x).map_err(|error| error.at_edge("held"))
        }
    }
    let holder = Holder { held: Linear::new(2), scope: Scope::new("holder") };
    let message = holder.forward(&full(&[3], 0.0)).unwrap_err().to_string();
    assert_eq!(message, "in holder: held (linear): linear: x has shape [3], expected rank 2");
}

#[test]
fn results_of_other_crates_pass_through_scoped_methods() {
    #[derive(Module)]
    #[module(allow_empty_variables)]
    struct Reader {
        scope: Scope,
    }
    #[scoped]
    impl Reader {
        fn read(&self) -> std::io::Result<u8> {
            Err(std::io::Error::other("no data"))
        }
        fn parse(&self, text: &str) -> Result<u8, std::num::ParseIntError> {
            text.parse()
        }
    }
    let reader = Reader { scope: Scope::new("reader") };
    assert_eq!(reader.read().unwrap_err().to_string(), "no data");
    assert!(reader.parse("x").is_err() && reader.parse("7") == Ok(7));
    assert!(reader.variables().unwrap().is_empty());
}

#[test]
fn a_variable_is_found_by_its_path_and_what_is_none_is_named() {
    #[derive(Module)]
    struct Pair {
        scope: Scope,
        layers: Vec<Linear>,
        embed: crate::nn::Embed,
    }
    let layers = vec![Linear::new(1), Linear::new(2)];
    let pair = Pair { scope: Scope::of::<Pair>(), layers, embed: crate::nn::Embed::new(3).embed_dim(2) };
    assert_eq!(pair.variable("embed/embeddings").unwrap().shape(), &[3, 2], "it needs no input");
    let message = |path: &str| pair.variable(path).unwrap_err().to_string();
    assert!(message("layers/1/w").contains("not made yet"), "{}", message("layers/1/w"));
    pair.layers[1].forward(&x(4)).unwrap();
    assert_eq!(pair.variable("layers/1/w").unwrap().id(), pair.layers[1].w.get().unwrap().id());
    assert!(message("layers/1").contains("layers/1/w"), "{}", message("layers/1"));
    assert!(message("layers/1/v").contains("a part of \"layers/1\": w"), "{}", message("layers/1/v"));
    assert!(message("").contains("layers/1/w"), "{}", message(""));
}
