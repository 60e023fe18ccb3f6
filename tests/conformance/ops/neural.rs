//! Softmax, cross-entropy, pooling, normalisation and norms.

use couplet::{Pool, Tensor, losses};

use super::convolution::PaddingSpec;
use super::{Op, one};
use crate::args::{Args, OneOrMany};
use crate::{Outcome, Outputs};

pub const OPS: &[(&str, Op)] = &[
    ("softmax", |x, args| one(x[0].softmax(args.or("axis", -1)?))),
    ("log_softmax", |x, args| one(x[0].log_softmax(args.or("axis", -1)?))),
    // The reference takes the labels first.
    ("sparse_softmax_cross_entropy", |x, _| one(losses::sparse_softmax_cross_entropy(&x[1], &x[0]))),
    ("softmax_cross_entropy", |x, _| one(losses::softmax_cross_entropy(&x[1], &x[0]))),
    ("sigmoid_cross_entropy", |x, _| one(losses::sigmoid_cross_entropy(&x[1], &x[0]))),
    ("max_pool1d", |x, args| one(x[0].max_pool(&pool(args)?))),
    ("max_pool2d", |x, args| one(x[0].max_pool(&pool(args)?))),
    ("max_pool3d", |x, args| one(x[0].max_pool(&pool(args)?))),
    ("avg_pool1d", |x, args| one(x[0].average_pool(&pool(args)?))),
    ("avg_pool2d", |x, args| one(x[0].average_pool(&pool(args)?))),
    ("avg_pool3d", |x, args| one(x[0].average_pool(&pool(args)?))),
    ("batch_normalization", |x, args| {
        let epsilon = args.need("variance_epsilon")?;
        one(x[0].batch_normalization(&x[1], &x[2], Some(&x[4]), Some(&x[3]), epsilon))
    }),
    ("fused_batch_norm", fused_batch_norm),
    ("moments", |x, args| {
        let axes: Vec<isize> = args.need("axes")?;
        let (mean, variance) = x[0].moments(axes, args.or("keepdims", false)?)?;
        Ok(vec![("mean".into(), mean), ("variance".into(), variance)])
    }),
    ("l2_normalize", |x, args| {
        let axes = args.get::<OneOrMany<isize>>("axis")?.map(OneOrMany::list);
        let axes = axes.unwrap_or_else(|| (0..x[0].rank() as isize).collect());
        one(x[0].l2_normalize(axes, args.or("epsilon", 1e-12)?))
    }),
    ("l2_loss", |x, _| one(x[0].l2_loss())),
    ("bias_add", |x, _| one(x[0].bias_add(&x[1]))),
    ("clip_by_norm", |x, args| one(x[0].clip_by_norm(args.need("clip_norm")?))),
    ("embedding_lookup", |x, _| one(x[0].gather_rows(&x[1]))),
];

fn pool(args: &mut Args) -> Outcome<Pool> {
    let window = args.need::<OneOrMany<usize>>("ksize")?.list();
    let pool = Pool::new(window).stride(args.need::<OneOrMany<usize>>("strides")?.list());
    let pool = pool.padding(args.need::<PaddingSpec>("padding")?.padding()?);
    args.expect("data_format", "channels_last".to_owned())?;
    Ok(pool)
}

/// In training the reference gives the unbiased variance, and drops gradients through both statistics; in evaluation it
/// drops those of the statistics that it is given.
fn fused_batch_norm(x: &[Tensor], args: &mut Args) -> Outcome<Outputs> {
    let epsilon = args.need("epsilon")?;
    if !args.need("is_training")? {
        let (mean, variance) = (x[3].stop_gradient(), x[4].stop_gradient());
        return one(x[0].batch_normalization(&mean, &variance, Some(&x[1]), Some(&x[2]), epsilon));
    }
    let (y, mean, variance) = x[0].batch_norm(-1, &x[1], &x[2], epsilon)?;
    let count = (x[0].size() / mean.size()) as f64;
    let unbiased = (variance.stop_gradient() * (count / (count - 1.0).max(1.0)))?;
    Ok(vec![("y".into(), y), ("mean".into(), mean.stop_gradient()), ("variance".into(), unbiased)])
}
