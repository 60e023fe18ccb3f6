//! Counting of multiply-adds on one thread, for summaries.

use std::cell::Cell;

use super::op::{Input, Inputs, Op, Outputs};
use crate::error::Result;
use crate::tensor::Shape;

thread_local! {
    /// Multiply-adds so far, while the thread counts them.
    static COUNTED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Whether this thread counts.
#[inline]
pub(crate) fn is_counting() -> bool {
    COUNTED.with(Cell::get).is_some()
}

/// Multiply-adds counted so far.
pub(crate) fn counted() -> u64 {
    COUNTED.with(Cell::get).unwrap_or(0)
}

/// Runs `f` while the thread counts, from 0. What runs while a tape records is not counted.
pub(crate) fn counting<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(Option<u64>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = COUNTED.try_with(|counted| counted.set(self.0));
        }
    }
    let _restore = Restore(COUNTED.with(|counted| counted.replace(Some(0))));
    f()
}

/// Runs an op and counts it; ops that it applies itself are not counted again.
#[cold]
pub(crate) fn run(op: &dyn Op, inputs: &mut [Option<Input<'_>>]) -> Result<Outputs> {
    let given: Vec<Shape> = inputs.iter().flatten().map(|input| input.tensor().shape().clone()).collect();
    let before = COUNTED.with(Cell::take);
    let computed = op.forward(&mut Inputs::new(inputs));
    COUNTED.with(|counted| counted.set(before));
    let outputs = computed?.outputs;
    let made: Vec<Shape> = outputs.as_slice().iter().map(|y| y.shape().clone()).collect();
    let cost = op.multiply_adds(&given, &made);
    COUNTED.with(|counted| counted.set(before.map(|n| n.saturating_add(cost))));
    Ok(outputs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Tensor};

    #[test]
    fn products_are_counted_and_everything_else_is_free() {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32).unwrap();
        let (x, w) = (zeros(&[5, 2, 3]), zeros(&[3, 4]));
        let n = counting(|| {
            x.matmul(&w).unwrap(); // 5 * 2 rows, 4 columns, 3 products each
            x.affine(&w, zeros(&[4])).unwrap();
            w.transpose(&[1, 0]).unwrap().matmul(&w).unwrap(); // 4 * 4 * 3
            (&x + &x).unwrap();
            counted()
        });
        assert_eq!(n, 2 * 5 * 2 * 4 * 3 + 4 * 4 * 3);
        assert!(!is_counting());
    }
}
