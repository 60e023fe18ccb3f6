//! Shapes, parts and places of elements.

use couplet::{DType, PadMode, Slice, Tensor};
use serde::Deserialize;

use super::{Op, numbered, one};
use crate::args::{Args, OneOrMany};
use crate::case::dtype;
use crate::{Outcome, Outputs, problem};

pub const OPS: &[(&str, Op)] = &[
    ("broadcast_to", |x, args| one(x[0].broadcast_to(args.need::<Vec<usize>>("shape")?))),
    ("reshape", |x, args| one(x[0].reshape(inferred(&x[0], args.need("shape")?)?))),
    ("transpose", |x, args| {
        let reversed = (0..x[0].rank() as isize).rev().collect();
        one(x[0].transpose(&args.or::<Vec<isize>>("perm", reversed)?))
    }),
    ("expand_dims", |x, args| one(x[0].expand_dims(args.need("axis")?))),
    ("squeeze", squeeze),
    ("concat", |x, args| one(Tensor::concat(&x.iter().collect::<Vec<_>>(), args.need("axis")?))),
    ("stack", |x, args| one(Tensor::stack(&x.iter().collect::<Vec<_>>(), args.or("axis", 0)?))),
    ("unstack", |x, args| numbered(x[0].unstack(args.or("axis", 0)?))),
    ("split", split),
    ("slice", slice),
    ("strided_slice", strided_slice),
    ("reverse", |x, args| one(x[0].reverse(args.need::<OneOrMany<isize>>("axis")?.list()))),
    ("pad", pad),
    ("one_hot", one_hot),
    ("embedding_lookup", |x, _| one(x[0].gather_rows(&x[1]))),
    ("gather", |x, args| one(x[0].gather(&x[1], args.or("axis", 0)?))),
    ("gather_nd", |x, _| one(x[0].gather_nd(&x[1]))),
    ("scatter_nd", |x, args| one(x[1].scatter_nd(&x[0], args.need::<Vec<usize>>("shape")?))),
    ("tensor_scatter_nd_add", |x, _| one(x[0].tensor_scatter_add(&x[1], &x[2]))),
    ("tensor_scatter_nd_update", |x, _| one(x[0].tensor_scatter_update(&x[1], &x[2]))),
    ("unsorted_segment_sum", |x, args| one(x[0].segment_sum(&x[1], args.need("num")?))),
    ("where_indices", |x, _| one(x[0].where_indices())),
    ("repeat", |x, args| one(x[0].repeat(args.need("repeats")?, args.need("axis")?))),
    ("roll", roll),
    ("tile", |x, args| one(x[0].tile(&args.need::<Vec<usize>>("multiples")?))),
    ("sort", |x, args| {
        let descending = match args.or("direction", "ASCENDING".to_owned())?.as_str() {
            "ASCENDING" => false,
            "DESCENDING" => true,
            other => return Err(problem(format!("argument direction={other} is not understood"))),
        };
        one(x[0].sort(args.or("axis", -1)?, descending))
    }),
    ("top_k", |x, args| {
        args.expect("sorted", true)?;
        let (values, indices) = x[0].top_k(args.need("k")?)?;
        // The reference numbers in i32.
        Ok(vec![("values".into(), values), ("indices".into(), indices.cast(DType::I32)?)])
    }),
];

fn position(x: &Tensor, axis: isize) -> usize {
    axis.rem_euclid(x.rank() as isize) as usize
}

/// The shape with its one -1 replaced.
fn inferred(x: &Tensor, shape: Vec<isize>) -> Outcome<Vec<usize>> {
    let known: usize = shape.iter().filter(|&&dim| dim >= 0).map(|&dim| dim as usize).product();
    let rest = x.size().checked_div(known).unwrap_or(0);
    shape.into_iter().map(|dim| if dim == -1 { Ok(rest) } else { Ok(usize::try_from(dim)?) }).collect()
}

fn squeeze(x: &[Tensor], args: &mut Args) -> Outcome<Outputs> {
    let x = &x[0];
    let axes = match args.get::<OneOrMany<isize>>("axis")? {
        Some(axes) => axes.list().into_iter().map(|axis| position(x, axis)).collect(),
        None => (0..x.rank()).filter(|&axis| x.shape()[axis] == 1).collect::<Vec<_>>(),
    };
    let mut y = x.clone();
    for axis in (0..x.rank()).rev().filter(|axis| axes.contains(axis)) {
        y = y.squeeze(axis as isize)?;
    }
    one(Ok(y))
}

fn split(x: &[Tensor], args: &mut Args) -> Outcome<Outputs> {
    let axis = args.or("axis", 0)?;
    numbered(match args.need::<OneOrMany<usize>>("num_or_size_splits")? {
        OneOrMany::One(count) => x[0].chunk(count, axis),
        OneOrMany::Many(sizes) => x[0].split(&sizes, axis),
    })
}

fn slice(x: &[Tensor], args: &mut Args) -> Outcome<Outputs> {
    let (begin, size) = (args.need::<Vec<isize>>("begin")?, args.need::<Vec<isize>>("size")?);
    let range = |(start, size): (isize, isize)| match size {
        -1 => Slice::from(start..),
        size => Slice::from(start..start + size),
    };
    one(x[0].slice(&begin.into_iter().zip(size).map(range).collect::<Vec<_>>()))
}

/// One entry between the brackets of `x[...]`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Subscript {
    Index(isize),
    Range(Vec<Option<isize>>),
    Word(String),
}

fn strided_slice(x: &[Tensor], args: &mut Args) -> Outcome<Outputs> {
    let spec = args.need::<Vec<Subscript>>("spec")?;
    let named = spec.iter().filter(|entry| !matches!(entry, Subscript::Word(_))).count();
    let mut slices = Vec::new();
    let mut new_axes = Vec::new();
    for entry in spec {
        // Axes of the result so far; those of single indices are gone.
        let kept = slices.iter().filter(|slice| !matches!(slice, Slice::Index(_))).count() + new_axes.len();
        match entry {
            Subscript::Index(index) => slices.push(Slice::Index(index)),
            Subscript::Range(range) if range.len() <= 3 => {
                let bound = |i: usize| range.get(i).copied().flatten();
                slices.push(Slice::Range { start: bound(0), stop: bound(1), step: bound(2).unwrap_or(1) });
            }
            Subscript::Word(word) if word == "..." => {
                slices.extend(vec![Slice::step(1); x[0].rank() - named]);
            }
            Subscript::Word(word) if word == "new" => new_axes.push(kept),
            _ => return Err(problem("argument spec is not understood")),
        }
    }
    let mut y = x[0].slice(&slices)?;
    for axis in new_axes {
        y = y.expand_dims(axis as isize)?;
    }
    one(Ok(y))
}

fn pad(x: &[Tensor], args: &mut Args) -> Outcome<Outputs> {
    let paddings = args.need::<Vec<(usize, usize)>>("paddings")?;
    let mode = match args.or("mode", "CONSTANT".to_owned())?.as_str() {
        "CONSTANT" => PadMode::Constant(args.or("constant_values", 0.0)?),
        "REFLECT" => PadMode::Reflect,
        "SYMMETRIC" => PadMode::Symmetric,
        other => return Err(problem(format!("argument mode={other} is not understood"))),
    };
    one(x[0].pad(&paddings, mode))
}

fn one_hot(x: &[Tensor], args: &mut Args) -> Outcome<Outputs> {
    let dtype = args.get::<String>("dtype")?.map_or(Ok(DType::F32), |name| dtype(&name))?;
    let y = x[0].one_hot(args.need("depth")?, dtype)?;
    let (on, off) = (args.or("on_value", 1.0)?, args.or("off_value", 0.0)?);
    let y = if (on, off) == (1.0, 0.0) { y } else { ((y * (on - off))? + off)? };
    let (last, axis) = (y.rank() - 1, args.or("axis", -1)?);
    let axis = if axis < 0 { last } else { axis as usize };
    let mut order: Vec<isize> = (0..last as isize).collect();
    order.insert(axis, last as isize);
    one(y.transpose(&order))
}

fn roll(x: &[Tensor], args: &mut Args) -> Outcome<Outputs> {
    let (shifts, axes) =
        (args.need::<OneOrMany<isize>>("shift")?.list(), args.need::<OneOrMany<isize>>("axis")?.list());
    if shifts.len() != axes.len() {
        return Err(problem("shift and axis differ in length"));
    }
    one(shifts.into_iter().zip(axes).try_fold(x[0].clone(), |x, (shift, axis)| x.roll(shift, axis)))
}
