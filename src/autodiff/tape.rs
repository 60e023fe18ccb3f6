//! The gradient tape: a range of what the thread records.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::ops::Gradient;
use crate::ops::record::{self, Pause, Recorder};
use crate::tensor::{Shape, Tensor};
use crate::variable::Variable;

use super::backward::{self, Seed};

/// What a tape can differentiate with respect to: a tensor or a variable.
pub trait Source {
    /// Where to look for it among what was recorded.
    #[doc(hidden)]
    fn key(&self) -> SourceKey<'_>;
}

/// A source by identity.
#[doc(hidden)]
#[derive(Debug)]
pub enum SourceKey<'a> {
    Tensor(&'a Tensor),
    Variable(&'a Variable),
}

impl Source for Tensor {
    fn key(&self) -> SourceKey<'_> {
        SourceKey::Tensor(self)
    }
}

impl Source for Variable {
    fn key(&self) -> SourceKey<'_> {
        SourceKey::Variable(self)
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn key(&self) -> SourceKey<'_> {
        (**self).key()
    }
}

impl SourceKey<'_> {
    pub(super) fn shape(&self) -> Shape {
        match self {
            SourceKey::Tensor(t) => t.shape().clone(),
            SourceKey::Variable(v) => v.shape().clone(),
        }
    }
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
        if self.state.get() == State::Consumed {
            return Err(Error::usage(
                "gradient",
                "the tape was consumed by an earlier gradient",
                "make it with GradientTape::persistent() for more than one",
            ));
        }
        backward::check_targets(targets)?;
        let keys: Vec<SourceKey<'_>> = sources.iter().map(Source::key).collect();
        let consume = !self.persistent;
        if consume {
            self.stop();
            self.state.set(State::Consumed);
        }
        // What the backward pass computes belongs on the other tapes of this thread alone.
        let others = record::recording() - i32::from(self.state.get() == State::Recording);
        let pause = (others == 0).then(Pause::new);
        let (start, opened) = self.start.get();
        let range = backward::Range { start, opened, tape: self.id, variables: self.watches_variables };
        let gradients = backward::run(&range, targets, &keys, consume);
        drop(pause);
        if consume {
            self.close();
        }
        let gradients = gradients?;
        let lacking = keys.iter().zip(&gradients).enumerate().filter(|(_, (_, g))| g.is_none());
        *self.without_gradient.borrow_mut() = lacking
            .map(|(i, (key, _))| match key {
                SourceKey::Tensor(_) => format!("source {i}"),
                SourceKey::Variable(v) => v.name().to_owned(),
            })
            .collect();
        Ok(gradients)
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
mod tests {
    use super::*;

    fn scalar(g: &Option<Gradient>) -> f64 {
        g.as_ref().expect("a gradient").dense().unwrap().item::<f64>().unwrap()
    }

    #[test]
    fn repeated_use_adds_up() -> Result<()> {
        let x = Tensor::from(3.0f64);
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = ((&x * &x)? * &x)?; // 3 x^2 = 27
        assert_eq!(scalar(&tape.gradient(&y, &[&x])?[0]), 27.0);
        Ok(())
    }

    #[test]
    fn nested_tapes_give_second_derivatives() -> Result<()> {
        let x = Tensor::from(3.0f64);
        let outer = GradientTape::new();
        outer.watch(&x);
        let inner = GradientTape::new();
        inner.watch(&x);
        let y = ((&x * &x)? * &x)?;
        let dx = inner.gradient(&y, &[&x])?.remove(0).expect("y depends on x").to_dense()?;
        assert_eq!(scalar(&outer.gradient(&dx, &[&x])?[0]), 18.0);
        Ok(())
    }

    #[test]
    fn an_inner_tape_sees_only_what_it_watches() -> Result<()> {
        let x = Tensor::from(3.0f64);
        let outer = GradientTape::new();
        outer.watch(&x);
        let z = (&x * 2.0)?;
        let inner = GradientTape::persistent();
        let y = (&z * &z)?;
        assert!(inner.gradient(&y, &[&x])?[0].is_none());
        inner.watch(&z);
        let y = (&z * &z)?;
        assert!(inner.gradient(&y, &[&x])?[0].is_none());
        assert_eq!(scalar(&inner.gradient(&y, &[&z])?[0]), 12.0);
        drop(inner);
        assert_eq!(scalar(&outer.gradient(&y, &[&x])?[0]), 24.0);
        Ok(())
    }

    #[test]
    fn variables_are_watched_when_read_unless_frozen_or_not_trainable() -> Result<()> {
        let (v, w) = (
            Variable::from_tensor("v", Tensor::from(2.0f64)),
            Variable::from_tensor("w", Tensor::from(5.0f64)),
        );
        w.set_frozen(true);
        let tape = GradientTape::persistent();
        let y = ((&v * &v)? * &w)?;
        let g = tape.gradient(&y, &[&v, &w])?;
        assert_eq!((scalar(&g[0]), g[1].is_none()), (20.0, true));
        assert_eq!(tape.without_gradient(), ["w"]);
        tape.watch(&w);
        let y = (&v * &w)?;
        assert_eq!(scalar(&tape.gradient(&y, &[&w])?[0]), 2.0);
        Ok(())
    }

    #[test]
    fn a_consumed_tape_and_a_wrong_target_are_errors() -> Result<()> {
        let x = Tensor::from([1.0f32, 2.0]);
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = (&x * 2.0)?;
        assert!(tape.gradient(&y, &[&x]).unwrap_err().to_string().contains("seed"));
        assert!(tape.gradient_with_seed(&y, &Tensor::from([1.0f64, 1.0]), &[&x]).is_err());
        assert!(tape.gradient(&Tensor::from(1i64), &[&x]).unwrap_err().to_string().contains("float"));
        tape.gradient(&y.sum()?, &[&x])?;
        assert!(tape.gradient(&y.sum()?, &[&x]).unwrap_err().to_string().contains("persistent"));
        Ok(())
    }

    #[test]
    fn broadcast_inputs_receive_sums() -> Result<()> {
        let (x, b) = (Tensor::from([[1.0f64, 2.0], [3.0, 4.0]]), Tensor::from([10.0f64, 20.0]));
        let tape = GradientTape::new();
        tape.watch(&x);
        tape.watch(&b);
        let y = (&x * &b)?.sum()?;
        let g = tape.gradient(&y, &[&x, &b])?;
        let list = |g: &Option<Gradient>| g.as_ref().unwrap().dense().unwrap().to_vec::<f64>().unwrap();
        assert_eq!(list(&g[0]), [10.0, 20.0, 10.0, 20.0]);
        assert_eq!(list(&g[1]), [4.0, 6.0]);
        Ok(())
    }

    #[test]
    fn reset_forgets_and_records_anew() -> Result<()> {
        let x = Tensor::from(2.0f64);
        let tape = GradientTape::new();
        tape.watch(&x);
        let old = (&x * &x)?;
        tape.reset();
        tape.watch(&x);
        let y = (&x * 3.0)?;
        assert!(tape.gradient(&old, &[&x])?[0].is_none());
        tape.reset();
        tape.watch(&x);
        let y2 = (&x * y)?;
        assert_eq!(scalar(&tape.gradient(&y2, &[&x])?[0]), 6.0);
        Ok(())
    }

    #[test]
    fn a_tape_inside_no_grad_records_for_itself_alone() -> Result<()> {
        let x = Tensor::from(2.0f64);
        let outer = GradientTape::new();
        outer.watch(&x);
        let (y, inside) = no_grad(|| -> Result<_> {
            let tape = GradientTape::new();
            tape.watch(&x);
            let y = (&x * &x)?;
            Ok((y.clone(), scalar(&tape.gradient(&y, &[&x])?[0])))
        })?;
        assert_eq!(inside, 4.0);
        let z = (&x * &y)?;
        assert_eq!(scalar(&outer.gradient(&z, &[&x])?[0]), 4.0);
        Ok(())
    }

    #[test]
    fn a_million_ops_differentiate_and_drop_on_a_small_stack() {
        let run = || -> Result<()> {
            let (x, c) = (Tensor::from([0.0f32, 1.0]), Tensor::from([1e-6f32, 0.0]));
            let tape = GradientTape::new();
            tape.watch(&x);
            let mut y = x.clone();
            for _ in 0..1_000_000 {
                y = (y + &c)?;
            }
            let g = tape.gradient(&y.sum()?, &[&x])?;
            assert_eq!(g[0].as_ref().unwrap().dense()?.to_vec::<f32>()?, [1.0, 1.0]);
            let tape = GradientTape::new();
            tape.watch(&x);
            let mut y = x.clone();
            for _ in 0..1_000_000 {
                y = (&y * &c)?;
            }
            drop(tape);
            Ok(())
        };
        std::thread::Builder::new()
            .stack_size(256 << 10)
            .spawn(move || run().unwrap())
            .unwrap()
            .join()
            .unwrap();
    }
}
