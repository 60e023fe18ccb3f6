//! Working along one axis, whichever it is.

use crate::error::{Error, Result};
use crate::tensor::{Shape, Strides, Tensor};

/// A view with `axis` moved to the end; not recorded.
pub(crate) fn moved_last(x: &Tensor, axis: usize) -> Tensor {
    reordered(x, (0..x.rank()).filter(|&a| a != axis).chain([axis]))
}

/// The view with the last axis moved to `axis`; undoes [`moved_last`]. Not recorded.
pub(crate) fn moved_back(x: &Tensor, axis: usize) -> Tensor {
    let last = x.rank() - 1;
    reordered(x, (0..axis).chain([last]).chain(axis..last))
}

fn reordered(x: &Tensor, order: impl Iterator<Item = usize> + Clone) -> Tensor {
    let shape: Shape = order.clone().map(|a| x.shape()[a]).collect();
    let strides: Vec<isize> = order.map(|a| x.strides()[a]).collect();
    x.view_as(x.offset(), shape, Strides::new(&strides))
}

/// Refuses an axis that an input of another rank does not have.
pub(crate) fn check_axis(op: &'static str, x: &Tensor, axis: usize) -> Result<()> {
    if axis >= x.rank() {
        return Err(Error::shape(op, "x", x.shape(), format!("rank {} or more", axis + 1)));
    }
    Ok(())
}
