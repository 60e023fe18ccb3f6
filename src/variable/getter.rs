//! Functions that stand between variables and what reads them on this thread.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::scope;
use crate::tensor::Tensor;

use super::Variable;

type Read = dyn Fn(&Variable) -> Result<Tensor>;

/// The variables that a getter is meant for: those of some modules, present and future.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    /// Identities of variables.
    pub(crate) variables: HashSet<u64>,
    /// Identities of the scopes of modules: what is made inside one belongs to it.
    pub(crate) scopes: HashSet<u64>,
}

/// A function in place of reading, for all variables or for some.
struct Getter {
    read: Box<Read>,
    targets: Option<RefCell<Targets>>,
    /// The first error of the function: who reads a variable expects none.
    error: RefCell<Option<Error>>,
}

impl Getter {
    fn wants(&self, variable: &Variable) -> bool {
        self.targets.as_ref().is_none_or(|targets| targets.borrow().variables.contains(&variable.id()))
    }
}

/// What applies to the reads of a thread.
#[derive(Clone, Default)]
struct Reads {
    /// The outermost first.
    getters: Vec<Rc<Getter>>,
    /// The dtype in which floats are seen.
    dtype: Option<DType>,
}

thread_local! {
    /// Whether there is anything to apply: reading a variable pays no more than this when there is not.
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    static READS: RefCell<Reads> = RefCell::default();
}

/// Whether something stands between variables and their readers on this thread.
#[inline]
pub(super) fn is_active() -> bool {
    ACTIVE.try_with(Cell::get).unwrap_or(false)
}

/// Runs `f` with other rules for reading.
fn with_reads<R>(reads: Reads, f: impl FnOnce() -> R) -> R {
    struct Restore(Reads);
    impl Drop for Restore {
        fn drop(&mut self) {
            set(std::mem::take(&mut self.0));
        }
    }
    let _restore = Restore(set(reads));
    f()
}

/// Puts other rules in place of the present ones, which it returns.
fn set(reads: Reads) -> Reads {
    let active = !reads.getters.is_empty() || reads.dtype.is_some();
    let _ = ACTIVE.try_with(|a| a.set(active));
    READS.try_with(|current| current.replace(reads)).unwrap_or_default()
}

fn current() -> Reads {
    READS.try_with(|reads| reads.borrow().clone()).unwrap_or_default()
}

/// Runs `f` while `read` takes the place of reading the targets, or all variables. An error of `read` is the result.
pub(crate) fn with_getter<R>(
    read: Box<Read>,
    targets: Option<Targets>,
    f: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let getter = Rc::new(Getter { read, targets: targets.map(RefCell::new), error: RefCell::new(None) });
    let mut reads = current();
    reads.getters.push(getter.clone());
    let result = with_reads(reads, f);
    match getter.error.take() {
        Some(error) => Err(error),
        None => result,
    }
}

/// Runs `f` while every variable of floats is seen in another float dtype.
pub(crate) fn with_dtype<R>(dtype: DType, f: impl FnOnce() -> R) -> R {
    let mut reads = current();
    reads.dtype = Some(dtype);
    with_reads(reads, f)
}

/// What a reader of the variable sees. While the getter runs, none applies.
pub(super) fn read(variable: &Variable) -> Tensor {
    let reads = current();
    let dtype = reads.dtype;
    let getter = reads.getters.iter().find(|getter| getter.wants(variable));
    let value = with_reads(Reads::default(), || match getter {
        None => variable.value(),
        Some(getter) => (getter.read)(variable).unwrap_or_else(|error| {
            getter.error.borrow_mut().get_or_insert(error);
            variable.value()
        }),
    });
    match dtype {
        Some(dtype) if value.dtype().is_float() => value.cast(dtype).unwrap_or(value),
        _ => value,
    }
}

/// The dtype in which a reader sees a variable of floats of this dtype.
pub(crate) fn seen_dtype(dtype: DType) -> DType {
    if !is_active() || !dtype.is_float() {
        return dtype;
    }
    current().dtype.unwrap_or(dtype)
}

/// Takes note of a new variable: it belongs to the module whose scope is entered.
pub(super) fn made(variable: &Variable) {
    if !is_active() {
        return;
    }
    let Some(scope) = scope::current_id() else { return };
    for targets in current().getters.iter().filter_map(|getter| getter.targets.as_ref()) {
        let mut targets = targets.borrow_mut();
        if targets.scopes.contains(&scope) {
            targets.variables.insert(variable.id());
        }
    }
}
