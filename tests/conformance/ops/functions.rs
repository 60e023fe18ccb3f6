//! Functions of the reference beside its modules.

use couplet::Tensor;
use couplet::nets::dnc;
use couplet::nn;
use couplet::regularizers::{L1, L2, OffDiagonalOrthogonal, Regularizer};

use super::{Op, numbered, one};

pub const OPS: &[(&str, Op)] = &[
    ("dnc.additive_write", |x, _| one(dnc::additive_write(&x[0], &x[1], &x[2]))),
    ("dnc.batch_gather", |x, _| one(dnc::batch_gather(&x[0], &x[1]))),
    ("dnc.batch_invert_permutation", |x, _| one(dnc::batch_invert_permutation(&x[0]))),
    ("dnc.erase", |x, _| one(dnc::erase(&x[0], &x[1], &x[2]))),
    ("dnc.erase_and_write", |x, _| one(dnc::erase_and_write(&x[0], &x[1], &x[2], &x[3]))),
    ("dnc.erase_rows", |x, _| one(dnc::erase_rows(&x[0], &x[1], &x[2]))),
    ("dnc.read", |x, args| {
        // It changes nothing in the reference.
        args.or("squash_before_access", true)?;
        let squash_after = args.or("squash_after_access", false)?;
        one(dnc::read(&x[0], &x[1]).and_then(|y| if squash_after { y.tanh() } else { Ok(y) }))
    }),
    ("dnc.segment_dim", |x: &[Tensor], args| {
        let shapes: Vec<Vec<usize>> = args.need("shapes")?;
        let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        numbered(dnc::segment_dim(&x[0], args.need("dim")?, &shapes))
    }),
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
