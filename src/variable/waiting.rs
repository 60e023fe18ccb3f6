//! A value that waits for the variable about to be made on this thread, put there by a restore.

use std::cell::RefCell;

use crate::tensor::Tensor;

thread_local! {
    /// One frame for each creation under way on this thread, innermost last.
    static FRAMES: RefCell<Vec<Option<Tensor>>> = const { RefCell::new(Vec::new()) };
}

struct Frame;

impl Frame {
    fn new(value: Option<Tensor>) -> Self {
        FRAMES.with_borrow_mut(|frames| frames.push(value));
        Frame
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let dropped = FRAMES.try_with(|frames| frames.borrow_mut().pop());
        drop(dropped);
    }
}

/// Runs `f` while `value` waits for the first variable that it makes. The second result is the value if none took it.
///
/// Calls nest: a variable made by an inner call never takes what waits for an outer one.
pub(crate) fn with<R>(value: Option<Tensor>, f: impl FnOnce() -> R) -> (R, Option<Tensor>) {
    let frame = Frame::new(value);
    let result = f();
    let left = take();
    drop(frame);
    (result, left)
}

/// Takes the value that waits, if there is one. A new variable uses it in place of its initialiser.
pub(crate) fn take() -> Option<Tensor> {
    FRAMES.with_borrow_mut(|frames| frames.last_mut().and_then(Option::take))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    fn scalar() -> Option<Tensor> {
        Some(Tensor::zeros([], DType::F32).unwrap())
    }

    #[test]
    fn the_first_to_ask_takes_the_value() {
        let ((first, second), left) = with(scalar(), || (take(), take()));
        assert!(first.is_some() && second.is_none() && left.is_none() && take().is_none());
    }

    #[test]
    fn an_inner_creation_does_not_take_what_waits_for_an_outer_one() {
        let ((inner, _), left) = with(scalar(), || with(None, take));
        assert!(inner.is_none() && left.is_some());
    }

    #[test]
    fn a_panic_leaves_no_frame_behind() {
        assert!(std::panic::catch_unwind(|| with(scalar(), || panic!("a panic of this test"))).is_err());
        assert!(take().is_none());
    }
}
