//! The walk back through the recorded list.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::ops::record::{self, Leaf, Recorder, Slot, UNTRACKED};
use crate::ops::{Gradient, IndexedSlices, Mask};
use crate::tensor::Tensor;

use super::hook::{BackwardStep, Observer};
use super::source::SourceKey;

/// A target and the gradient it starts with; `None` means ones.
pub type Seed<'a> = (&'a Tensor, Option<&'a Tensor>);

/// The part of the list that belongs to one tape.
pub(super) struct Range {
    pub(super) start: usize,
    pub(super) opened: u64,
    pub(super) tape: u64,
    pub(super) variables: bool,
}

pub(super) fn check_targets(targets: &[Seed<'_>]) -> Result<()> {
    for (target, seed) in targets {
        if !target.dtype().is_float() {
            let expected = "a float dtype: only those have derivatives";
            return Err(Error::dtype("gradient", "the target", target.dtype(), expected));
        }
        if let Some(seed) = seed {
            if seed.shape() != target.shape() {
                let expected = format!("that of the target: {}", target.shape());
                return Err(Error::shape("gradient", "the seed", seed.shape(), expected));
            }
            if seed.dtype() != target.dtype() {
                let expected = format!("that of the target: {}", target.dtype());
                return Err(Error::dtype("gradient", "the seed", seed.dtype(), expected));
            }
        }
    }
    Ok(())
}

/// A set of slots.
struct Marks(Vec<u64>);

impl Marks {
    fn new(slots: usize) -> Self {
        Marks(vec![0; slots.div_ceil(64)])
    }

    #[inline]
    fn has(&self, slot: Slot) -> bool {
        slot != UNTRACKED && self.0.get(slot as usize / 64).is_some_and(|w| w >> (slot % 64) & 1 == 1)
    }

    #[inline]
    fn set(&mut self, slot: Slot) {
        if let Some(word) = self.0.get_mut(slot as usize / 64) {
            *word |= 1 << (slot % 64);
        }
    }
}

/// Marks what depends, within the range, on leaves that become known at their record.
fn reach(r: &Recorder, range: &Range, mut leaves: Vec<Leaf>) -> Marks {
    leaves.sort_by_key(|leaf| leaf.since);
    let mut marks = Marks::new(r.values.len());
    let mut next = leaves.iter().peekable();
    for (at, record) in r.records.iter().enumerate().skip(range.start) {
        let Some(record) = record else { continue };
        if r.hidden.iter().any(|h| range.opened <= h.opened && (h.from..h.to).contains(&at)) {
            continue;
        }
        while let Some(leaf) = next.next_if(|leaf| leaf.since <= at) {
            marks.set(leaf.slot);
        }
        if record.inputs.as_slice().iter().any(|&slot| marks.has(slot)) {
            (record.output..record.output + record.outputs).for_each(|slot| marks.set(slot));
        }
    }
    next.for_each(|leaf| marks.set(leaf.slot));
    marks
}

/// Gradients of the values, each freed as soon as it was handed on.
struct Store {
    /// Position in `gradients` + 1 of each slot.
    at: Vec<u32>,
    gradients: Vec<Option<Gradient>>,
    free: Vec<u32>,
}

impl Store {
    fn new(slots: usize) -> Self {
        Store { at: vec![0; slots], gradients: Vec::new(), free: Vec::new() }
    }

    fn get(&self, slot: Slot) -> Option<&Gradient> {
        match self.at.get(slot as usize) {
            Some(&at) if at != 0 => self.gradients[at as usize - 1].as_ref(),
            _ => None,
        }
    }

    fn remove(&mut self, slot: Slot) -> Option<Gradient> {
        match self.at.get_mut(slot as usize) {
            Some(at) if *at != 0 => {
                let position = std::mem::take(at) - 1;
                self.free.push(position);
                self.gradients[position as usize].take()
            }
            _ => None,
        }
    }

    fn add(&mut self, slot: Slot, gradient: Gradient) -> Result<()> {
        let sum = match self.remove(slot) {
            None => gradient,
            Some(sum) => add(sum, gradient)?,
        };
        let position = self.free.pop().unwrap_or_else(|| {
            self.gradients.push(None);
            self.gradients.len() as u32 - 1
        });
        self.gradients[position as usize] = Some(sum);
        self.at[slot as usize] = position + 1;
        Ok(())
    }
}

/// What the first pass over the list found.
struct Plan {
    needed: Marks,
    /// Slots of the sources, whose gradients stay in the store.
    kept: Marks,
    /// Slots of each source.
    sources: Vec<Vec<Slot>>,
    targets: Vec<Slot>,
    slots: usize,
    end: usize,
}

fn plan(r: &Recorder, range: &Range, targets: &[Seed<'_>], keys: &[SourceKey<'_>]) -> Plan {
    // Leaves that this tape watches.
    let own = |leaf: &&Leaf| leaf.tape == range.tape || (leaf.tape == 0 && range.variables);
    let in_range = |leaf: &&Leaf| leaf.since >= range.start;
    let watched: Vec<Leaf> = r.leaves.iter().filter(own).filter(in_range).copied().collect();
    let mut readings: HashMap<u64, Vec<Leaf>> = HashMap::new();
    for leaf in watched.iter().filter(|leaf| leaf.variable != 0) {
        readings.entry(leaf.variable).or_default().push(*leaf);
    }
    let tracked = reach(r, range, watched);
    let mut wanted = Vec::new();
    let mut sources: Vec<Vec<Slot>> = Vec::new();
    for key in keys {
        let found: Vec<Leaf> = match key {
            SourceKey::Variable(v) => readings.get(&v.id()).cloned().unwrap_or_default(),
            SourceKey::Tensor(x) => {
                let slot = r.slot(x.id());
                let leaf = Leaf { slot, since: range.start, variable: 0, tape: range.tape };
                if tracked.has(slot) { vec![leaf] } else { Vec::new() }
            }
        };
        // A value that was given to a variable for a while is the same tensor each time it is read.
        let mut slots: Vec<Slot> = found.iter().map(|leaf| leaf.slot).collect();
        slots.sort_unstable();
        slots.dedup();
        sources.push(slots);
        wanted.extend(found);
    }
    let needed = reach(r, range, wanted);
    let targets = targets.iter().map(|(t, _)| r.slot(t.id())).collect();
    let mut kept = Marks::new(r.values.len());
    sources.iter().flatten().for_each(|&slot| kept.set(slot));
    Plan { needed, kept, sources, targets, slots: r.values.len(), end: r.records.len() }
}

pub(super) fn run(
    range: &Range,
    targets: &[Seed<'_>],
    keys: &[SourceKey<'_>],
    consume: bool,
    observer: Option<&Observer>,
) -> Result<Vec<Option<Gradient>>> {
    let Some(plan) = record::with_recorder(|r| plan(r, range, targets, keys)) else {
        return Ok(keys.iter().map(|_| None).collect());
    };
    let mut store = Store::new(plan.slots);
    for ((target, seed), &slot) in targets.iter().zip(&plan.targets) {
        if plan.needed.has(slot) {
            let seed = match seed {
                Some(seed) => (*seed).clone(),
                None => Tensor::ones(target.shape().clone(), target.dtype())?,
            };
            store.add(slot, Gradient::Dense(seed))?;
        }
    }
    // With one tape on the thread its records are consumed, which frees what they saved on the way back.
    let consume = consume && record::with_recorder(|r| r.sole()).unwrap_or(false);
    if consume {
        let own = record::with_recorder(|r| r.records.split_off(range.start)).unwrap_or_default();
        for record in own.into_iter().rev().flatten() {
            step(&record, &plan, &mut store, observer)?;
        }
    } else {
        for at in (range.start..plan.end).rev() {
            // The record is moved out while its gradient runs: that may record more, or run the user's own code.
            let taken = record::with_recorder(|r| r.records.get_mut(at).and_then(Option::take)).flatten();
            let Some(taken) = taken else { continue };
            let result = step(&taken, &plan, &mut store, observer);
            record::with_recorder(|r| {
                if let Some(slot) = r.records.get_mut(at) {
                    *slot = Some(taken);
                }
            });
            result?;
        }
    }
    let mut gradients = Vec::with_capacity(keys.len());
    for (key, slots) in keys.iter().zip(&plan.sources) {
        let mut sum: Option<Gradient> = None;
        for slot in slots {
            if let Some(part) = store.get(*slot) {
                sum = Some(match sum {
                    None => part.clone(),
                    Some(sum) => add(sum, part.clone())?,
                });
            }
        }
        debug_assert!(sum.as_ref().is_none_or(|g| *g.shape() == key.shape()));
        gradients.push(sum);
    }
    Ok(gradients)
}

/// Hands the gradients of one record's outputs on to its inputs.
fn step(record: &record::Record, plan: &Plan, store: &mut Store, observer: Option<&Observer>) -> Result<()> {
    let (needed, kept) = (&plan.needed, &plan.kept);
    let mut needs = Mask::NONE;
    for (i, &slot) in record.inputs.as_slice().iter().enumerate() {
        if needed.has(slot) {
            needs = needs.and(if i < 64 { Mask::only(i) } else { Mask::ALL });
        }
    }
    let outputs = record.output..record.output + record.outputs;
    if needs.is_empty() {
        outputs.filter(|slot| !kept.has(*slot)).for_each(|slot| {
            store.remove(slot);
        });
        return Ok(());
    }
    let mut gradient_of = |slot: Slot| {
        let gradient = if kept.has(slot) { store.get(slot).cloned() } else { store.remove(slot) };
        gradient.map(|g| g.to_dense()).transpose()
    };
    let (one, many);
    let dy: &[Option<Tensor>] = if record.outputs == 1 {
        one = [gradient_of(record.output)?];
        &one
    } else {
        many = outputs.map(gradient_of).collect::<Result<Vec<_>>>()?;
        &many
    };
    if dy.iter().all(Option::is_none) {
        return Ok(());
    }
    let inputs = record.inputs.as_slice();
    let name = record.op.name();
    record.op.each_gradient(&record.saved, dy, needs, inputs.len(), &mut |i, gradient| match inputs.get(i) {
        Some(&slot) if needs.has(i) && needed.has(slot) => {
            let gradient = fit(name, gradient, slot)?;
            if let Some(observer) = observer {
                observer.see(&BackwardStep { op: name, input: i, gradient: &gradient })?;
            }
            store.add(slot, gradient)
        }
        _ => Ok(()),
    })
}

/// Sums a gradient over the axes along which its input was broadcast.
fn fit(op: &'static str, gradient: Gradient, slot: Slot) -> Result<Gradient> {
    let other = record::with_recorder(|r| {
        let value = r.values.get(slot as usize)?;
        (value.shape != *gradient.shape()).then(|| value.shape.clone())
    });
    let Some(shape) = other.flatten() else { return Ok(gradient) };
    match gradient {
        Gradient::Dense(t) => t.sum_to(shape).map(Gradient::Dense),
        Gradient::Sparse(s) => {
            Err(Error::shape(op, "the sparse gradient", &s.dims, format!("that of the input: {shape}")))
        }
    }
}

/// The sum of two gradients of one value; two sparse ones stay sparse.
fn add(a: Gradient, b: Gradient) -> Result<Gradient> {
    match (a, b) {
        (Gradient::Sparse(a), Gradient::Sparse(b)) => {
            let values = Tensor::concat(&[&a.values, &b.values], 0)?;
            let indices = Tensor::concat(&[&a.indices, &b.indices], 0)?;
            Ok(IndexedSlices { values, indices, dims: a.dims }.into())
        }
        (Gradient::Dense(a), Gradient::Dense(b)) => (a + b).map(Gradient::Dense),
        (a, b) => (a.to_dense()? + b.to_dense()?).map(Gradient::Dense),
    }
}
