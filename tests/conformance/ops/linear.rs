//! Products of matrices.

use super::{Op, one};

pub const OPS: &[(&str, Op)] = &[("matmul", |x, args| {
    let a = if args.or("transpose_a", false)? { x[0].t()? } else { x[0].clone() };
    let b = if args.or("transpose_b", false)? { x[1].t()? } else { x[1].clone() };
    one(a.matmul(&b))
})];
