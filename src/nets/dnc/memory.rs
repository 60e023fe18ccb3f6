//! Checks of memories and of what is applied to them.

use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Refuses a tensor whose shape is not the one given; `None` stands for any size.
pub(super) fn check<const N: usize>(
    op: &'static str,
    what: &'static str,
    x: &Tensor,
    dims: [(&str, Option<usize>); N],
) -> Result<()> {
    let fits = x.rank() == N
        && dims.iter().zip(x.shape().iter()).all(|((_, want), got)| want.is_none_or(|want| want == *got));
    if fits {
        return Ok(());
    }
    let dims = dims.map(|(name, size)| size.map_or_else(|| name.to_owned(), |size| format!("{name}={size}")));
    Err(Error::shape(op, what, x.shape(), format!("[{}]", dims.join(", "))))
}

/// The dims of a memory: batch, rows and width.
pub(super) fn dims(op: &'static str, memory: &Tensor) -> Result<(usize, usize, usize)> {
    check(op, "the memory", memory, [("batch", None), ("rows", None), ("width", None)])?;
    Ok((memory.shape()[0], memory.shape()[1], memory.shape()[2]))
}

/// The number of heads of an address into a memory.
pub(super) fn heads(
    op: &'static str,
    what: &'static str,
    address: &Tensor,
    batch: usize,
    rows: usize,
) -> Result<usize> {
    check(op, what, address, [("batch", Some(batch)), ("heads", None), ("rows", Some(rows))])?;
    Ok(address.shape()[1])
}
