//! Runs that only ask for shapes: variables are not written to.

use std::cell::Cell;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// Writes happen, initialisers run.
    Real,
    /// Writes are left out.
    Suspended,
    /// Writes are left out, and variables that are made start at zero without their initialiser.
    Blank,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Real) };
}

/// Whether assignments on this thread are left out.
#[inline]
pub(crate) fn writes_are_suspended() -> bool {
    MODE.with(Cell::get) != Mode::Real
}

/// Whether variables made on this thread start at zero.
pub(crate) fn initialisers_are_suspended() -> bool {
    MODE.with(Cell::get) == Mode::Blank
}

fn run_in<R>(mode: Mode, f: impl FnOnce() -> R) -> R {
    struct Restore(Mode);
    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = MODE.try_with(|mode| mode.set(self.0));
        }
    }
    let _restore = Restore(MODE.with(|current| current.replace(mode)));
    f()
}

/// Runs `f` while assignments to variables are checked but left out. Variables that `f` makes start as they should.
pub(crate) fn without_writes<R>(f: impl FnOnce() -> R) -> R {
    run_in(Mode::Suspended, f)
}

/// As [`without_writes`], and variables that `f` makes start at zero, so that nothing is drawn.
pub(crate) fn blank<R>(f: impl FnOnce() -> R) -> R {
    run_in(Mode::Blank, f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Tensor, Variable};

    #[test]
    fn a_dry_run_checks_assignments_but_leaves_them_out() {
        let v = Variable::from_tensor("v", Tensor::from([1.0f32]));
        without_writes(|| {
            v.assign(&Tensor::from([2.0f32])).unwrap();
            v.assign_add(&Tensor::from([2.0f32])).unwrap();
            assert!(v.assign(&Tensor::from([2.0f64])).is_err());
        });
        assert_eq!(v.value().item::<f32>().unwrap(), 1.0);
        assert!(std::panic::catch_unwind(|| blank(|| panic!("a panic of this test"))).is_err());
        v.assign(&Tensor::from([2.0f32])).unwrap();
        assert_eq!(v.value().item::<f32>().unwrap(), 2.0);
    }
}
