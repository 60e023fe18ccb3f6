//! Convolutions.

use couplet::ops::{ConvOptions, Padding};
use serde::Deserialize;

use super::{Op, one};
use crate::args::{Args, OneOrMany};
use crate::{Outcome, problem};

pub const OPS: &[(&str, Op)] = &[
    ("conv", |x, args| one(x[0].convolve(&x[1], None, &options(args)?))),
    ("conv2d_explicit", |x, args| one(x[0].convolve(&x[1], None, &options(args)?))),
    ("conv_transpose", |x, args| {
        let output = args.need::<Vec<usize>>("output_shape")?;
        let spatial = &output[1..output.len() - 1];
        one(x[0].convolve_transpose(&x[1], spatial, &options(args)?))
    }),
];

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
    args.expect("data_format", "channels_last".to_owned())?;
    Ok(ConvOptions { stride, rate, padding })
}
