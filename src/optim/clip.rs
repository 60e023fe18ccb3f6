//! Clipping of gradients.

use std::collections::HashMap;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{Gradient, IndexedSlices, row_numbers};
use crate::tensor::{Shape, Tensor};

/// The Euclidean norm of all gradients together: `sqrt(sum(g^2))`, a scalar.
///
/// Missing gradients count nothing, and there may be none at all. Sparse rows that come several times are added up first,
/// as they are where they will be applied. The sum is computed in f64; the result is f64 if a gradient is, else f32.
///
/// # Errors
/// A gradient is not of a float dtype, or the parts of a sparse one do not fit together.
pub fn global_norm(gradients: &[Option<Gradient>]) -> Result<Tensor> {
    norm("global_norm", gradients)?.cast(norm_dtype(gradients))
}

/// Scales all gradients down together, so that their [`global_norm`] is at most `clip_norm` (Pascanu et al. 2013, algorithm
/// 1): `g * clip_norm / max(norm, clip_norm)`. Gradients of a smaller norm come back as they are.
///
/// Gives the gradients, and the norm before. Both can be differentiated.
///
/// ```
/// use couplet::{Tensor, optim::clip_by_global_norm};
/// let gradients = [Some(Tensor::from([3.0f32]).into()), None, Some(Tensor::from([4.0f32]).into())];
/// let (clipped, norm) = clip_by_global_norm(&gradients, 1.0)?;
/// assert_eq!(norm.item::<f32>()?, 5.0);
/// assert_eq!(clipped[2].as_ref().unwrap().dense()?.to_vec::<f32>()?, [0.8]);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// # Errors
/// `clip_norm` is not above 0, the norm is not finite (the first gradient with such a number is named by its position),
/// or as for [`global_norm`]. The reference turns all gradients into NaN instead.
pub fn clip_by_global_norm(
    gradients: &[Option<Gradient>],
    clip_norm: f64,
) -> Result<(Vec<Option<Gradient>>, Tensor)> {
    const OP: &str = "clip_by_global_norm";
    if !(clip_norm > 0.0 && clip_norm.is_finite()) {
        return Err(Error::argument(OP, "clip_norm", clip_norm, "a finite number above 0"));
    }
    let norm = norm(OP, gradients)?;
    let size = norm.item::<f64>()?;
    if !size.is_finite() {
        let position = gradients.iter().flatten().zip(0..).find(|(g, _)| {
            let squares = values(g).sum_squares().and_then(|squares| squares.item::<f64>());
            !squares.is_ok_and(f64::is_finite)
        });
        let which =
            position.map_or_else(String::new, |(_, i)| format!(", at gradient {}", nth(gradients, i)));
        let got = format!("{size}{which}");
        return Err(Error::argument(OP, "the norm of the gradients", got, "a finite number"));
    }
    let told = norm.cast(norm_dtype(gradients))?;
    if size <= clip_norm {
        return Ok((gradients.to_vec(), told));
    }
    let scale = (clip_norm / norm)?;
    let clipped = map(gradients, |g| {
        let scale = scale.cast(g.dtype())?;
        with_values(g, |values| values * &scale)
    });
    Ok((clipped?, told))
}

/// Cuts each element to `low..=high`. Sparse rows that come several times are added up first.
///
/// # Errors
/// `low > high`, a bound is NaN, or a gradient is not of a float dtype.
pub fn clip_by_value(gradients: &[Option<Gradient>], low: f64, high: f64) -> Result<Vec<Option<Gradient>>> {
    map(gradients, |g| {
        let g = match g {
            Gradient::Dense(_) => g.clone(),
            Gradient::Sparse(slices) => Gradient::from(without_repeats("clip_by_value", slices)?),
        };
        with_values(&g, |values| values.clip_by_value(low, high))
    })
}

fn map(
    gradients: &[Option<Gradient>],
    f: impl Fn(&Gradient) -> Result<Gradient>,
) -> Result<Vec<Option<Gradient>>> {
    gradients.iter().map(|g| g.as_ref().map(&f).transpose()).collect()
}

/// The elements that are there: all of them, or the rows.
fn values(g: &Gradient) -> &Tensor {
    match g {
        Gradient::Dense(values) => values,
        Gradient::Sparse(slices) => &slices.values,
    }
}

/// The gradient with other elements in the same places.
fn with_values(g: &Gradient, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Gradient> {
    let values = f(values(g))?;
    Ok(match g {
        Gradient::Dense(_) => values.into(),
        Gradient::Sparse(slices) => IndexedSlices { values, ..(**slices).clone() }.into(),
    })
}

/// Position in the list of the gradient that is number `i` of those that are not missing.
fn nth(gradients: &[Option<Gradient>], i: usize) -> usize {
    gradients.iter().enumerate().filter(|(_, g)| g.is_some()).nth(i).map_or(i, |(position, _)| position)
}

fn norm_dtype(gradients: &[Option<Gradient>]) -> DType {
    if gradients.iter().flatten().any(|g| g.dtype() == DType::F64) { DType::F64 } else { DType::F32 }
}

/// The norm in f64.
fn norm(op: &'static str, gradients: &[Option<Gradient>]) -> Result<Tensor> {
    let mut total: Option<Tensor> = None;
    for g in gradients.iter().flatten() {
        if !g.dtype().is_float() {
            return Err(Error::dtype(op, "a gradient", g.dtype(), "a float dtype"));
        }
        let squares = match g {
            Gradient::Dense(values) => values.sum_squares()?,
            Gradient::Sparse(slices) => without_repeats(op, slices)?.values.sum_squares()?,
        };
        total = Some(match total {
            Some(total) => (total + squares)?,
            None => squares,
        });
    }
    match total {
        // The slope of the root is infinite at 0, where the norm is left out of the tape.
        Some(total) if total.item::<f64>()? != 0.0 => total.sqrt(),
        _ => Ok(Tensor::from(0.0f64)),
    }
}

/// The same gradient with each row once, in the order of first appearance.
fn without_repeats(op: &'static str, slices: &IndexedSlices) -> Result<IndexedSlices> {
    let rows = row_numbers(op, &slices.indices, slices.dims.first().copied().unwrap_or(0))?;
    let mut place = HashMap::with_capacity(rows.len());
    let mut unique = Vec::new();
    let mut into = Vec::with_capacity(rows.len());
    for row in rows {
        into.push(*place.entry(row).or_insert_with(|| {
            unique.push(row as i64);
            unique.len() as i64 - 1
        }));
    }
    if unique.len() == into.len() {
        return Ok(slices.clone());
    }
    let dims: Shape = std::iter::once(unique.len()).chain(slices.dims.iter().skip(1).copied()).collect();
    let compact = IndexedSlices { values: slices.values.clone(), indices: Tensor::from(into), dims };
    Ok(IndexedSlices {
        values: compact.to_dense()?,
        indices: Tensor::from(unique),
        dims: slices.dims.clone(),
    })
}
