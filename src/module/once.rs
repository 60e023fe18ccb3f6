//! A part of a module that is made by the first call.

use std::sync::OnceLock;

use super::copies::Copies;
use super::fill;
use super::freeze::set_frozen;
use super::gate::Gate;
use super::visit::{Node, Visit};
use super::waiting::{Waiting, Waits};
use crate::error::Result;
use crate::random;
use crate::variable::waiting;

/// A part that the first call makes: a variable whose shape only the first input tells, or a module.
///
/// It is made once, however many threads call at the same time. If making it fails, the next call tries again.
/// A restore may come first: then the part takes the restored value, and its initialiser does not run.
///
/// ```
/// # use couplet::{Error, Once};
/// let size: Once<usize> = Once::new();
/// assert_eq!(size.get(), None);
/// assert!(size.get_or_init(|| Err(Error::Name { name: "$".into() })).is_err());
/// assert_eq!(*size.get_or_init(|| Ok(3))?, 3);
/// assert_eq!(*size.get_or_init(|| Ok(4))?, 3);
/// # Ok::<(), Error>(())
/// ```
pub struct Once<T> {
    value: OnceLock<T>,
    gate: Gate<Expected>,
}

/// What is to happen when the part is made.
#[derive(Clone)]
struct Expected {
    waiting: Option<Waiting>,
    frozen: Option<bool>,
}

impl<T> Once<T> {
    /// A part not made yet.
    pub const fn new() -> Self {
        Once { value: OnceLock::new(), gate: Gate::new(Expected { waiting: None, frozen: None }) }
    }

    /// The part, if it was made.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }
}

impl<T: Visit> Once<T> {
    /// The part; the first call makes it.
    ///
    /// # Errors
    /// `init` failed, it asked for the same part, or what a restore left for the part does not fit. The part is then
    /// still to be made, and what waits for it still waits.
    pub fn get_or_init(&self, init: impl FnOnce() -> Result<T>) -> Result<&T> {
        match self.value.get() {
            Some(value) => Ok(value),
            None => self.make(init),
        }
    }

    #[cold]
    fn make(&self, init: impl FnOnce() -> Result<T>) -> Result<&T> {
        let _held = self.gate.hold()?;
        if let Some(value) = self.value.get() {
            return Ok(value); // another thread was first
        }
        let expected = self.gate.with(|expected| expected.clone());
        let made = make_expecting(expected.waiting, init)?;
        if let Some(frozen) = expected.frozen {
            set_frozen(made.node(), frozen);
        }
        self.gate.with(|expected| expected.waiting = None);
        Ok(self.value.get_or_init(|| made))
    }
}

/// Makes a part that takes what waits for it.
pub(crate) fn make_expecting<T: Visit>(
    waiting: Option<Waiting>,
    init: impl FnOnce() -> Result<T>,
) -> Result<T> {
    match waiting {
        Some(Waiting::Value(value)) => {
            let (made, left) = waiting::with(Some(value), init);
            let made = made?;
            if let Some(left) = left {
                fill::fill_part(&made, Waiting::Value(left))?;
            }
            Ok(made)
        }
        Some(waiting) => make_filled(waiting, init),
        None => waiting::with(None, init).0,
    }
}

/// Makes a part that is given the values of its variables afterwards. If they all are, what initialisers drew meanwhile
/// does not count: the thread's generator stays where it was.
fn make_filled<T: Visit>(values: Waiting, init: impl FnOnce() -> Result<T>) -> Result<T> {
    let generator = random::current();
    let aside = random::Generator::from_state(generator.state());
    let (made, _) = random::with(&aside, || waiting::with(None, init));
    let made = made?;
    if !fill::fill_part(&made, values)? {
        generator.restore(aside.state());
    }
    Ok(made)
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Once::new()
    }
}

impl<T> From<T> for Once<T> {
    /// A part that is there from the start.
    fn from(value: T) -> Self {
        let once = Once::new();
        once.value.get_or_init(|| value);
        once
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Once").field(&self.get()).finish()
    }
}

impl<T: Visit + Send + Sync> Visit for Once<T> {
    fn node(&self) -> Node<'_> {
        match self.get() {
            Some(value) => value.node(),
            None => Node::Empty(self),
        }
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        if let Some(value) = self.get() {
            return Once::from(value.copy(copies));
        }
        let copy = Once::new();
        let expected = self.gate.with(|expected| expected.clone());
        copy.gate.with(|copied| *copied = expected);
        copy
    }
}

impl<T: Send + Sync> Waits for Once<T> {
    fn waiting(&self) -> Option<Waiting> {
        self.gate.with(|expected| expected.waiting.clone())
    }

    fn set_waiting(&self, waiting: Option<Waiting>) {
        self.gate.with(|expected| expected.waiting = waiting);
    }

    fn freeze_when_made(&self, frozen: bool) {
        self.gate.with(|expected| expected.frozen = Some(frozen));
    }
}
