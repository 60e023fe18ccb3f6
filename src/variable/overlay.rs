//! Values that variables have on one thread for the length of a call, in place of their own.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::Variable;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

thread_local! {
    /// How many overlays lie over each other on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The overlays, innermost last.
    static OVERLAYS: RefCell<Vec<Overlay>> = const { RefCell::new(Vec::new()) };
}

/// Values by identity of their variable, and what may happen under them.
pub(crate) struct Overlay {
    values: HashMap<u64, Laid>,
    may_create: bool,
}

struct Laid {
    variable: Variable,
    value: Tensor,
}

impl Overlay {
    /// Lays these values over those of their variables.
    pub(crate) fn new(values: impl IntoIterator<Item = (Variable, Tensor)>) -> Self {
        let laid = |(variable, value): (Variable, Tensor)| (variable.id(), Laid { variable, value });
        Overlay { values: values.into_iter().map(laid).collect(), may_create: true }
    }

    /// As it is, but the creation of variables is an error.
    pub(crate) fn without_creation(mut self) -> Self {
        self.may_create = false;
        self
    }

    /// Runs `f` on this thread. It reads the values laid over variables, and what it assigns goes there too: no variable
    /// itself changes. The overlay comes back with the values at the end.
    pub(crate) fn run<R>(self, f: impl FnOnce() -> R) -> (R, Overlay) {
        /// Takes away the overlays from this depth on, also after a panic.
        struct Leave(usize);
        impl Drop for Leave {
            fn drop(&mut self) {
                let _ = DEPTH.try_with(|depth| depth.set(self.0));
                let dead = OVERLAYS.try_with(|list| list.borrow_mut().split_off(self.0));
                drop(dead);
            }
        }
        let leave = Leave(DEPTH.replace(DEPTH.get() + 1));
        OVERLAYS.with_borrow_mut(|list| list.push(self));
        let result = f();
        let overlay = OVERLAYS.with_borrow_mut(Vec::pop);
        drop(leave);
        (result, overlay.expect("calls nest, so the last overlay is the one laid above"))
    }

    /// Runs `f` on this thread as if no overlay were there.
    pub(crate) fn aside<R>(f: impl FnOnce() -> R) -> R {
        /// Puts the overlays back, also after a panic.
        struct Return(usize, Vec<Overlay>);
        impl Drop for Return {
            fn drop(&mut self) {
                let _ = DEPTH.try_with(|depth| depth.set(self.0));
                let _ = OVERLAYS.try_with(|list| list.replace(std::mem::take(&mut self.1)));
            }
        }
        let _return = Return(DEPTH.replace(0), OVERLAYS.take());
        f()
    }

    /// The value over a variable, which is given up.
    pub(crate) fn take(&mut self, variable: &Variable) -> Option<Tensor> {
        self.values.remove(&variable.id()).map(|laid| laid.value)
    }

    /// Names of the variables whose values were not taken, and which somebody else still holds.
    pub(crate) fn left(&self) -> Vec<&str> {
        let held = self.values.values().filter(|laid| laid.variable.holders() > 1);
        let mut names: Vec<&str> = held.map(|laid| laid.variable.name()).collect();
        names.sort_unstable();
        names
    }
}

/// Whether there is an overlay on this thread.
#[inline]
pub(crate) fn is_on() -> bool {
    DEPTH.get() > 0
}

/// The value laid over a variable on this thread.
#[cold]
pub(crate) fn value(variable: &Variable) -> Option<Tensor> {
    let find = |list: &Vec<Overlay>| {
        let mut found = list.iter().rev().filter_map(|overlay| overlay.values.get(&variable.id()));
        found.next().map(|laid| laid.value.clone())
    };
    OVERLAYS.with_borrow(find)
}

/// Lays a value over a variable: where one lies already, else in the innermost overlay.
fn lay(variable: &Variable, value: Tensor) {
    let old = OVERLAYS.with_borrow_mut(|list| {
        let at = list.iter().rposition(|overlay| overlay.values.contains_key(&variable.id()));
        let overlay = match at {
            Some(at) => list.get_mut(at),
            None => list.last_mut(),
        };
        overlay?.values.insert(variable.id(), Laid { variable: variable.clone(), value })
    });
    drop(old); // outside the borrow: its memory may be the last of something
}

/// Changes values under the overlays: `f` gets those that lie over the variables, or else their own.
#[cold]
pub(crate) fn modify_all<const N: usize>(
    variables: [&Variable; N],
    f: impl FnOnce([&mut Tensor; N]) -> Result<()>,
) -> Result<()> {
    // Taken out rather than cloned, so that a buffer nobody else holds is written in place.
    let take = |variable: &Variable| {
        OVERLAYS.with_borrow_mut(|list| {
            let mut found =
                list.iter_mut().rev().filter_map(|overlay| overlay.values.get_mut(&variable.id()));
            found.next().map(|laid| std::mem::replace(&mut laid.value, variable.own()))
        })
    };
    let mut values = variables.map(|variable| take(variable).unwrap_or_else(|| variable.own()));
    let done = f(values.each_mut());
    for (variable, value) in variables.into_iter().zip(values) {
        lay(variable, if done.is_ok() { value.fresh() } else { value });
    }
    done
}

/// Replaces the value of a variable under the overlays.
#[cold]
pub(crate) fn assign(variable: &Variable, value: Tensor) {
    lay(variable, value);
}

/// Whether the innermost overlay says that all variables exist.
pub(crate) fn forbids_creation() -> bool {
    is_on() && OVERLAYS.with_borrow(|list| list.last().is_some_and(|last| !last.may_create))
}

/// Refuses a variable that is about to be made where that is not allowed.
pub(crate) fn check_creation(name: &str) -> Result<()> {
    if !forbids_creation() {
        return Ok(());
    }
    let cure = "give init an input that leads to every variable, and make no others in the function";
    Err(Error::usage("apply", format!("the function makes a new variable, {name}"), cure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    fn scalar(value: f32) -> Tensor {
        Tensor::from(value)
    }

    fn read(v: &Variable) -> f32 {
        v.value().item::<f32>().unwrap()
    }

    #[test]
    fn what_is_read_and_written_under_an_overlay_stays_in_it() {
        let v = Variable::from_tensor("v", scalar(1.0));
        let ((), mut overlay) = Overlay::new([(v.clone(), scalar(5.0))]).run(|| {
            assert_eq!(read(&v), 5.0);
            v.assign_add(&scalar(1.0)).unwrap();
            assert_eq!(read(&v), 6.0);
            v.assign(&scalar(7.0)).unwrap();
            assert!(v.assign(&Tensor::from(1.0f64)).is_err());
            let elsewhere = std::thread::scope(|s| s.spawn(|| read(&v)).join().unwrap());
            assert_eq!(elsewhere, 1.0);
        });
        assert_eq!(read(&v), 1.0);
        assert_eq!(overlay.take(&v).unwrap().item::<f32>().unwrap(), 7.0);
    }

    #[test]
    fn overlays_nest_and_inner_ones_write_through() {
        let (a, b) = (Variable::from_tensor("a", scalar(1.0)), Variable::from_tensor("b", scalar(2.0)));
        let ((), mut outer) = Overlay::new([(a.clone(), scalar(10.0))]).run(|| {
            let ((), mut inner) = Overlay::new([(b.clone(), scalar(20.0))]).run(|| {
                assert_eq!((read(&a), read(&b)), (10.0, 20.0));
                a.assign_add(&b.value()).unwrap();
            });
            assert_eq!((read(&a), read(&b)), (30.0, 2.0));
            assert!(inner.take(&a).is_none() && inner.take(&b).is_some());
        });
        assert_eq!(outer.take(&a).unwrap().item::<f32>().unwrap(), 30.0);
        assert_eq!((read(&a), read(&b)), (1.0, 2.0));
    }

    #[test]
    fn what_was_written_to_others_is_known_by_name() {
        let (kept, local) =
            (Variable::from_tensor("kept", scalar(1.0)), Variable::from_tensor("local", scalar(1.0)));
        let ((), overlay) = Overlay::new([]).run(|| {
            kept.assign(&scalar(2.0)).unwrap();
            local.assign(&scalar(2.0)).unwrap();
            drop(local);
        });
        assert_eq!(overlay.left(), ["kept"]);
        assert_eq!(read(&kept), 1.0);
    }

    #[test]
    fn overlays_set_aside_come_back_also_after_a_panic() {
        let v = Variable::from_tensor("v", scalar(1.0));
        let ((), mut overlay) = Overlay::new([(v.clone(), scalar(5.0))]).run(|| {
            Overlay::aside(|| v.assign_add(&scalar(1.0)).unwrap());
            assert_eq!(read(&v), 5.0);
            let panicking = || Overlay::aside(|| panic!("a panic of this test"));
            assert!(std::panic::catch_unwind(panicking).is_err());
            assert_eq!(read(&v), 5.0);
        });
        assert_eq!(overlay.take(&v).unwrap().item::<f32>().unwrap(), 5.0);
        assert_eq!(read(&v), 2.0);
    }

    #[test]
    fn a_tape_sees_what_is_read_under_an_overlay_as_the_variable() {
        let v = Variable::from_tensor("v", scalar(1.0));
        let laid = scalar(5.0);
        let outer = crate::GradientTape::new().watch_accessed_variables(false);
        outer.watch(&laid);
        let (gradient, _) = Overlay::new([(v.clone(), laid.clone())]).run(|| {
            let tape = crate::GradientTape::new();
            let y = (v.value() * v.value()).unwrap(); // read twice, and not counted twice
            tape.gradient(&y, &[&v]).unwrap().remove(0).unwrap().to_dense().unwrap()
        });
        assert_eq!(gradient.item::<f32>().unwrap(), 10.0); // 2 v
        let second = outer.gradient(&gradient, &[&laid]).unwrap().remove(0).unwrap();
        assert_eq!(second.to_dense().unwrap().item::<f32>().unwrap(), 2.0);
    }

    #[test]
    fn a_panic_takes_the_overlay_away() {
        let v = Variable::from_tensor("v", scalar(1.0));
        let panicked = std::panic::catch_unwind(|| {
            Overlay::new([(v.clone(), scalar(5.0))]).run(|| panic!("a panic of this test"));
        });
        assert!(panicked.is_err() && !is_on() && read(&v) == 1.0);
    }

    #[test]
    fn a_buffer_that_nobody_else_holds_is_written_in_place() {
        let v = Variable::from_tensor("v", scalar(1.0));
        let value = Tensor::zeros([4096], DType::F32).unwrap();
        let w = Variable::from_tensor("w", Tensor::ones([4096], DType::F32).unwrap());
        let at = value.array::<f32>().unwrap().as_ptr();
        let ((), mut overlay) = Overlay::new([(w.clone(), value)]).run(|| {
            Variable::modify_all([&v, &w], |[_, w]| {
                w.make_mut::<f32>()?[0] = 3.0;
                Ok(())
            })
            .unwrap();
        });
        assert_eq!(overlay.take(&w).unwrap().array::<f32>().unwrap().as_ptr(), at);
    }
}
