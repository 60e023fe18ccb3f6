//! Reductions over axes.

use couplet::optim::{clip_by_global_norm, global_norm};
use couplet::{Gradient, Tensor};

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
    ("reduce_prod", |x, args| reduce(x, args, |x, axes, keep| x.prod_axes(axes, keep))),
    ("reduce_logsumexp", |x, args| reduce(x, args, |x, axes, keep| x.logsumexp_axes(axes, keep))),
    ("reduce_all", |x, args| reduce(x, args, |x, axes, keep| x.all_axes(axes, keep))),
    ("reduce_any", |x, args| reduce(x, args, |x, axes, keep| x.any_axes(axes, keep))),
    ("cumsum", |x, args| run_along(x, args, Tensor::cumsum)),
    ("cumprod", |x, args| run_along(x, args, Tensor::cumprod)),
    ("trace", |x, _| one(x[0].trace())),
    ("global_norm", |x, _| one(global_norm(&gradients(x)))),
    ("clip_by_global_norm", |x, args| {
        let (clipped, norm) = clip_by_global_norm(&gradients(x), args.need("clip_norm")?)?;
        let mut outputs = vec![("norm".to_owned(), norm)];
        for (i, clipped) in clipped.into_iter().flatten().enumerate() {
            outputs.push((format!("clipped/{i}"), clipped.to_dense()?));
        }
        Ok(outputs)
    }),
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

/// The argument `axis`, from which the result runs on.
fn run_along(
    x: &[Tensor],
    args: &mut Args,
    op: fn(&Tensor, isize, bool, bool) -> couplet::Result<Tensor>,
) -> Outcome<Outputs> {
    one(op(&x[0], args.or("axis", 0)?, args.or("exclusive", false)?, args.or("reverse", false)?))
}

fn gradients(x: &[Tensor]) -> Vec<Option<Gradient>> {
    x.iter().map(|x| Some(x.clone().into())).collect()
}
