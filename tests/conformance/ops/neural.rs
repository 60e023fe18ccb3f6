//! Softmax, losses, pooling and normalisation.

use couplet::{Pool, Tensor, losses};

use super::convolution::{PaddingSpec, channels_first};
use super::{Op, one};
use crate::args::{Args, OneOrMany};
use crate::{Outcome, Outputs};

pub const OPS: &[(&str, Op)] = &[
    ("softmax", |x, args| one(x[0].softmax(args.or("axis", -1)?))),
    ("log_softmax", |x, args| one(x[0].log_softmax(args.or("axis", -1)?))),
    ("softmax_cross_entropy", |x, _| one(losses::softmax_cross_entropy(&x[1], &x[0]))),
    ("sparse_softmax_cross_entropy", |x, _| one(losses::sparse_softmax_cross_entropy(&x[1], &x[0]))),
    ("sigmoid_cross_entropy", |x, _| one(losses::sigmoid_cross_entropy(&x[1], &x[0]))),
    ("max_pool1d", |x, args| one(x[0].max_pool(&pool(args)?))),
    ("max_pool2d", |x, args| one(x[0].max_pool(&pool(args)?))),
    ("max_pool3d", |x, args| one(x[0].max_pool(&pool(args)?))),
    ("avg_pool1d", |x, args| one(x[0].average_pool(&pool(args)?))),
    ("avg_pool2d", |x, args| one(x[0].average_pool(&pool(args)?))),
    ("avg_pool3d", |x, args| one(x[0].average_pool(&pool(args)?))),
    ("batch_normalization", |x, args| {
        let epsilon = args.need("variance_epsilon")?;
        one(x[0].batch_normalization(&x[1], &x[2], x.get(4), x.get(3), epsilon))
    }),
    ("fused_batch_norm", fused_batch_norm),
];

fn pool(args: &mut Args) -> Outcome<Pool> {
    let window = args.need::<OneOrMany<usize>>("ksize")?.list();
    let stride = args.need::<OneOrMany<usize>>("strides")?.list();
    let padding = args.need::<PaddingSpec>("padding")?.padding()?;
    let pool = Pool::new(window).stride(stride).padding(padding);
    Ok(if channels_first(args)? { pool.channels_first() } else { pool })
}

/// Channels last. The statistics that it returns are not differentiated, and the variance is the unbiased one.
fn fused_batch_norm(x: &[Tensor], args: &mut Args) -> Outcome<Outputs> {
    let epsilon = args.or("epsilon", 1e-3)?;
    if !args.or("is_training", true)? {
        let y = x[0].batch_normalization(
            &x[3].stop_gradient(),
            &x[4].stop_gradient(),
            Some(&x[1]),
            Some(&x[2]),
            epsilon,
        );
        return one(y);
    }
    let (y, mean, variance) = x[0].batch_norm(-1, &x[1], &x[2], epsilon)?;
    let count = (x[0].size() / mean.size()) as f64;
    let unbiased = (variance * (count / (count - 1.0).max(1.0)))?;
    Ok(vec![
        ("mean".into(), mean.stop_gradient()),
        ("variance".into(), unbiased.stop_gradient()),
        ("y".into(), y),
    ])
}
