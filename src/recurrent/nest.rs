//! Nested structures of tensors.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};
use crate::module::{Copies, Description, Edges, Name, Node, Visit};
use crate::tensor::Tensor;

/// A nested structure with a tensor (or another value) at each leaf: what a recurrent core carries from step to step, and
/// what it may take and give.
///
/// ```
/// use couplet::prelude::*;
/// let counter = Tensor::from(0i64);
/// let state = Nest::tuple([Nest::from(counter), Nest::map([("h", Tensor::zeros([2, 3], DType::F32)?)])]);
/// assert_eq!(state.paths(), ["0", "1/h"]);
/// assert_eq!(state.get(1)?.get("h")?.leaf()?.shape(), &[2, 3]);
/// assert_eq!(state.to_string(), "(i64[], {h: f32[2, 3]})");
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nest<T = Tensor> {
    /// No value, where structures of the same kind may have one.
    Empty,
    /// One value.
    Leaf(T),
    /// Parts known by their position, of a fixed number.
    Tuple(Vec<Nest<T>>),
    /// Parts known by their position.
    List(Vec<Nest<T>>),
    /// Parts known by a key; their order is that of the keys.
    Map(BTreeMap<String, Nest<T>>),
    /// The name of a struct and its fields in their order, as `LSTMState(hidden, cell)`.
    Struct(&'static str, Vec<(&'static str, Nest<T>)>),
}

const SAME_FORM: &str = "give structures with the same kinds, keys and numbers of parts";

impl<T> From<T> for Nest<T> {
    fn from(value: T) -> Self {
        Nest::Leaf(value)
    }
}

impl From<&Tensor> for Nest {
    fn from(x: &Tensor) -> Self {
        Nest::Leaf(x.clone())
    }
}

impl Nest {
    /// Parts of a fixed number: tensors or structures.
    pub fn tuple<I: Into<Nest>>(parts: impl IntoIterator<Item = I>) -> Self {
        Nest::Tuple(parts.into_iter().map(Into::into).collect())
    }

    /// Parts of any number.
    pub fn list<I: Into<Nest>>(parts: impl IntoIterator<Item = I>) -> Self {
        Nest::List(parts.into_iter().map(Into::into).collect())
    }

    /// Parts with keys.
    pub fn map<K: Into<String>, I: Into<Nest>>(parts: impl IntoIterator<Item = (K, I)>) -> Self {
        Nest::Map(parts.into_iter().map(|(key, part)| (key.into(), part.into())).collect())
    }

    /// The fields of a struct.
    pub fn fields<I: Into<Nest>>(
        name: &'static str,
        fields: impl IntoIterator<Item = (&'static str, I)>,
    ) -> Self {
        Nest::Struct(name, fields.into_iter().map(|(field, part)| (field, part.into())).collect())
    }
}

impl<T> Nest<T> {
    /// The value, where the structure is a single one.
    ///
    /// # Errors
    /// It is not.
    pub fn leaf(&self) -> Result<&T> {
        match self {
            Nest::Leaf(value) => Ok(value),
            other => Err(Error::argument("nest", "the structure", other.form(), "a single value")),
        }
    }

    /// The part at a position, of a field or under a key: `get(0)`, `get("hidden")`.
    ///
    /// # Errors
    /// There is no such part.
    pub fn get<'a>(&self, name: impl Into<Name<'a>>) -> Result<&Nest<T>> {
        let name = name.into();
        let part = match (self, &name) {
            (Nest::Tuple(list) | Nest::List(list), Name::Index(index)) => list.get(*index),
            (Nest::Map(map), Name::Text(key)) => map.get(&**key),
            (Nest::Struct(_, fields), Name::Index(index)) => fields.get(*index).map(|(_, part)| part),
            (Nest::Struct(_, fields), Name::Text(field)) => {
                fields.iter().find(|(name, _)| name == field).map(|(_, part)| part)
            }
            _ => None,
        };
        part.ok_or_else(|| {
            Error::argument("nest", "the part", name.to_string(), format!("a part of {}", self.form()))
        })
    }

    /// Parts and their names, if this is neither a leaf nor empty.
    fn parts(&self) -> Vec<(Name<'_>, &Nest<T>)> {
        match self {
            Nest::Empty | Nest::Leaf(_) => Vec::new(),
            Nest::Tuple(list) | Nest::List(list) => {
                list.iter().enumerate().map(|(i, p)| (i.into(), p)).collect()
            }
            Nest::Map(map) => map.iter().map(|(key, p)| (key.as_str().into(), p)).collect(),
            Nest::Struct(_, fields) => fields.iter().map(|(field, p)| ((*field).into(), p)).collect(),
        }
    }

    /// The leaves in order.
    pub fn leaves(&self) -> Vec<&T> {
        let mut leaves = Vec::new();
        self.collect(&mut leaves);
        leaves
    }

    fn collect<'a>(&'a self, leaves: &mut Vec<&'a T>) {
        match self {
            Nest::Leaf(value) => leaves.push(value),
            other => other.parts().into_iter().for_each(|(_, part)| part.collect(leaves)),
        }
    }

    /// The paths of the leaves, in their order: the names on the way joined by `/`; of a single leaf the empty path.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, path: &str, paths: &mut Vec<String>) {
        match self {
            Nest::Leaf(_) => paths.push(path.to_owned()),
            other => other.parts().into_iter().for_each(|(name, part)| {
                let separator = if path.is_empty() { "" } else { "/" };
                part.collect_paths(&format!("{path}{separator}{name}"), paths);
            }),
        }
    }

    /// The same structure with other leaves.
    ///
    /// # Errors
    /// `f` fails.
    pub fn try_map<U>(&self, mut f: impl FnMut(&T) -> Result<U>) -> Result<Nest<U>> {
        self.rebuild(&mut f)
    }

    fn rebuild<U>(&self, f: &mut dyn FnMut(&T) -> Result<U>) -> Result<Nest<U>> {
        Ok(match self {
            Nest::Empty => Nest::Empty,
            Nest::Leaf(value) => Nest::Leaf(f(value)?),
            Nest::Tuple(list) => Nest::Tuple(list.iter().map(|part| part.rebuild(f)).collect::<Result<_>>()?),
            Nest::List(list) => Nest::List(list.iter().map(|part| part.rebuild(f)).collect::<Result<_>>()?),
            Nest::Map(map) => {
                let part = |(key, part): (&String, &Nest<T>)| Ok((key.clone(), part.rebuild(f)?));
                Nest::Map(map.iter().map(part).collect::<Result<_>>()?)
            }
            Nest::Struct(name, fields) => {
                let part = |(field, part): &(&'static str, Nest<T>)| Ok((*field, part.rebuild(f)?));
                Nest::Struct(name, fields.iter().map(part).collect::<Result<_>>()?)
            }
        })
    }

    /// The same structure, with leaves made of those of two structures.
    ///
    /// # Errors
    /// The structures differ, or `f` fails.
    pub fn try_zip<U, V>(&self, other: &Nest<U>, mut f: impl FnMut(&T, &U) -> Result<V>) -> Result<Nest<V>> {
        if !self.has_form_of(other) {
            let problem = format!("the structures differ: {} and {}", self.form(), other.form());
            return Err(Error::usage("nest", problem, SAME_FORM));
        }
        let mut others = other.leaves().into_iter();
        self.try_map(|value| f(value, others.next().expect("equal structures have equally many leaves")))
    }

    /// Whether two structures differ in nothing but their leaves.
    pub fn has_form_of<U>(&self, other: &Nest<U>) -> bool {
        let same_kind = match (self, other) {
            (Nest::Struct(a, _), Nest::Struct(b, _)) => a == b,
            _ => self.kind() == other.kind(),
        };
        let (a, b) = (self.parts(), other.parts());
        same_kind && a.len() == b.len() && a.iter().zip(&b).all(|((x, a), (y, b))| x == y && a.has_form_of(b))
    }

    /// Whether a part has no value.
    pub(super) fn has_gaps(&self) -> bool {
        matches!(self, Nest::Empty) || self.parts().iter().any(|(_, part)| part.has_gaps())
    }

    fn kind(&self) -> u8 {
        match self {
            Nest::Empty => 0,
            Nest::Leaf(_) => 1,
            Nest::Tuple(_) => 2,
            Nest::List(_) => 3,
            Nest::Map(_) => 4,
            Nest::Struct(..) => 5,
        }
    }

    /// The structure with `*` for each leaf.
    pub(crate) fn form(&self) -> String {
        self.text(&|_| "*".to_owned())
    }

    fn text(&self, leaf: &dyn Fn(&T) -> String) -> String {
        let list =
            |parts: &[Nest<T>]| parts.iter().map(|part| part.text(leaf)).collect::<Vec<_>>().join(", ");
        match self {
            Nest::Empty => "none".to_owned(),
            Nest::Leaf(value) => leaf(value),
            Nest::Tuple(parts) if parts.len() == 1 => format!("({},)", list(parts)),
            Nest::Tuple(parts) => format!("({})", list(parts)),
            Nest::List(parts) => format!("[{}]", list(parts)),
            Nest::Map(map) => {
                let entry = |(key, part): (&String, &Nest<T>)| format!("{key}: {}", part.text(leaf));
                format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
            Nest::Struct(name, fields) => {
                let entry = |(field, part): &(&str, Nest<T>)| format!("{field}={}", part.text(leaf));
                format!("{name}({})", fields.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// A structure of the form of all in `list`, each leaf made of those at its place.
pub(super) fn join(list: &[Nest], f: impl Fn(&[&Tensor]) -> Result<Tensor>) -> Result<Nest> {
    let Some(first) = list.first() else { return Ok(Nest::Empty) };
    if let Some(other) = list.iter().find(|other| !other.has_form_of(first)) {
        let problem = format!("the structures differ: {} and {}", first.form(), other.form());
        return Err(Error::usage("nest", problem, SAME_FORM));
    }
    let leaves: Vec<Vec<&Tensor>> = list.iter().map(Nest::leaves).collect();
    let mut number = 0;
    first.try_map(|_| {
        number += 1;
        f(&leaves.iter().map(|leaves| leaves[number - 1]).collect::<Vec<_>>())
    })
}

impl fmt::Display for Nest {
    /// The structure with dtype and shape of each tensor.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&|x| format!("{}{}", x.dtype(), x.shape())))
    }
}

impl<T: Visit> Visit for Nest<T> {
    fn node(&self) -> Node<'_> {
        if let Nest::Leaf(value) = self {
            return value.node();
        }
        let mut edges = Edges::new();
        self.parts().into_iter().for_each(|(name, part)| edges.add(name, part));
        edges.into_node()
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        self.try_map(|value| Ok(value.copy(copies))).expect("a copy does not fail")
    }

    fn describe(&self) -> Option<Description> {
        let leaf = |value: &T| value.describe().map_or_else(|| "_".to_owned(), |text| text.to_string());
        Some(Description::text(self.text(&leaf)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair<T>(a: T, b: T) -> [Nest<T>; 2] {
        [Nest::Leaf(a), Nest::Leaf(b)]
    }

    fn map(keys: [&str; 2], a: i32, b: i32) -> Nest<i32> {
        Nest::Map(keys.map(str::to_owned).into_iter().zip(pair(a, b)).collect())
    }

    fn nest() -> Nest<i32> {
        let fields = ["left", "right"].into_iter().zip(pair(4, 5)).collect();
        let parts = [Nest::from(1), map(["b", "a"], 3, 2), Nest::Empty, Nest::Struct("Pair", fields)];
        Nest::Tuple(parts.into())
    }

    #[test]
    fn leaves_and_paths_come_in_the_order_of_positions_keys_and_fields() {
        let nest = nest();
        assert_eq!(nest.leaves(), [&1, &2, &3, &4, &5]);
        assert_eq!(nest.paths(), ["0", "1/a", "1/b", "3/left", "3/right"]);
        assert_eq!(Nest::from(7).paths(), [""]);
    }

    #[test]
    fn parts_are_found_by_position_key_and_field() {
        let nest = nest();
        assert_eq!(nest.get(1).unwrap().get("b").unwrap().leaf().unwrap(), &3);
        assert_eq!(nest.get(3).unwrap().get("right").unwrap(), nest.get(3).unwrap().get(1).unwrap());
        assert_eq!(
            nest.get(4).unwrap_err().to_string(),
            "nest: the part is 4, expected a part of (*, {a: *, b: *}, none, Pair(left=*, right=*))"
        );
        assert!(nest.get("a").is_err() && nest.get(0).unwrap().get(0).is_err() && nest.leaf().is_err());
    }

    #[test]
    fn zipping_wants_the_same_kinds_of_parts() {
        let nest = nest();
        let sums = nest.try_zip(&nest, |a, b| Ok(a + b)).unwrap();
        assert_eq!(sums.leaves(), [&2, &4, &6, &8, &10]);
        let (tuple, list) = (Nest::Tuple(pair(1, 2).into()), Nest::List(pair(1, 2).into()));
        let message = tuple.try_zip(&list, |a, _| Ok(*a)).unwrap_err().to_string();
        assert!(message.contains("(*, *) and [*, *]"), "{message}");
        assert!(tuple.try_zip(&Nest::from(1), |a, _| Ok(*a)).is_err());
        assert!(!tuple.has_form_of(&Nest::Tuple(vec![Nest::from(1)])));
        assert!(tuple.has_form_of(&Nest::Tuple(pair(true, false).into())));
        assert!(!map(["a", "b"], 1, 2).has_form_of(&map(["a", "c"], 1, 2)));
    }
}
