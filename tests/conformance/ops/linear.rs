//! Products of matrices, and sums of products.

use couplet::Tensor;

use super::{Op, one};
use crate::args::{Args, OneOrMany};
use crate::{Outcome, Outputs, problem};

pub const OPS: &[(&str, Op)] = &[
    ("matmul", |x, args| {
        let a = if args.or("transpose_a", false)? { x[0].t()? } else { x[0].clone() };
        let b = if args.or("transpose_b", false)? { x[1].t()? } else { x[1].clone() };
        one(a.matmul(&b))
    }),
    ("einsum", |x, args| {
        one(Tensor::einsum(&args.need::<String>("equation")?, &x.iter().collect::<Vec<_>>()))
    }),
    ("tensordot", tensordot),
    ("diag_part", |x, _| one(x[0].diag_part())),
];

/// The argument `axes` names axes of both tensors, or says how many are at the end of one and the start of the other.
fn tensordot(x: &[Tensor], args: &mut Args) -> Outcome<Outputs> {
    let (of_first, of_second) = match args.need::<OneOrMany<OneOrMany<isize>>>("axes")? {
        OneOrMany::One(OneOrMany::One(count)) => {
            let rank = x[0].rank() as isize;
            ((rank - count..rank).collect(), (0..count).collect())
        }
        OneOrMany::Many(mut axes) if axes.len() == 2 => {
            let of_second = axes.remove(1).list();
            (axes.remove(0).list(), of_second)
        }
        _ => return Err(problem("argument axes is not understood")),
    };
    one(x[0].tensordot(&x[1], &of_first, &of_second))
}
