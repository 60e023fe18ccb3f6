//! What lies inside the types of the standard library and the crate's own values.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::sync::Arc;

use super::Module;
use super::copies::Copies;
use super::forward::Forward;
use super::print::Description;
use super::visit::{Edges, Name, Node, Visit};
use crate::dtype::DType;
use crate::init::Initializer;
use crate::random::Generator;
use crate::scope::Scope;
use crate::tensor::{Shape, Tensor};
use crate::variable::Variable;

/// Plain values: nothing inside, printed by the expression given.
macro_rules! plain {
    ($($t:ty),* => |$v:ident| $describe:expr) => {$(
        impl Visit for $t {
            fn node(&self) -> Node<'_> {
                Node::Nothing
            }

            fn copy(&self, _: &mut Copies) -> Self {
                self.clone()
            }

            fn describe(&self) -> Option<Description> {
                let $v = self;
                $describe
            }
        }
    )*};
}

plain!(bool, char, usize, u8, u16, u32, u64, u128, isize, i8, i16, i32, i64, i128 => |v| Some(Description::text(v)));
plain!(half::f16, half::bf16, DType, Shape => |v| Some(Description::text(v)));
plain!(f32, f64 => |v| Some(Description::text(format_args!("{v:?}"))));
plain!(String, &'static str, Cow<'static, str> => |v| Some(Description::quoted(v)));
plain!((), std::time::Duration => |_v| None);
plain!(Tensor => |v| Some(Description::text(format_args!("{}{}", v.dtype(), v.shape()))));
plain!(std::ops::Range<usize>, std::ops::RangeFrom<usize> => |v| Some(Description::text(format_args!("{v:?}"))));

impl Visit for Variable {
    fn node(&self) -> Node<'_> {
        Node::Variable(self)
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        copies.variable(self)
    }
}

impl Visit for Generator {
    fn node(&self) -> Node<'_> {
        Node::State(self)
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        copies.generator(self)
    }
}

impl Visit for Scope {
    fn node(&self) -> Node<'_> {
        Node::Nothing
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        copies.scope(self)
    }
}

impl Visit for Arc<dyn Initializer> {
    fn node(&self) -> Node<'_> {
        Node::Nothing
    }

    fn copy(&self, _: &mut Copies) -> Self {
        self.clone()
    }

    fn describe(&self) -> Option<Description> {
        Some(Description::text((**self).describe()))
    }
}

impl<T> Visit for PhantomData<T> {
    fn node(&self) -> Node<'_> {
        Node::Nothing
    }

    fn copy(&self, _: &mut Copies) -> Self {
        PhantomData
    }
}

impl<R> Visit for fn() -> R {
    fn node(&self) -> Node<'_> {
        Node::Nothing
    }

    fn copy(&self, _: &mut Copies) -> Self {
        *self
    }
}

impl<T: Visit> Visit for Option<T> {
    fn node(&self) -> Node<'_> {
        self.as_ref().map_or(Node::Nothing, Visit::node)
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        self.as_ref().map(|value| value.copy(copies))
    }

    /// The value alone; `None` is not printed.
    fn describe(&self) -> Option<Description> {
        self.as_ref().and_then(Visit::describe)
    }
}

impl<T: Visit> Visit for Vec<T> {
    fn node(&self) -> Node<'_> {
        Edges::of_list(self).into_node()
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        self.iter().map(|item| item.copy(copies)).collect()
    }

    fn describe(&self) -> Option<Description> {
        Description::list(self.iter().map(Visit::describe))
    }
}

impl<T: Visit, const N: usize> Visit for [T; N] {
    fn node(&self) -> Node<'_> {
        Edges::of_list(self).into_node()
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        self.each_ref().map(|item| item.copy(copies))
    }

    fn describe(&self) -> Option<Description> {
        Description::list(self.iter().map(Visit::describe))
    }
}

macro_rules! tuple {
    ($($t:ident $i:tt),*) => {
        impl<$($t: Visit),*> Visit for ($($t,)*) {
            fn node(&self) -> Node<'_> {
                let mut edges = Edges::new();
                $(edges.add($i, &self.$i);)*
                edges.into_node()
            }

            fn copy(&self, copies: &mut Copies) -> Self {
                ($(self.$i.copy(copies),)*)
            }

            fn describe(&self) -> Option<Description> {
                Description::tuple([$(self.$i.describe()),*])
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);

/// A key of a map: its place in the order of keys is its place in the order of parts.
pub trait Key: Clone + Ord {
    /// The name of the part below this key.
    fn name(&self) -> Name<'_>;

    /// The printed form.
    fn describe(&self) -> String;
}

macro_rules! text_key {
    ($($t:ty),*) => {$(
        impl Key for $t {
            fn name(&self) -> Name<'_> {
                Name::from(&**self)
            }

            fn describe(&self) -> String {
                Description::quoted(self).to_string()
            }
        }
    )*};
}

macro_rules! number_key {
    ($($t:ty),*) => {$(
        impl Key for $t {
            fn name(&self) -> Name<'_> {
                Name::from(self.to_string())
            }

            fn describe(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

text_key!(String, &'static str, Arc<str>, Box<str>);
number_key!(usize, u8, u16, u32, u64, isize, i8, i16, i32, i64);

impl<K: Key, V: Visit> Visit for BTreeMap<K, V> {
    fn node(&self) -> Node<'_> {
        let mut edges = Edges::new();
        for (key, value) in self {
            edges.add(key.name(), value);
        }
        edges.into_node()
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        self.iter().map(|(key, value)| (key.clone(), value.copy(copies))).collect()
    }

    fn describe(&self) -> Option<Description> {
        Description::map(self.iter().map(|(key, value)| (key.describe(), value.describe())))
    }
}

/// The entries of a hash map in the order of their keys.
fn in_order<K: Key, V, S>(map: &HashMap<K, V, S>) -> Vec<(&K, &V)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by(|a, b| a.0.cmp(b.0));
    entries
}

impl<K: Key + Hash, V: Visit, S: BuildHasher + Default> Visit for HashMap<K, V, S> {
    fn node(&self) -> Node<'_> {
        let mut edges = Edges::new();
        for (key, value) in in_order(self) {
            edges.add(key.name(), value);
        }
        edges.into_node()
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        in_order(self).into_iter().map(|(key, value)| (key.clone(), value.copy(copies))).collect()
    }

    fn describe(&self) -> Option<Description> {
        Description::map(in_order(self).into_iter().map(|(key, value)| (key.describe(), value.describe())))
    }
}

impl<T: Visit + Send + Sync + 'static> Visit for Arc<T> {
    fn node(&self) -> Node<'_> {
        (**self).node()
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        copies.shared(self)
    }

    fn describe(&self) -> Option<Description> {
        (**self).describe()
    }
}

/// Pointers to `dyn Module` and `dyn Forward`.
macro_rules! dynamic {
    ($($pointer:ty, |$p:ident, $copies:ident| $copy:expr;)*) => {$(
        impl Visit for $pointer {
            fn node(&self) -> Node<'_> {
                (**self).node()
            }

            fn copy(&self, $copies: &mut Copies) -> Self {
                let $p = self;
                $copy
            }

            fn describe(&self) -> Option<Description> {
                (**self).describe()
            }
        }
    )*};
}

dynamic! {
    Box<dyn Module>, |p, copies| (**p).copy_boxed_module(copies);
    Box<dyn Forward>, |p, copies| (**p).copy_boxed_forward(copies);
    Arc<dyn Module>, |p, copies| copies.shared_module(p);
    Arc<dyn Forward>, |p, copies| copies.shared_forward(p);
}
