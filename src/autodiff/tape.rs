//! The gradient tape: a range of what the thread records.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::ops::Gradient;
use crate::ops::record::{self, Pause, Recorder};
use crate::tensor::Tensor;

use super::backward::{self, Seed};
use super::hook::Observer;
use super::source::{Source, SourceKey};

/// What a source receives that the target does not depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnconnectedGradients {
    /// `None`, so that it can be told from a gradient that happens to be 0.
    #[default]
    None,
    /// Zeros of its shape and dtype.
    Zero,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Recording,
    Stopped,
    Consumed,
}

/// Records what this thread computes from here on, so that it can be differentiated.
///
/// Trainable variables are watched as they are read; tensors must be [`watch`](GradientTape::watch)ed. A tape
/// gives one [`gradient`](GradientTape::gradient) and frees what it held on the way back, unless it is
/// [`persistent`](GradientTape::persistent). Tapes nest: an outer one also records the gradient computation of an
/// inner one, which gives derivatives of any order.
///
/// ```
/// use couplet::{GradientTape, Tensor};
/// let x = Tensor::from(3.0f32);
/// let tape = GradientTape::new();
/// tape.watch(&x);
/// let y = (&x * &x)?;
/// let dx = tape.gradient(&y, &[&x])?.remove(0);
/// assert_eq!(dx.expect("y depends on x").dense()?.item::<f32>()?, 6.0);
/// # Ok::<(), couplet::Error>(())
/// ```
#[derive(Debug)]
pub struct GradientTape {
    id: u64,
    /// Where the range starts, and the number of the tape in the session.
    start: Cell<(usize, u64)>,
    persistent: bool,
    watches_variables: bool,
    state: Cell<State>,
    /// Whether the tape still holds a range of the thread's list.
    open: Cell<bool>,
    without_gradient: RefCell<Vec<String>>,
    unconnected: UnconnectedGradients,
    pub(super) observer: RefCell<Option<Observer>>,
    /// A tape belongs to the thread that made it.
    thread: PhantomData<*const ()>,
}

impl Default for GradientTape {
    fn default() -> Self {
        Self::new()
    }
}

impl GradientTape {
    /// A tape that records until its one gradient is taken or it is dropped.
    pub fn new() -> Self {
        Self::with(false, true)
    }

    /// A tape that gives any number of gradients and holds its records until it is dropped.
    pub fn persistent() -> Self {
        Self::with(true, true)
    }

    /// Whether trainable variables are watched as they are read. Default: yes.
    #[must_use]
    pub fn watch_accessed_variables(mut self, watches: bool) -> Self {
        if self.watches_variables != watches {
            self.watches_variables = watches;
            record::with_recorder(|r| r.change_accessed(if watches { 1 } else { -1 }));
        }
        self
    }

    /// What a source receives that the target does not depend on. Default: `None`.
    ///
    /// ```
    /// use couplet::{GradientTape, Tensor, autodiff::UnconnectedGradients};
    /// let (x, z) = (Tensor::from(3.0f32), Tensor::from([1.0f32, 2.0]));
    /// let tape = GradientTape::new().unconnected_gradients(UnconnectedGradients::Zero);
    /// tape.watch(&x);
    /// let dz = tape.gradient(&(&x * &x)?, &[&z])?.remove(0).expect("zeros");
    /// assert_eq!(dz.dense()?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    #[must_use]
    pub fn unconnected_gradients(mut self, unconnected: UnconnectedGradients) -> Self {
        self.unconnected = unconnected;
        self
    }

    fn with(persistent: bool, watches_variables: bool) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        thread_local!(static IDS: Cell<(u64, u64)> = const { Cell::new((0, 0)) });
        // Numbers are taken in blocks, so that threads do not meet on one counter at every tape.
        let id = IDS.with(|ids| {
            let (mut next, mut end) = ids.get();
            if next == end {
                next = NEXT.fetch_add(1024, Ordering::Relaxed);
                end = next + 1024;
            }
            ids.set((next + 1, end));
            next
        });
        let start = record::with_recorder(|r| {
            if watches_variables {
                r.change_accessed(1);
            }
            r.open()
        });
        record::change_recording(1);
        GradientTape {
            id,
            start: Cell::new(start.unwrap_or((0, 0))),
            persistent,
            watches_variables,
            state: Cell::new(State::Recording),
            open: Cell::new(start.is_some()),
            without_gradient: RefCell::default(),
            unconnected: UnconnectedGradients::None,
            observer: RefCell::default(),
            thread: PhantomData,
        }
    }

    /// Tracks a tensor or a variable from now on, a variable that is not trainable too.
    pub fn watch(&self, source: &impl Source) {
        match source.key() {
            SourceKey::Tensor(x) => {
                record::with_recorder(|r| r.watch(x, self.id));
            }
            SourceKey::Variable(v) => {
                record::with_recorder(|r| r.watched_variables.push((v.id(), self.id)));
            }
        }
    }

    /// Runs `f` without recording it on any tape of this thread.
    pub fn stop_recording<R>(&self, f: impl FnOnce() -> R) -> R {
        no_grad(f)
    }

    /// Forgets everything recorded so far and starts again; watched tensors must be watched again.
    pub fn reset(&self) {
        self.close();
        self.without_gradient.borrow_mut().clear();
        if let Some(start) = record::with_recorder(|r| {
            if self.watches_variables {
                r.change_accessed(1);
            }
            r.open()
        }) {
            self.start.set(start);
            self.open.set(true);
            self.state.set(State::Recording);
            record::change_recording(1);
        }
    }

    /// Derivatives of the scalar `target` with respect to each source, in their order.
    ///
    /// `None` where the target does not depend on the source through what the tape recorded, or only through ops
    /// without a derivative; [`without_gradient`](GradientTape::without_gradient) lists those.
    ///
    /// # Errors
    /// `target` is not a scalar of a float dtype (give a seed with
    /// [`gradient_with_seed`](GradientTape::gradient_with_seed) instead), or the tape was consumed by an earlier
    /// call.
    pub fn gradient<S: Source>(&self, target: &Tensor, sources: &[S]) -> Result<Vec<Option<Gradient>>> {
        if target.size() != 1 {
            return Err(Error::Shape {
                op: "gradient",
                what: "the target".into(),
                got: target.shape().to_vec(),
                expected: "one element: reduce it with sum() or mean(), or call gradient_with_seed".into(),
            });
        }
        self.differentiate(&[(target, None)], sources)
    }

    /// Derivatives of `sum(target * seed)` with respect to each source: a vector-Jacobian product.
    ///
    /// # Errors
    /// `seed` has not the shape and dtype of `target`, the target is not of a float dtype, or the tape was consumed.
    pub fn gradient_with_seed<S: Source>(
        &self,
        target: &Tensor,
        seed: &Tensor,
        sources: &[S],
    ) -> Result<Vec<Option<Gradient>>> {
        self.differentiate(&[(target, Some(seed))], sources)
    }

    /// Derivatives of the sum over all targets of `sum(target * seed)`; a missing seed means ones.
    ///
    /// # Errors
    /// As for [`gradient_with_seed`](GradientTape::gradient_with_seed).
    pub fn gradient_of_all<S: Source>(
        &self,
        targets: &[Seed<'_>],
        sources: &[S],
    ) -> Result<Vec<Option<Gradient>>> {
        self.differentiate(targets, sources)
    }

    fn differentiate<S: Source>(&self, targets: &[Seed<'_>], sources: &[S]) -> Result<Vec<Option<Gradient>>> {
        backward::check_targets(targets)?;
        let keys: Vec<SourceKey<'_>> = sources.iter().map(Source::key).collect();
        let mut gradients = self.walk_back(|range, consume| {
            let observer = self.observer.borrow();
            backward::run(range, targets, &keys, consume, observer.as_ref())
        })?;
        let lacking = keys.iter().zip(&gradients).enumerate().filter(|(_, (_, g))| g.is_none());
        *self.without_gradient.borrow_mut() = lacking
            .map(|(i, (key, _))| match key {
                SourceKey::Tensor(_) => format!("source {i}"),
                SourceKey::Variable(v) => v.name().to_owned(),
            })
            .collect();
        if self.unconnected == UnconnectedGradients::Zero {
            for (key, gradient) in keys.iter().zip(&mut gradients).filter(|(_, g)| g.is_none()) {
                *gradient = Some(key.zeros()?.into());
            }
        }
        Ok(gradients)
    }

    /// Calls `f` with the tape's range, and whether it may consume it, in the state in which a backward pass runs: what it
    /// computes belongs on the other tapes of this thread alone.
    pub(super) fn walk_back<R>(&self, f: impl FnOnce(&backward::Range, bool) -> Result<R>) -> Result<R> {
        if self.state.get() == State::Consumed {
            return Err(Error::usage(
                "gradient",
                "the tape was consumed by an earlier gradient",
                "make it with GradientTape::persistent() for more than one",
            ));
        }
        let (start, opened) = self.start.get();
        if record::with_recorder(|r| r.leaves_out(opened)).unwrap_or(false) {
            return Err(Error::usage(
                "gradient",
                "the tape began outside the function that is being run for recompute, which keeps nothing",
                "take its gradient after recompute, or begin a tape inside",
            ));
        }
        let consume = !self.persistent;
        if consume {
            self.stop();
            self.state.set(State::Consumed);
        }
        let others = record::recording() - i32::from(self.state.get() == State::Recording);
        let pause = (others == 0).then(Pause::new);
        let range = backward::Range { start, opened, tape: self.id, variables: self.watches_variables };
        let result = f(&range, consume);
        drop(pause);
        if consume {
            self.close();
        }
        result
    }

    /// Names of the variables (and numbers of the tensors) that got no gradient from the last call.
    pub fn without_gradient(&self) -> Vec<String> {
        self.without_gradient.borrow().clone()
    }

    fn stop(&self) {
        if self.state.get() == State::Recording {
            self.state.set(State::Stopped);
            record::change_recording(-1);
        }
    }

    /// Gives up the tape's range; what dies is dropped after the borrow.
    fn close(&self) {
        self.stop();
        if self.open.replace(false) {
            let dead: Option<Option<Recorder>> = record::with_recorder(|r| {
                if self.watches_variables {
                    r.change_accessed(-1);
                }
                r.close()
            });
            drop(dead);
        }
    }
}

impl Drop for GradientTape {
    fn drop(&mut self) {
        self.close();
    }
}

/// Runs `f` without recording it on any tape of this thread.
///
/// ```
/// use couplet::{GradientTape, Tensor, no_grad};
/// let x = Tensor::from(2.0f64);
/// let tape = GradientTape::new();
/// tape.watch(&x);
/// let constant = no_grad(|| &x * &x)?;
/// let y = (&x * &constant)?;
/// let dx = tape.gradient(&y, &[&x])?.remove(0);
/// assert_eq!(dx.expect("depends on x").dense()?.item::<f64>()?, 4.0);
/// # Ok::<(), couplet::Error>(())
/// ```
pub fn no_grad<R>(f: impl FnOnce() -> R) -> R {
    let _pause = Pause::new();
    f()
}

/// The scalar that `f` computes and its gradients with respect to `sources`.
///
/// # Errors
/// `f` fails, or its result is not a scalar of a float dtype.
pub fn value_and_grad<S: Source>(
    f: impl FnOnce() -> Result<Tensor>,
    sources: &[S],
) -> Result<(Tensor, Vec<Option<Gradient>>)> {
    let tape = GradientTape::new();
    for source in sources {
        tape.watch(source);
    }
    let y = f()?;
    let gradients = tape.gradient(&y, sources)?;
    Ok((y, gradients))
}

#[cfg(test)]
mod tests;
