//! A list of parts that may grow while the module is in use.

use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::copies::Copies;
use super::fill;
use super::freeze::set_frozen;
use super::gate::Gate;
use super::once::make_expecting;
use super::print::Description;
use super::visit::{Edges, Node, Visit};
use super::waiting::{Waiting, Waits};
use crate::error::{Error, Result};

/// Chunk `k` holds `2^k` items, so that items never move while others are added: room for more than memory can hold.
const CHUNKS: usize = 40;

type Chunk<T> = Box<[OnceLock<T>]>;

/// A list of parts that can grow through a shared reference: items stay where they are, and are never removed.
///
/// What a restore leaves for items that do not exist yet waits until they are added.
///
/// ```
/// # use couplet::List;
/// let sizes = List::from_iter([3usize, 4]);
/// sizes.push(5)?;
/// assert_eq!((sizes.len(), sizes[2]), (3, 5));
/// # Ok::<(), couplet::Error>(())
/// ```
pub struct List<T> {
    chunks: Box<[OnceLock<Chunk<T>>]>,
    len: AtomicUsize,
    gate: Gate<Expected>,
}

/// What is to happen when items are added.
#[derive(Clone, Default)]
struct Expected {
    /// By position.
    waiting: BTreeMap<String, Waiting>,
    frozen: Option<bool>,
}

/// Chunk and place in it of an item.
fn place(index: usize) -> (usize, usize) {
    let chunk = (index + 1).ilog2();
    (chunk as usize, index + 1 - (1 << chunk))
}

impl<T> List<T> {
    /// An empty list.
    pub fn new() -> Self {
        let chunks = (0..CHUNKS).map(|_| OnceLock::new()).collect();
        List { chunks, len: AtomicUsize::new(0), gate: Gate::new(Expected::default()) }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Item `index`, if there is one.
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len() {
            return None;
        }
        let (chunk, place) = place(index);
        self.chunks[chunk].get()?[place].get()
    }

    /// The items in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> + DoubleEndedIterator {
        (0..self.len()).map(|index| &self[index])
    }

    /// Adds an item at the end. The caller holds the gate, or the list alone.
    fn append(&self, item: T) -> &T {
        let index = self.len();
        let (chunk, place) = place(index);
        let slots =
            self.chunks[chunk].get_or_init(|| (0..1usize << chunk).map(|_| OnceLock::new()).collect());
        let item = slots[place].get_or_init(|| item);
        self.len.store(index + 1, Ordering::Release);
        item
    }
}

impl<T: Visit> List<T> {
    /// Adds an item at the end.
    ///
    /// # Errors
    /// What a restore left for this position does not fit the item. The list is unchanged.
    pub fn push(&self, item: T) -> Result<()> {
        let _held = self.gate.hold()?;
        self.add(|waiting| {
            if let Some(waiting) = waiting {
                fill::fill_part(&item, waiting)?;
            }
            Ok(item)
        })?;
        Ok(())
    }

    /// Item `index`, which is made and added first if it is the next one.
    ///
    /// # Errors
    /// `init` failed, what a restore left for this position does not fit, or `index` lies beyond the next position.
    /// The list is unchanged.
    pub fn get_or_push_with(&self, index: usize, init: impl FnOnce() -> Result<T>) -> Result<&T> {
        if let Some(item) = self.get(index) {
            return Ok(item);
        }
        let _held = self.gate.hold()?;
        if let Some(item) = self.get(index) {
            return Ok(item); // another thread was first
        }
        if index > self.len() {
            let expected = format!("at most {}: items are added one after the other", self.len());
            return Err(Error::argument("get_or_push_with", "index", index, expected));
        }
        self.add(|waiting| make_expecting(waiting, init))
    }

    /// Adds the item that `make` returns, given what waits for it. The caller holds the gate.
    fn add(&self, make: impl FnOnce(Option<Waiting>) -> Result<T>) -> Result<&T> {
        let position = self.len().to_string();
        let (waiting, frozen) =
            self.gate.with(|expected| (expected.waiting.get(&position).cloned(), expected.frozen));
        let item = make(waiting)?;
        if let Some(frozen) = frozen {
            set_frozen(item.node(), frozen);
        }
        self.gate.with(|expected| expected.waiting.remove(&position));
        Ok(self.append(item))
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        List::new()
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let list = List::new();
        items.into_iter().for_each(|item| {
            list.append(item);
        });
        list
    }
}

impl<T> Index<usize> for List<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        match self.get(index) {
            Some(item) => item,
            None => panic!("index {index} is out of range for a list of {} items", self.len()),
        }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for List<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Visit + Send + Sync> Visit for List<T> {
    fn node(&self) -> Node<'_> {
        Node::Growing(Edges::of_list(self.iter()), self)
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        let copy = self.iter().map(|item| item.copy(copies)).collect::<List<T>>();
        let expected = self.gate.with(|expected| expected.clone());
        copy.gate.with(|copied| *copied = expected);
        copy
    }

    fn describe(&self) -> Option<Description> {
        Description::list(self.iter().map(Visit::describe))
    }
}

impl<T: Send + Sync> Waits for List<T> {
    fn waiting(&self) -> Option<Waiting> {
        let waiting = self.gate.with(|expected| expected.waiting.clone());
        (!waiting.is_empty()).then_some(Waiting::Tree(waiting))
    }

    fn set_waiting(&self, waiting: Option<Waiting>) {
        let waiting = match waiting {
            Some(Waiting::Tree(tree)) => tree,
            _ => BTreeMap::new(),
        };
        self.gate.with(|expected| expected.waiting = waiting);
    }

    fn freeze_when_made(&self, frozen: bool) {
        self.gate.with(|expected| expected.frozen = Some(frozen));
    }
}
