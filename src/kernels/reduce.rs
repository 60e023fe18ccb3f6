//! Reductions over axes.

use super::layout::View;

pub(crate) fn sum<T: crate::ops::Number>(x: View<'_, T>, reduced: &[bool], y: &mut [T]) {
    y.fill(T::default());
    let shape = x.shape();
    let mut flat = vec![T::default(); x.len()];
    super::elementwise::copy(x, &mut flat);
    for (i, v) in flat.into_iter().enumerate() {
        let (mut rest, mut at, mut step) = (i, 0, 1);
        for axis in (0..shape.len()).rev() {
            let index = rest % shape[axis];
            rest /= shape[axis];
            if !reduced[axis] {
                at += index * step;
                step *= shape[axis];
            }
        }
        y[at] = y[at].plus(v);
    }
}
