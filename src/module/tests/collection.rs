//! The order of variables and modules, and the errors when there are none.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::*;
use crate::{List, Visit};

/// A node of a tree with two variables and any number of children.
#[derive(Module)]
struct Tree {
    scope: Scope,
    zz: Variable,
    v: Variable,
    children: Vec<Tree>,
}

impl Tree {
    fn new(name: &str, children: Vec<Tree>) -> Self {
        let scope = Scope::new(name);
        let _in = scope.enter();
        Tree { zz: counter("zz").unwrap(), v: variable("v", &[]).unwrap(), children, scope }
    }

    fn sample() -> Self {
        Tree::new("a", vec![Tree::new("b", vec![Tree::new("d", vec![])]), Tree::new("c", vec![])])
    }
}

#[test]
fn a_childs_whole_subtree_comes_before_the_next_child() {
    let tree = Tree::sample();
    assert_eq!(
        names(&tree.variables().unwrap()),
        ["a/v", "a/zz", "b/v", "b/zz", "d/v", "d/zz", "c/v", "c/zz"]
    );
    assert_eq!(names(&tree.trainable_variables().unwrap()), ["a/v", "b/v", "d/v", "c/v"]);
    assert_eq!(names(&tree.non_trainable_variables().unwrap()), ["a/zz", "b/zz", "d/zz", "c/zz"]);
}

#[test]
fn submodules_list_all_children_before_any_grandchild() {
    let tree = Tree::sample();
    let names: Vec<String> = tree.submodules().into_iter().map(|module| module.scope().name()).collect();
    assert_eq!(names, ["b", "c", "d"]);
}

#[test]
fn parts_are_sorted_by_code_point_and_shared_ones_come_once() {
    #[derive(Module)]
    #[expect(non_snake_case, reason = "upper case sorts first")]
    struct Many {
        scope: Scope,
        z: Variable,
        a: Variable,
        B: Variable,
        #[module(name = "_c")]
        c: Variable,
        lst: Vec<Variable>,
        dct: BTreeMap<String, Variable>,
        dup: Variable,
        v10: Variable,
        v2: Variable,
    }
    let new = |name: &str| variable(name, &[]).unwrap();
    let z = new("z");
    let many = Many {
        scope: Scope::of::<Many>(),
        a: new("a"),
        B: new("B"),
        c: new("_c"),
        lst: (0..11).map(|i| new(&format!("l{i}"))).collect(),
        dct: BTreeMap::from([("y".into(), new("dy")), ("x".into(), new("dx"))]),
        dup: z.clone(),
        v10: new("v10"),
        v2: new("v2"),
        z,
    };
    let expected = "B _c a dx dy z l0 l1 l2 l3 l4 l5 l6 l7 l8 l9 l10 v10 v2";
    assert_eq!(names(&many.variables().unwrap()).join(" "), expected);
    // Paths go the shortest way, and between equals by declaration: `z` before `dup`.
    assert_eq!(many.path_of(&many.dup).as_deref(), Some("z"));
}

#[test]
fn a_shared_module_counts_once_and_a_cycle_ends() {
    #[derive(Module)]
    struct Ring {
        scope: Scope,
        v: Variable,
        next: Once<Arc<Ring>>,
        shared: Option<Arc<Ring>>,
    }
    let ring = |name: &str| {
        let scope = Scope::new(name);
        let _in = scope.enter();
        Ring { v: variable("v", &[]).unwrap(), next: Once::new(), shared: None, scope }
    };
    let a = Arc::new(ring("a"));
    let mut b = ring("b");
    b.shared = Some(a.clone());
    let b = Arc::new(b);
    a.next.get_or_init(|| Ok(b.clone())).unwrap();
    b.next.get_or_init(|| Ok(a.clone())).unwrap();
    assert_eq!(names(&a.variables().unwrap()), ["a/v", "b/v"]);
    assert_eq!(a.submodules().len(), 1);
    assert_eq!(a.named_variables().unwrap()[1].0, "next/v");
    a.freeze("").unwrap();
    assert!(b.v.is_frozen());
    assert!(a.duplicate().unwrap_err().to_string().contains("holds itself"));
}

#[test]
fn maps_are_walked_in_the_order_of_their_keys() {
    #[derive(Module)]
    struct Maps {
        scope: Scope,
        texts: HashMap<String, Linear>,
        numbers: HashMap<i64, Variable>,
    }
    let maps = Maps {
        scope: Scope::of::<Maps>(),
        texts: ["q.r", "a/b", "m"].into_iter().map(|key| (key.to_owned(), Linear::new(1))).collect(),
        numbers: [10, 9, -1].into_iter().map(|key| (key, variable(&key.to_string(), &[]).unwrap())).collect(),
    };
    maps.texts.values().for_each(|linear| drop(linear.forward(&x(1)).unwrap()));
    assert_eq!(names(&maps.variables().unwrap())[..3], ["-1", "9", "10"]);
    let paths: Vec<String> = maps.named_variables().unwrap().into_iter().map(|(path, _)| path).collect();
    let expected = ["numbers/-1", "numbers/9", "numbers/10", "texts/a.Sb/w", "texts/a.Sb/b"];
    assert_eq!(paths[..5], expected);
    assert_eq!(paths[7..], ["texts/q..r/w", "texts/q..r/b"]);
}

#[test]
fn enums_tuples_options_and_plain_structs_are_walked() {
    #[derive(Visit)]
    struct State {
        hidden: Variable,
        cell: Variable,
    }
    #[derive(Visit)]
    enum Activation {
        Identity,
        Learned(Variable),
        Leaky { slope: f64, bias: Variable },
    }
    #[derive(Module)]
    enum Layer {
        Dense(Linear),
        Tree(Arc<Tree>),
    }
    #[derive(Module)]
    struct Mixed {
        scope: Scope,
        state: State,
        activations: (Activation, Activation, Activation),
        layers: Vec<Layer>,
        none: Option<Linear>,
        list: List<Linear>,
    }
    let new = |name: &str| variable(name, &[]).unwrap();
    let mixed = Mixed {
        scope: Scope::of::<Mixed>(),
        state: State { hidden: new("h"), cell: new("c") },
        activations: (
            Activation::Identity,
            Activation::Learned(new("l")),
            Activation::Leaky { slope: 0.1, bias: new("m") },
        ),
        layers: vec![Layer::Dense(Linear::new(1)), Layer::Tree(Arc::new(Tree::new("t", vec![])))],
        none: None,
        list: List::from_iter([Linear::new(1)]),
    };
    // The fields of a plain struct keep their order, those of a module do not.
    assert_eq!(names(&mixed.variables().unwrap()), ["l", "m", "h", "c", "t/v", "t/zz"]);
    let paths: Vec<String> = mixed.named_variables().unwrap().into_iter().map(|(path, _)| path).collect();
    let expected =
        ["state/hidden", "state/cell", "activations/1", "activations/2/bias", "layers/1/zz", "layers/1/v"];
    assert_eq!(paths, expected);
    assert_eq!(mixed.submodules().len(), 3);
    let printed = "\
Mixed(
    activations=(Identity, Learned, Leaky(slope=0.1)),
    layers=[Linear(output_size=1), Tree(children=[])],
    list=[Linear(output_size=1)],
)";
    assert_eq!(format!("{mixed:?}"), printed);
    assert_eq!(mixed.layers[1].variables().unwrap().len(), 2);
}

#[test]
fn asking_too_early_says_to_call_the_module_first() {
    let linear = Linear::new(32);
    let message = linear.variables().unwrap_err().to_string();
    for part in ["variables", "Linear(output_size=32)", "call it once", "allow_empty_variables"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert!(linear.trainable_variables().is_err());
    assert!(linear.non_trainable_variables().unwrap().is_empty());
    assert!(linear.submodules().is_empty());
}

#[test]
fn only_counters_or_frozen_variables_are_nothing_to_train() {
    #[derive(Module)]
    struct Counter {
        scope: Scope,
        count: Variable,
    }
    let counter = Counter { scope: Scope::of::<Counter>(), count: counter("count").unwrap() };
    assert_eq!(counter.variables().unwrap().len(), 1);
    assert!(counter.trainable_variables().unwrap_err().to_string().contains("trainable"));
    let linear = Linear::new(2);
    linear.forward(&x(1)).unwrap();
    linear.freeze("").unwrap();
    assert!(linear.trainable_variables().unwrap_err().to_string().contains("2 are frozen"));
    assert!(linear.allow_empty_variables().trainable_variables().unwrap().is_empty());
}

#[test]
fn the_permission_to_be_empty_holds_for_the_module_asked() {
    #[derive(Module)]
    #[module(allow_empty_variables)]
    struct Stateless {
        scope: Scope,
        inner: Linear,
    }
    let stateless = Stateless { scope: Scope::of::<Stateless>(), inner: Linear::new(1) };
    assert!(stateless.variables().unwrap().is_empty());
    assert!(stateless.inner.variables().is_err());
}

#[test]
fn modules_that_need_no_input_make_their_variables_when_asked() {
    #[derive(Module)]
    #[module(materialise = Self::table)]
    struct Embed {
        scope: Scope,
        table: Once<Variable>,
    }
    #[scoped]
    impl Embed {
        fn table(&self) -> Result<&Variable> {
            self.table.get_or_init(|| variable("embeddings", &[3, 2]))
        }
    }
    #[derive(Module)]
    struct Outer {
        scope: Scope,
        embed: Box<dyn Module>,
    }
    let embed = Embed { scope: Scope::of::<Embed>(), table: Once::new() };
    let outer = Outer { scope: Scope::of::<Outer>(), embed: Box::new(embed) };
    assert_eq!(names(&outer.variables().unwrap()), ["embed/embeddings"]);
}
