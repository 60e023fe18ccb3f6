//! What the modules below a call return and how much they compute, noted while a summary is made.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use crate::dtype::DType;
use crate::ops::cost;
use crate::scope::Scope;
use crate::tensor::{Shape, Tensor};

/// What is known of one module after a probe.
#[derive(Debug, Clone, Default)]
pub(crate) struct Noted {
    /// Shape and dtype of the last output.
    pub(crate) output: Option<(Shape, DType)>,
    /// Multiply-adds of its own, over all calls.
    pub(crate) multiply_adds: u64,
}

/// Notes by identity of the module.
pub(crate) type Notes = HashMap<u64, Noted>;

#[derive(Default)]
struct Probe {
    notes: Notes,
    /// Methods under way: the module, and where the count stood when it was last charged.
    under_way: Vec<(u64, u64)>,
}

impl Probe {
    /// Charges what was counted since the last change to the innermost method.
    fn charge(&mut self) {
        let now = cost::counted();
        if let Some((module, since)) = self.under_way.last_mut() {
            self.notes.entry(*module).or_default().multiply_adds += now - *since;
            *since = now;
        }
    }
}

thread_local! {
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    static PROBE: RefCell<Probe> = RefCell::default();
}

/// Whether the methods of modules on this thread are to be noted.
#[inline]
pub(crate) fn is_active() -> bool {
    ACTIVE.with(Cell::get)
}

/// Runs `f` and returns what its modules did.
pub(crate) fn probing<R>(f: impl FnOnce() -> R) -> (R, Notes) {
    struct Stop(Option<Probe>, bool);
    impl Drop for Stop {
        fn drop(&mut self) {
            let _ = ACTIVE.try_with(|active| active.set(self.1));
            let _ = PROBE.try_with(|probe| probe.replace(self.0.take().unwrap_or_default()));
        }
    }
    let outer = PROBE.with(RefCell::take);
    let stop = Stop(Some(outer), ACTIVE.with(|active| active.replace(true)));
    let result = cost::counting(f);
    let notes = PROBE.with(RefCell::take).notes;
    drop(stop);
    (result, notes)
}

/// A method of a module begins.
#[cold]
pub(crate) fn begin(scope: &Scope) {
    PROBE.with_borrow_mut(|probe| {
        probe.charge();
        probe.under_way.push((scope.id(), cost::counted()));
    });
}

/// The innermost method ends.
#[cold]
pub(crate) fn end() {
    let _ = PROBE.try_with(|probe| {
        let mut probe = probe.borrow_mut();
        probe.charge();
        probe.under_way.pop();
        if let Some((_, since)) = probe.under_way.last_mut() {
            *since = cost::counted();
        }
    });
}

/// The innermost method returns a tensor.
#[cold]
pub(crate) fn output(y: &Tensor) {
    PROBE.with_borrow_mut(|probe| {
        if let Some(&(module, _)) = probe.under_way.last() {
            probe.notes.entry(module).or_default().output = Some((y.shape().clone(), y.dtype()));
        }
    });
}
