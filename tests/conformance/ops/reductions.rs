//! Reductions over axes.

use couplet::Tensor;

use super::{Op, one};
use crate::args::{Args, OneOrMany};
use crate::{Outcome, Outputs};

pub const OPS: &[(&str, Op)] = &[
    ("reduce_sum", |x, args| reduce(x, args, |x, axes, keep| x.sum_axes(axes, keep))),
    ("reduce_mean", |x, args| reduce(x, args, |x, axes, keep| x.mean_axes(axes, keep))),
    ("reduce_max", |x, args| reduce(x, args, |x, axes, keep| x.max_axes(axes, keep))),
    ("reduce_min", |x, args| reduce(x, args, |x, axes, keep| x.min_axes(axes, keep))),
    ("reduce_std", |x, args| reduce(x, args, |x, axes, keep| x.std_axes(axes, keep))),
    ("reduce_variance", |x, args| reduce(x, args, |x, axes, keep| x.var_axes(axes, keep))),
    ("moments", |x, args| {
        let (axes, keep) = (args.need::<OneOrMany<isize>>("axes")?.list(), args.or("keepdims", false)?);
        let (mean, variance) = x[0].moments(axes, keep)?;
        Ok(vec![("mean".into(), mean), ("variance".into(), variance)])
    }),
    ("argmax", |x, args| one(x[0].argmax(args.or("axis", 0)?))),
    ("argmin", |x, args| one(x[0].argmin(args.or("axis", 0)?))),
    ("l2_loss", |x, _| one(x[0].l2_loss())),
    ("l2_normalize", |x, args| {
        let axes = axes(&x[0], args)?;
        one(x[0].l2_normalize(axes, args.or("epsilon", 1e-12)?))
    }),
    ("clip_by_norm", |x, args| one(x[0].clip_by_norm(args.need("clip_norm")?))),
];

/// The argument `axis`: one, several, or by default all.
fn axes(x: &Tensor, args: &mut Args) -> Outcome<Vec<isize>> {
    let axes = args.get::<OneOrMany<isize>>("axis")?.map(OneOrMany::list);
    Ok(axes.unwrap_or_else(|| (0..x.rank() as isize).collect()))
}

fn reduce(
    x: &[Tensor],
    args: &mut Args,
    op: fn(&Tensor, &[isize], bool) -> couplet::Result<Tensor>,
) -> Outcome<Outputs> {
    let axes = axes(&x[0], args)?;
    one(op(&x[0], &axes, args.or("keepdims", false)?))
}
