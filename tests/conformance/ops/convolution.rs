//! Convolutions.

use couplet::Tensor;
use couplet::ops::{ConvOptions, Padding};
use serde::Deserialize;

use super::{Op, one};
use crate::args::{Args, OneOrMany};
use crate::{Outcome, Outputs, problem};

pub const OPS: &[(&str, Op)] = &[
    ("conv", |x, args| {
        channels_last(&x[0], args, |x0, args| Ok(x0.convolve(&x[1], None, &options(args)?)?))
    }),
    ("conv2d_explicit", |x, args| one(x[0].convolve(&x[1], None, &options(args)?))),
    ("depthwise_conv2d", |x, args| {
        let strides = args.need::<Vec<usize>>("strides")?;
        let options = ConvOptions { stride: strides[1..3].to_vec(), ..options(args)? };
        one(x[0].depthwise_convolve(&x[1], &options))
    }),
    ("conv_transpose", |x, args| {
        let output = args.need::<Vec<usize>>("output_shape")?;
        one(x[0].convolve_transpose(&x[1], &output[1..output.len() - 1], &options(args)?))
    }),
];

/// Runs an operation that takes its channels last on whatever layout `data_format` names.
fn channels_last(
    x: &Tensor,
    args: &mut Args,
    op: impl FnOnce(&Tensor, &mut Args) -> Outcome<Tensor>,
) -> Outcome<Outputs> {
    if !channels_first(args)? {
        return one(Ok(op(x, args)?));
    }
    let rank = x.rank() as isize;
    let to_last: Vec<isize> = [0].into_iter().chain(2..rank).chain([1]).collect();
    let to_first: Vec<isize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    one(op(&x.transpose(&to_last)?, args)?.transpose(&to_first))
}

/// `"SAME"`, `"VALID"`, or zeros before and after each axis, batch and channels included.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum PaddingSpec {
    Name(String),
    Explicit(Vec<(usize, usize)>),
}

impl PaddingSpec {
    pub fn padding(self) -> Outcome<Padding> {
        match self {
            PaddingSpec::Name(name) if name == "SAME" => Ok(Padding::Same),
            PaddingSpec::Name(name) if name == "VALID" => Ok(Padding::Valid),
            PaddingSpec::Explicit(pads) if pads.len() > 2 => {
                Ok(Padding::Explicit(pads[1..pads.len() - 1].to_vec()))
            }
            _ => Err(problem("argument padding is not understood")),
        }
    }
}

fn options(args: &mut Args) -> Outcome<ConvOptions> {
    let mut list =
        |name| -> Outcome<Vec<usize>> { Ok(args.or::<OneOrMany<usize>>(name, OneOrMany::One(1))?.list()) };
    let (stride, rate) = (list("strides")?, list("dilations")?);
    let padding = args.or("padding", PaddingSpec::Name("SAME".into()))?.padding()?;
    Ok(ConvOptions { stride, rate, padding })
}

/// Whether the argument `data_format` puts the channels before the spatial axes, as `NCHW` does.
pub fn channels_first(args: &mut Args) -> Outcome<bool> {
    Ok(args.get::<String>("data_format")?.is_some_and(|format| format.starts_with("NC") && format.len() > 2))
}
