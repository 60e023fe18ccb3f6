//! Reductions over axes.

use couplet::Tensor;

use super::{Op, one};
use crate::args::{Args, OneOrMany};
use crate::{Outcome, Outputs};

pub const OPS: &[(&str, Op)] = &[("reduce_sum", |x, args| reduce(x, args, |x, axes, keep| x.sum_axes(axes, keep)))];

/// The axes and whether they stay, by any of the names that the reference gives them.
fn reduce(
    x: &[Tensor],
    args: &mut Args,
    op: fn(&Tensor, &[isize], bool) -> couplet::Result<Tensor>,
) -> Outcome<Outputs> {
    let axes = args.get::<OneOrMany<isize>>("axis")?.map(OneOrMany::list);
    let axes = axes.unwrap_or_else(|| (0..x[0].rank() as isize).collect());
    one(op(&x[0], &axes, args.or("keepdims", false)?))
}
