//! Arithmetic, element by element.

use couplet::Tensor;

use super::{Op, one};
use crate::case::dtype;

pub const OPS: &[(&str, Op)] = &[
    ("add", |x, _| one(&x[0] + &x[1])),
    ("bias_add", |x, _| one(&x[0] + &x[1])),
    ("subtract", |x, _| one(&x[0] - &x[1])),
    ("multiply", |x, _| one(&x[0] * &x[1])),
    ("divide", |x, _| one(&x[0] / &x[1])),
    ("negative", |x, _| one(-&x[0])),
    ("add_n", |x, _| one(x[1..].iter().try_fold(x[0].clone(), |sum, x| sum + x))),
    ("identity", |x, _| one(Ok(x[0].clone()))),
    ("stop_gradient", |x, _| one(Ok(Tensor::stop_gradient(&x[0])))),
    ("cast", |x, args| one(x[0].cast(dtype(&args.need::<String>("dtype")?)?))),
];
