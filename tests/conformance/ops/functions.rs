//! Functions of the reference beside its modules.

use couplet::Tensor;
use couplet::nn;
use couplet::regularizers::{L1, L2, OffDiagonalOrthogonal, Regularizer};

use super::{Op, one};

pub const OPS: &[(&str, Op)] = &[
    ("flatten", |x, args| one(nn::flatten(&x[0], args.or("preserve_dims", 1)?))),
    ("leaky_clip_by_value", |x, args| {
        let (low, high) = (args.need("clip_value_min")?, args.need("clip_value_max")?);
        one(nn::leaky_clip_by_value(&x[0], low, high))
    }),
    ("merge_leading_dims", |x, args| one(nn::merge_leading_dims(&x[0], args.need("num_dims")?))),
    ("regularizers.L1", |x, args| one(L1::new(args.need("scale")?).penalty(x))),
    ("regularizers.L2", |x, args| one(L2::new(args.need("scale")?).penalty(x))),
    ("regularizers.OffDiagonalOrthogonal", |x, args| {
        one(OffDiagonalOrthogonal::new(args.need("scale")?).penalty(x))
    }),
    ("reshape", |x, args| {
        let shape: Vec<isize> = args.need("output_shape")?;
        one(nn::reshape(&x[0], &shape, args.or("preserve_dims", 1)?))
    }),
    ("scale_gradient", |x, args| one(nn::scale_gradient(&x[0], args.need("scale")?))),
    ("split_leading_dim", |x: &[Tensor], args| {
        one(nn::split_leading_dim(&x[0], &x[1], args.need("num_dims")?))
    }),
];
