//! Functions of one tensor, and of several, element by element.

use couplet::Tensor;

use super::{Op, one};
use crate::case::dtype;

pub const OPS: &[(&str, Op)] = &[
    // Arithmetic.
    ("add", |x, _| one(&x[0] + &x[1])),
    ("add_n", |x, _| one(Tensor::add_n(&x.iter().collect::<Vec<_>>()))),
    ("atan2", |x, _| one(x[0].atan2(&x[1]))),
    ("bias_add", |x, _| one(x[0].bias_add(&x[1]))),
    ("divide", |x, _| one(&x[0] / &x[1])),
    ("floormod", |x, _| one(x[0].floormod(&x[1]))),
    ("maximum", |x, _| one(x[0].maximum(&x[1]))),
    ("minimum", |x, _| one(x[0].minimum(&x[1]))),
    ("multiply", |x, _| one(&x[0] * &x[1])),
    ("negative", |x, _| one(-&x[0])),
    ("pow", |x, _| one(x[0].pow(&x[1]))),
    ("reciprocal", |x, _| one(x[0].reciprocal())),
    ("sqrt", |x, _| one(x[0].sqrt())),
    ("square", |x, _| one(x[0].square())),
    ("rsqrt", |x, _| one(x[0].rsqrt())),
    ("squared_difference", |x, _| one(x[0].squared_difference(&x[1]))),
    ("subtract", |x, _| one(&x[0] - &x[1])),
    ("clip_by_value", |x, args| {
        one(x[0].clip_by_value(args.need("clip_value_min")?, args.need("clip_value_max")?))
    }),
    // Signs and steps.
    ("abs", |x, _| one(x[0].abs())),
    ("sign", |x, _| one(x[0].sign())),
    ("floor", |x, _| one(x[0].floor())),
    ("ceil", |x, _| one(x[0].ceil())),
    ("round", |x, _| one(x[0].round())),
    // Elementary functions.
    ("erf", |x, _| one(x[0].erf())),
    ("erfc", |x, _| one(x[0].erfc())),
    ("exp", |x, _| one(x[0].exp())),
    ("expm1", |x, _| one(x[0].expm1())),
    ("log", |x, _| one(x[0].log())),
    ("log1p", |x, _| one(x[0].log1p())),
    ("sin", |x, _| one(x[0].sin())),
    ("cos", |x, _| one(x[0].cos())),
    ("tanh", |x, _| one(x[0].tanh())),
    ("sigmoid", |x, _| one(x[0].sigmoid())),
    // Activations.
    ("elu", |x, _| one(x[0].elu())),
    ("gelu", |x, _| one(x[0].gelu())),
    ("gelu_tanh", |x, _| one(x[0].gelu_tanh())),
    ("leaky_relu", |x, args| one(x[0].leaky_relu(args.or("alpha", 0.2)?))),
    ("log_sigmoid", |x, _| one(x[0].log_sigmoid())),
    ("relu", |x, _| one(x[0].relu())),
    ("relu6", |x, _| one(x[0].relu6())),
    ("selu", |x, _| one(x[0].selu())),
    ("softplus", |x, _| one(x[0].softplus())),
    ("softsign", |x, _| one(x[0].softsign())),
    ("swish", |x, args| one(x[0].swish(args.or("beta", 1.0)?))),
    // Comparisons and choices.
    ("equal", |x, _| one(x[0].equal(&x[1]))),
    ("not_equal", |x, _| one(x[0].not_equal(&x[1]))),
    ("less", |x, _| one(x[0].less(&x[1]))),
    ("less_equal", |x, _| one(x[0].less_equal(&x[1]))),
    ("greater", |x, _| one(x[0].greater(&x[1]))),
    ("greater_equal", |x, _| one(x[0].greater_equal(&x[1]))),
    ("logical_and", |x, _| one(x[0].logical_and(&x[1]))),
    ("logical_not", |x, _| one(x[0].logical_not())),
    ("logical_or", |x, _| one(x[0].logical_or(&x[1]))),
    ("is_finite", |x, _| one(x[0].is_finite())),
    ("is_inf", |x, _| one(x[0].is_inf())),
    ("is_nan", |x, _| one(x[0].is_nan())),
    ("where", |x, _| one(x[0].where_else(&x[1], &x[2]))),
    // The same value.
    ("cast", |x, args| one(x[0].cast(dtype(&args.need::<String>("dtype")?)?))),
    ("identity", |x, _| one(Ok(x[0].clone()))),
    ("stop_gradient", |x, _| one(Ok(Tensor::stop_gradient(&x[0])))),
];
