//! A lock held while user code makes something: it reports what would otherwise be a deadlock.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::error::{Error, Result};

/// Data behind a lock, and the right to change it that one thread at a time holds, possibly for long.
pub(crate) struct Gate<S> {
    inner: Mutex<Inner<S>>,
    opened: Condvar,
}

struct Inner<S> {
    holder: Option<ThreadId>,
    data: S,
}

/// Which thread waits at which gate, and for whom. Touched only when a thread has to wait.
static WAITERS: Mutex<Option<HashMap<ThreadId, (usize, ThreadId)>>> = Mutex::new(None);

impl<S> Gate<S> {
    pub(crate) const fn new(data: S) -> Self {
        Gate { inner: Mutex::new(Inner { holder: None, data }), opened: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or changes the data, for as long as `f` runs; `f` must not call user code.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        f(&mut self.lock().data)
    }

    /// Waits until no other thread holds the gate, then holds it.
    ///
    /// # Errors
    /// This thread holds it already, or waiting would never end.
    pub(crate) fn hold(&self) -> Result<Held<'_, S>> {
        let me = thread::current().id();
        let mut inner = self.lock();
        while let Some(holder) = inner.holder {
            if holder == me || !self.may_wait(me, holder) {
                return Err(Error::usage(
                    "get_or_init",
                    "a value was asked for while it was being made",
                    "do not call a module from within the creation of its own parts",
                ));
            }
            inner = self.opened.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        inner.holder = Some(me);
        Ok(Held { gate: self })
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Notes that `me` waits for `holder`, unless `holder` waits for `me`, through whomever.
    fn may_wait(&self, me: ThreadId, holder: ThreadId) -> bool {
        let mut waiters = WAITERS.lock().unwrap_or_else(PoisonError::into_inner);
        let waiters = waiters.get_or_insert_default();
        let mut last = holder;
        while let Some(&(_, next)) = waiters.get(&last) {
            if next == me {
                return false;
            }
            last = next;
        }
        waiters.insert(me, (self.address(), holder));
        true
    }
}

/// The right to change what a [`Gate`] guards.
pub(crate) struct Held<'a, S> {
    gate: &'a Gate<S>,
}

impl<S> Drop for Held<'_, S> {
    fn drop(&mut self) {
        let mut inner = self.gate.lock();
        inner.holder = None;
        if let Some(waiters) = &mut *WAITERS.lock().unwrap_or_else(PoisonError::into_inner) {
            waiters.retain(|_, (gate, _)| *gate != self.gate.address());
        }
        drop(inner);
        self.gate.opened.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn the_thread_that_holds_a_gate_is_refused() {
        let gate = Gate::new(());
        let held = gate.hold().unwrap();
        assert!(gate.hold().is_err());
        drop(held);
        assert!(gate.hold().is_ok());
    }

    #[test]
    fn two_threads_that_wait_for_each_other_are_told_so() {
        let (a, b) = (Gate::new(()), Gate::new(()));
        let both_hold_one = Barrier::new(2);
        let run = |first: &Gate<()>, second: &Gate<()>| {
            let _first = first.hold().unwrap();
            both_hold_one.wait();
            second.hold().is_ok()
        };
        let (x, y) = thread::scope(|s| {
            let x = s.spawn(|| run(&a, &b));
            let y = s.spawn(|| run(&b, &a));
            (x.join().unwrap(), y.join().unwrap())
        });
        assert!(x != y, "one is refused, the other goes on: {x} {y}");
    }

    #[test]
    fn holders_take_turns() {
        let gate = Gate::new(0);
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..1000 {
                        let _held = gate.hold().unwrap();
                        let seen = gate.with(|n| *n);
                        thread::yield_now();
                        gate.with(|n| *n = seen + 1);
                    }
                });
            }
        });
        assert_eq!(gate.with(|n| *n), 4000);
    }
}
