//! Runs that only ask for shapes: variables are not written to, generators do not move.

use std::cell::Cell;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// Everything happens.
    Real,
    /// Writes and draws are suspended; variables that are made start as they should.
    Dry,
    /// Writes and draws are suspended; variables that are made start at zero.
    Blank,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Real) };
}

/// Whether assignments on this thread are left out, and draws leave their generators where they are.
#[inline]
pub(crate) fn is_on() -> bool {
    MODE.with(Cell::get) != Mode::Real
}

/// Whether variables made on this thread start at zero.
pub(crate) fn is_blank() -> bool {
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

/// Runs `f` while assignments are checked but left out, and draws leave their generators where they are. Variables that
/// `f` makes start as they should.
pub(crate) fn dry<R>(f: impl FnOnce() -> R) -> R {
    run_in(Mode::Dry, f)
}

/// As [`dry`], and variables that `f` makes start at zero.
pub(crate) fn blank<R>(f: impl FnOnce() -> R) -> R {
    run_in(Mode::Blank, f)
}

/// Runs an initialiser, whose draws count even in a dry run.
pub(crate) fn initialising<R>(f: impl FnOnce() -> R) -> R {
    run_in(Mode::Real, f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;
    use crate::{DType, Tensor, Variable};

    #[test]
    fn a_dry_run_checks_assignments_but_leaves_them_out() {
        let v = Variable::from_tensor("v", Tensor::from([1.0f32]));
        dry(|| {
            v.assign(&Tensor::from([2.0f32])).unwrap();
            v.assign_add(&Tensor::from([2.0f32])).unwrap();
            assert!(v.assign(&Tensor::from([2.0f64])).is_err());
        });
        assert_eq!(v.value().item::<f32>().unwrap(), 1.0);
        assert!(std::panic::catch_unwind(|| blank(|| panic!("a panic of this test"))).is_err());
        v.assign(&Tensor::from([2.0f32])).unwrap();
        assert_eq!(v.value().item::<f32>().unwrap(), 2.0);
    }

    #[test]
    fn a_dry_run_leaves_generators_where_they_are() {
        let generator = Generator::seed(1);
        let draw = || generator.normal([3], 0.0, 1.0, DType::F32).unwrap().to_vec::<f32>().unwrap();
        let first = dry(draw);
        assert_eq!(dry(draw), first);
        assert_eq!(draw(), first);
        assert_ne!(draw(), first);
    }
}
