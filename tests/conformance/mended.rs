//! What we do better than the reference, on purpose.
//!
//! Only cases that the fixtures flag as a quirk, and refusals that our interface makes needless or impossible, stand here.
//! What we do instead is checked.

use couplet::nn::GroupNorm;
use couplet::{DType, Forward, Tensor};

use crate::check::{Check, Tolerance, compare};
use crate::errors::Row;
use crate::{Outcome, gradients, problem};

/// A refusal that we do not share.
pub struct Mended {
    modules: &'static [&'static str],
    fits: fn(&Row) -> bool,
    pub way: Way,
    pub why: &'static str,
}

/// What takes the place of the refusal.
pub enum Way {
    /// It cannot be written: the compiler refuses it.
    Inexpressible,
    /// It works; whether it gives what it should.
    Accepted(fn(&Row) -> Outcome<bool>),
}

const REFUSALS: &[Mended] = &[
    Mended {
        modules: &["Bias", "Conv1D", "Conv2D", "Conv3D", "Flatten", "Linear", "MLP", "Reshape", "Sequential"],
        fits: |row| {
            row.calls().is_ok_and(|calls| calls.iter().all(|call| call.call.contains_key("is_training")))
        },
        way: Way::Accepted(|row| {
            let call = &row.calls()?[0];
            let mut plain = call.clone();
            plain.call.remove("is_training");
            let subject = row.build()?.ok_or("there is no such module")?;
            same(&row.perform(&*subject, call)?, &row.perform(&*subject, &plain)?, 0.0)
        }),
        why: "all modules accept forward_t; where nothing depends on training it is forward",
    },
    Mended {
        modules: &["BatchNorm"],
        fits: |row| row.dtype.as_deref() == Some("float64"),
        way: Way::Accepted(|row| {
            let call = &row.calls()?[0];
            let mut single: Row = serde_json::from_value(serde_json::json!({ "module": "BatchNorm" }))?;
            single.ctor = row.ctor.clone();
            let run = |row: &Row| row.perform(&*row.build()?.ok_or("there is no BatchNorm")?, call);
            same(&run(row)?, &run(&single)?.cast(DType::F64)?, 1e-6)
        }),
        why: "f64 works for every rank and layout",
    },
    Mended {
        modules: &["BatchNorm"],
        fits: |row| {
            row.calls().is_ok_and(|calls| calls.iter().any(|call| call.tensors.values().any(|s| s.len() > 1)))
        },
        way: Way::Accepted(|row| {
            let call = &row.calls()?[0];
            let mut flat = call.clone();
            flat.tensors.values_mut().for_each(|shape| *shape = vec![shape.iter().product()]);
            let run = |call| row.perform(&*row.build()?.ok_or("there is no BatchNorm")?, call);
            same(&run(call)?, &run(&flat)?, 1e-6)
        }),
        why: "a scale of a call may have any shape that broadcasts, whatever the rank",
    },
    Mended {
        modules: &["LayerNorm"],
        fits: |row| row.ctor.get("axis").is_some_and(|axis| axis.is_string()),
        way: Way::Inexpressible,
        why: "an axis is a number, several, or a range",
    },
    Mended {
        modules: &["LayerNorm"],
        fits: |row| row.calls().is_ok_and(|calls| calls.len() == 2),
        way: Way::Accepted(|row| {
            let calls = row.calls()?;
            let (used, fresh) = (row.build()?, row.build()?);
            let (used, fresh) = (used.ok_or("no such module")?, fresh.ok_or("no such module")?);
            row.perform(&*used, &calls[0])?;
            same(&row.perform(&*used, &calls[1])?, &row.perform(&*fresh, &calls[1])?, 0.0)
        }),
        why: "axes are resolved for each input, so any rank that has them will do",
    },
    Mended {
        modules: &["Embed"],
        fits: |row| row.ctor.is_empty(),
        way: Way::Inexpressible,
        why: "the size, or a table, is what the constructor takes",
    },
    Mended {
        modules: &["Conv2DTranspose"],
        fits: |row| row.ctor.get("padding").is_some_and(|padding| padding.is_string()),
        way: Way::Inexpressible,
        why: "a padding is one of an enum, not a word",
    },
    Mended {
        modules: &["Conv1D"],
        fits: |row| row.ctor.get("padding").is_some_and(|padding| padding.is_string()),
        way: Way::Inexpressible,
        why: "a padding is one of an enum or a function, not a word",
    },
];

fn same(got: &Tensor, want: &Tensor, rtol: f64) -> Outcome<bool> {
    Ok(compare(got, want, Tolerance { rtol, atol: rtol }, 0.0, |_| false).is_ok())
}

/// The entry for a refusal, if there is one.
pub fn refusal(row: &Row) -> Option<&'static Mended> {
    REFUSALS.iter().find(|entry| {
        row.module.as_deref().is_some_and(|name| entry.modules.contains(&name)) && (entry.fits)(row)
    })
}

/// A computation that a case flags as a quirk: an operation, or a module without variables.
struct Computation {
    module: &'static str,
    /// What the reference computes.
    theirs: fn(&Tensor) -> couplet::Result<Tensor>,
    /// What we compute, written out.
    ours: fn(&Tensor) -> couplet::Result<Tensor>,
    /// Our operation.
    op: fn(&Tensor) -> couplet::Result<Tensor>,
    why: &'static str,
}

const COMPUTATIONS: &[Computation] = &[
    Computation {
        module: "gelu",
        theirs: |x| gelu(x, f64::from(std::f32::consts::FRAC_1_SQRT_2)),
        ours: |x| gelu(x, std::f64::consts::FRAC_1_SQRT_2),
        op: Tensor::gelu,
        why: "sqrt(1/2) is not rounded to f32 in f64",
    },
    Computation {
        module: "GroupNorm",
        // The axes are counted after the channels were split in two.
        theirs: |x| {
            let s = x.shape();
            let grouped = x.reshape([s[0], s[1], s[2], 2, s[3] / 2])?;
            grouped.layer_norm(vec![-3, -2, -1], None, None, 1e-5)?.reshape(s.clone())
        },
        ours: |x| GroupNorm::new(2).axis(1..).create_scale(false).create_offset(false).forward(x),
        op: |x| GroupNorm::new(2).axis([-3, -2, -1]).create_scale(false).create_offset(false).forward(x),
        why: "negative axes count those of the input",
    },
];

/// `x / 2 (1 + erf(x root))`, where `root` is the root of 1/2.
fn gelu(x: &Tensor, root: f64) -> couplet::Result<Tensor> {
    (x * 0.5)? * ((x * root)?.erf()? + 1.0)
}

/// Checks a computation with a quirk: the reference's formula gives the numbers of the case, and ours those of the right
/// one. Returns false if there is no entry for it.
pub fn computation(check: &Check<'_>) -> Outcome<bool> {
    let case = check.case;
    let Some(entry) = COMPUTATIONS.iter().find(|entry| case.quirk && entry.module == case.module) else {
        return Ok(false);
    };
    let inputs = case.inputs()?;
    let one = |x: &[Tensor], f: fn(&Tensor) -> couplet::Result<Tensor>| {
        let [x] = x else { return Err(problem("one input is expected")) };
        Ok(vec![("y".to_owned(), f(x)?)])
    };
    gradients::compare(check, &inputs, || Ok(Vec::new()), false, |x| one(x, entry.theirs))?;
    for (_, x) in &inputs {
        let right = same(&(entry.op)(x)?, &(entry.ours)(x)?, 1e-15)?;
        check.that(right, || format!("it is not true that {}", entry.why));
    }
    check.mended(entry.why.to_owned());
    Ok(true)
}
