//! What a step is for every optimiser: all is checked first, then each parameter changes in one pass with its slots.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::kernels::update::{Kept, Real, add_rows, round, update, update_rows};
use crate::module::Module;
use crate::ops::{Gradient, IndexedSlices, for_float, row_numbers};
use crate::tensor::{Shape, Tensor, take};
use crate::variable::Variable;

use super::slots::Register;

const OP: &str = "apply";

/// An update rule, on plain numbers.
pub(super) trait Rule<const N: usize> {
    /// The function of an update and of a parameter with its slots, which gives their next values.
    fn rule<R: Real>(&self) -> impl Fn(R, [R; N]) -> [R; N] + Copy + Sync;
}

/// What becomes of sparse rows that come several times.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Repeats {
    /// They are added up, then applied.
    Sum,
    /// They are applied one after the other.
    Apply,
}

/// The checked updates of one step.
pub(super) struct Step<'a> {
    /// Parameters without an update.
    missing: Vec<&'a Variable>,
    /// Position of the parameter, and its update.
    work: Vec<(usize, Update)>,
}

enum Update {
    Dense(Tensor),
    Rows { rows: Vec<usize>, values: Tensor },
}

impl<'a> Step<'a> {
    /// Checks updates and parameters, and leaves out missing updates and frozen parameters.
    pub(super) fn new(
        updates: &[Option<Gradient>],
        parameters: &'a [Variable],
        repeats: Repeats,
    ) -> Result<Self> {
        if updates.len() != parameters.len() {
            let problem = format!("{} updates came for {} parameters", updates.len(), parameters.len());
            return Err(Error::usage(OP, problem, "pass one update, or None, for each parameter"));
        }
        if parameters.is_empty() {
            return Err(Error::usage(OP, "there are no parameters", "pass at least one"));
        }
        check_distinct(parameters)?;
        if updates.iter().all(Option::is_none) {
            let (first, rest) = (parameters[0].name(), parameters.len() - 1);
            let which = if rest == 0 { first.to_owned() } else { format!("{first} and {rest} others") };
            let problem = format!("no parameter has an update: {which}");
            return Err(Error::usage(
                OP,
                problem,
                "check that the loss depends on them, and that the tape saw it",
            ));
        }
        let (mut work, mut missing) = (Vec::with_capacity(parameters.len()), Vec::new());
        for (position, (update, parameter)) in updates.iter().zip(parameters).enumerate() {
            let Some(update) = update else {
                missing.push(parameter);
                continue;
            };
            check_fits(update, parameter)?;
            let rows = match update {
                Gradient::Dense(_) => None,
                Gradient::Sparse(slices) => Some(checked_rows(slices, parameter)?),
            };
            if parameter.is_frozen() {
                continue;
            }
            let update = match (update, rows) {
                (Gradient::Sparse(slices), Some(rows)) => {
                    let (rows, values) = match repeats {
                        Repeats::Sum => sum_repeats(rows, &slices.values)?,
                        Repeats::Apply => (rows, slices.values.to_contiguous()),
                    };
                    Update::Rows { rows, values }
                }
                (update, _) => Update::Dense(update.dense()?.to_contiguous()),
            };
            work.push((position, update));
        }
        Ok(Step { missing, work })
    }

    /// Tells through `log`, once for each name, which parameters have no update.
    pub(super) fn report_missing(&self, owners: &mut Register, optimizer: &dyn Module) {
        for name in owners.unreported(&self.missing) {
            let path = optimizer.scope().path();
            log::warn!("{path}: no update for {name}, which is left as it is (this is said once)");
        }
    }

    /// Applies a rule, which may differ from parameter to parameter. `with_slots` gives a parameter and its slots, by its
    /// position, as does `rule` the rule.
    pub(super) fn run<'v, const N: usize, R: Rule<N>>(
        self,
        with_slots: impl Fn(usize) -> [&'v Variable; N],
        rule: impl Fn(usize) -> R,
    ) -> Result<()> {
        for (position, update) in self.work {
            let rule = rule(position);
            Variable::modify_all(
                with_slots(position),
                |state| for_float!(OP, state[0].dtype(), T => change::<T, N>(state, &update, rule.rule::<<T as Kept>::Real>())),
            )?;
        }
        Ok(())
    }
}

/// Changes a parameter and its slots.
fn change<T: Kept, const N: usize>(
    state: [&mut Tensor; N],
    change: &Update,
    f: impl Fn(T::Real, [T::Real; N]) -> [T::Real; N] + Copy + Sync,
) -> Result<()> {
    let width: usize = state[0].shape().iter().skip(1).product();
    let mut slices = [const { None }; N];
    for (slice, tensor) in slices.iter_mut().zip(state) {
        *slice = Some(tensor.make_mut::<T>()?);
    }
    let slices = slices.map(|slice| slice.expect("every slice was set above"));
    match change {
        Update::Dense(g) => update(slices, elements::<T>(g)?, f),
        Update::Rows { rows, values } => update_rows(slices, width, rows, elements::<T>(values)?, f),
    }
    Ok(())
}

/// The elements of a contiguous tensor.
fn elements<T: Kept>(x: &Tensor) -> Result<&[T]> {
    Ok(x.as_slice::<T>()?.expect("updates were made contiguous"))
}

fn check_distinct(parameters: &[Variable]) -> Result<()> {
    let mut sorted: Vec<(u64, usize)> = parameters.iter().map(Variable::id).zip(0..).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        None => Ok(()),
        Some(pair) => {
            let problem = format!("parameter {} came twice", parameters[pair[0].1].name());
            Err(Error::usage(OP, problem, "pass each variable once, with the sum of its updates"))
        }
    }
}

fn check_fits(update: &Gradient, parameter: &Variable) -> Result<()> {
    if !parameter.dtype().is_float() {
        let what = format!("parameter {}", parameter.name());
        return Err(Error::dtype(OP, what, parameter.dtype(), "a float dtype"));
    }
    let what = || format!("the update of {}", parameter.name());
    if update.dtype() != parameter.dtype() {
        return Err(Error::dtype(
            OP,
            what(),
            update.dtype(),
            format!("{}, as the parameter", parameter.dtype()),
        ));
    }
    if update.shape() != parameter.shape() {
        return Err(Error::shape(
            OP,
            what(),
            update.shape(),
            format!("{}, as the parameter", parameter.shape()),
        ));
    }
    Ok(())
}

/// The row numbers of a sparse update.
fn checked_rows(slices: &IndexedSlices, parameter: &Variable) -> Result<Vec<usize>> {
    let IndexedSlices { values, indices, dims } = slices;
    let fits = dims.rank() > 0
        && indices.rank() == 1
        && values.rank() == dims.rank()
        && values.shape()[0] == indices.size()
        && values.shape()[1..] == dims[1..];
    if !fits {
        let expected = format!("one row of {dims} for each of the indices {}", indices.shape());
        let what = format!("values in the update of {}", parameter.name());
        return Err(Error::shape(OP, what, values.shape(), expected));
    }
    row_numbers(OP, indices, dims[0]).map_err(|e| match e {
        Error::Index { op, index, size, .. } => {
            Error::Index { op, what: format!("row in the update of {}", parameter.name()), index, size }
        }
        e => e,
    })
}

/// Each row once, in the order of first appearance, with the sum of its values.
fn sum_repeats(rows: Vec<usize>, values: &Tensor) -> Result<(Vec<usize>, Tensor)> {
    let values = values.to_contiguous();
    let mut place = HashMap::with_capacity(rows.len());
    let mut unique = Vec::with_capacity(rows.len());
    let into: Vec<usize> = rows
        .iter()
        .map(|&row| {
            *place.entry(row).or_insert_with(|| {
                unique.push(row);
                unique.len() - 1
            })
        })
        .collect();
    if unique.len() == rows.len() {
        return Ok((rows, values));
    }
    let shape: Shape = std::iter::once(unique.len()).chain(values.shape()[1..].iter().copied()).collect();
    let width = shape[1..].iter().product();
    let sums = for_float!(OP, values.dtype(), T => {
        let mut sums = vec![<T as Kept>::Real::default(); shape.size()];
        add_rows::<T>(elements::<T>(&values)?, width, &into, &mut sums);
        let mut y = take::<T>(sums.len());
        round(&sums, &mut y);
        Ok(Tensor::from_taken(y, shape))
    })?;
    Ok((unique, sums))
}
