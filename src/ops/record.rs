//! The flat list of what a thread computes while a tape records.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::error::Result;
use crate::tensor::{Shape, Tensor, ValueId, thread_tag};

use super::cost;
use super::op::{Computed, Input, Inputs, Mask, Op, Outputs, Saved, Saves};
use super::trace::{Operand, Trace};

/// Position of a tracked value in the list of values.
pub(crate) type Slot = u32;

/// A value that is not tracked.
pub(crate) const UNTRACKED: Slot = u32::MAX;

/// Inputs of a record: slots, inline for the common op.
#[derive(Debug)]
pub(crate) enum Slots {
    Few(u8, [Slot; 3]),
    Many(Box<[Slot]>),
}

impl Slots {
    pub(crate) fn as_slice(&self) -> &[Slot] {
        match self {
            Slots::Few(n, slots) => &slots[..usize::from(*n)],
            Slots::Many(slots) => slots,
        }
    }
}

/// One application of an op.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) op: Box<dyn Op>,
    pub(crate) inputs: Slots,
    /// Slot of the first output; the others follow.
    pub(crate) output: Slot,
    pub(crate) outputs: u32,
    pub(crate) saved: Saved,
}

/// A tracked value.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) shape: Shape,
}

/// A value that something asked to be tracked: a watched tensor, or one reading of a variable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf {
    pub(crate) slot: Slot,
    /// How many records there were when it appeared.
    pub(crate) since: usize,
    /// The variable that was read, 0 for a tensor.
    pub(crate) variable: u64,
    /// The tape that asked for it, 0 for all that watch the variables that are read.
    pub(crate) tape: u64,
}

/// Mixes the two numbers of an identity; they come from counters, so nobody can choose them to collide.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(23) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// A range of records that the tapes opened up to number `opened` do not see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hidden {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) opened: u64,
}

/// Everything this thread has recorded since its outermost tape began.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// `None` while a backward pass works on the record, or after one consumed it.
    pub(crate) records: Vec<Option<Record>>,
    pub(crate) values: Vec<Value>,
    pub(crate) leaves: Vec<Leaf>,
    /// First value number of the session, and slot + 1 of each value since.
    base: u64,
    slots: Vec<Slot>,
    /// Slots of watched tensors that are older than the session.
    older: HashMap<ValueId, Slot, BuildHasherDefault<IdHasher>>,
    /// Variables that a tape asked for by name although they are not trainable.
    pub(crate) watched_variables: Vec<(u64, u64)>,
    /// Ranges recorded for a tape that began and ended while the older ones were suspended.
    pub(crate) hidden: Vec<Hidden>,
    /// Tapes that still hold a range of the list, and those of them that watch the variables that are read.
    tapes: usize,
    accessed: i32,
    /// Tapes opened in this session.
    opened: u64,
    /// Functions that are being run for their ops alone, the innermost last.
    pub(crate) traces: Vec<Trace>,
    /// How often recording was suspended and has not been resumed.
    pub(crate) pauses: u32,
}

thread_local! {
    static RECORDER: RefCell<Recorder> = RefCell::default();
    /// Tapes that record at this moment; `apply` pays nothing unless it is positive.
    static RECORDING: Cell<i32> = const { Cell::new(0) };
}

/// Whether a tape records on this thread at this moment.
#[inline]
pub(crate) fn is_recording() -> bool {
    RECORDING.with(Cell::get) > 0
}

/// Runs `f` with the recorder, or returns `None` while the thread is being torn down.
pub(crate) fn with_recorder<R>(f: impl FnOnce(&mut Recorder) -> R) -> Option<R> {
    RECORDER.try_with(|r| r.try_borrow_mut().ok().map(|mut r| f(&mut r))).ok().flatten()
}

/// Adds to (or takes from) the number of tapes that record.
pub(crate) fn change_recording(by: i32) {
    let _ = RECORDING.try_with(|n| n.set(n.get() + by));
}

/// Number of tapes that record.
pub(crate) fn recording() -> i32 {
    RECORDING.with(Cell::get)
}

/// Suspends the tapes that record at this moment until it is dropped; a tape that begins meanwhile does record.
#[derive(Debug)]
pub(crate) struct Pause {
    suspended: i32,
    since: (usize, u64),
}

impl Pause {
    pub(crate) fn new() -> Self {
        let suspended = RECORDING.with(|n| n.replace(0));
        let begin = |r: &mut Recorder| {
            r.pauses += 1;
            (r.records.len(), r.opened)
        };
        let since = if suspended > 0 { with_recorder(begin) } else { None };
        let since = since.unwrap_or((0, 0));
        Pause { suspended, since }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        let _ = RECORDING.try_with(|n| n.set(n.get() + self.suspended));
        if self.suspended > 0 {
            with_recorder(|r| {
                let (from, opened) = self.since;
                r.pauses = r.pauses.saturating_sub(1);
                if r.records.len() > from {
                    r.hidden.push(Hidden { from, to: r.records.len(), opened });
                }
            });
        }
    }
}

/// Runs `f`, and forgets what it records if only tapes that begin inside it record.
pub(crate) fn transient<R>(f: impl FnOnce() -> R) -> R {
    if is_recording() {
        return f();
    }
    let from = with_recorder(|r| (r.records.len(), r.tapes));
    let result = f();
    let dead = with_recorder(|r| match from {
        Some((from, tapes)) if tapes == r.tapes && from <= r.records.len() => {
            r.hidden.retain(|hidden| hidden.from < from);
            r.records.split_off(from)
        }
        _ => Vec::new(),
    });
    drop(dead);
    result
}

impl Recorder {
    /// A tape begins: a session starts with the first. Gives where its range starts and its number.
    pub(crate) fn open(&mut self) -> (usize, u64) {
        if self.tapes == 0 {
            self.base = ValueId::next_index();
        }
        self.tapes += 1;
        self.opened += 1;
        (self.records.len(), self.opened)
    }

    /// A tape ends. Returns what to drop once no borrow is held: saved tensors and ops may run user code.
    #[must_use]
    pub(crate) fn close(&mut self) -> Option<Recorder> {
        self.tapes = self.tapes.saturating_sub(1);
        (self.tapes == 0).then(|| Recorder { accessed: 0, ..std::mem::take(self) })
    }

    /// Number of tapes that hold a range of the list.
    pub(crate) fn tapes(&self) -> usize {
        self.tapes
    }

    /// Number of the newest tape.
    pub(crate) fn opened(&self) -> u64 {
        self.opened
    }

    /// Whether one tape alone holds the list, so that it may be consumed.
    pub(crate) fn sole(&self) -> bool {
        self.tapes == 1
    }

    /// Slot of a value, or [`UNTRACKED`].
    #[inline]
    pub(crate) fn slot(&self, id: ValueId) -> Slot {
        if id.index >= self.base && id.thread == thread_tag() {
            let at = (id.index - self.base) as usize;
            match self.slots.get(at) {
                Some(&slot) if slot != 0 => return slot - 1,
                _ => return UNTRACKED,
            }
        }
        if self.older.is_empty() { UNTRACKED } else { self.older.get(&id).copied().unwrap_or(UNTRACKED) }
    }

    fn track(&mut self, x: &Tensor) -> Slot {
        let slot = self.values.len() as Slot;
        self.values.push(Value { shape: x.shape().clone() });
        let id = x.id();
        if id.index >= self.base && id.thread == thread_tag() {
            let at = (id.index - self.base) as usize;
            if self.slots.len() <= at {
                self.slots.resize(at + 1, 0);
            }
            self.slots[at] = slot + 1;
        } else {
            self.older.insert(id, slot);
        }
        slot
    }

    /// The slot of a tensor, which may be tracked already.
    fn tracked(&mut self, x: &Tensor) -> Slot {
        match self.slot(x.id()) {
            UNTRACKED => self.track(x),
            slot => slot,
        }
    }

    /// Tracks a tensor from now on, for one tape.
    pub(crate) fn watch(&mut self, x: &Tensor, tape: u64) {
        let slot = self.tracked(x);
        self.leaves.push(Leaf { slot, since: self.records.len(), variable: 0, tape });
    }

    /// Counts the tapes that watch the variables that are read.
    pub(crate) fn change_accessed(&mut self, by: i32) {
        self.accessed += by;
    }

    /// Tracks one reading of a variable, if a tape watches it.
    pub(crate) fn read(&mut self, x: &Tensor, variable: u64, trainable: bool) {
        let by_access = trainable && self.accessed > 0;
        let asked = self.watched_variables.iter().any(|&(v, _)| v == variable);
        if !by_access && !asked {
            return;
        }
        let (slot, since) = (self.tracked(x), self.records.len());
        if by_access {
            self.leaves.push(Leaf { slot, since, variable, tape: 0 });
        }
        for i in 0..self.watched_variables.len() {
            let (watched, tape) = self.watched_variables[i];
            if watched == variable {
                self.leaves.push(Leaf { slot, since, variable, tape });
            }
        }
    }

    fn push(&mut self, op: Box<dyn Op>, inputs: Slots, outputs: &[Tensor], saved: Saved) {
        let output = self.values.len() as Slot;
        for y in outputs {
            self.track(y);
        }
        self.trace_outputs(output..self.values.len() as Slot);
        self.records.push(Some(Record { op, inputs, output, outputs: outputs.len() as u32, saved }));
    }
}

/// Runs an op and records it if a tape tracks one of its inputs.
///
/// The op comes in a box, so that this code exists once; an op without attributes takes no memory there.
pub(crate) fn run(op: Box<dyn Op>, inputs: &mut [Option<Input<'_>>]) -> Result<Outputs> {
    if !is_recording() {
        if cost::is_counting() {
            return cost::run(&*op, inputs);
        }
        return Ok(op.forward(&mut Inputs::new(inputs))?.outputs);
    }
    let (outputs, record) = run_recording(&*op, inputs)?;
    if let Some((slots, saved, operands)) = record {
        with_recorder(|r| {
            if let Some(operands) = operands {
                r.trace_operands(operands);
            }
            r.push(op, slots, outputs.as_slice(), saved);
        });
    }
    Ok(outputs)
}

/// Slots of the inputs, what was kept, and the operands if a trace asks for them.
type Recorded = (Slots, Saved, Option<Box<[Operand]>>);

/// The forward with a tape about, and what to record of it.
fn run_recording(op: &dyn Op, inputs: &mut [Option<Input<'_>>]) -> Result<(Outputs, Option<Recorded>)> {
    let found = with_recorder(|r| find(r, inputs)).filter(|(_, tracked)| !tracked.is_empty());
    let traced = match &found {
        Some((slots, _)) => with_recorder(|r| r.operands(slots.as_slice(), inputs)).flatten(),
        None => None,
    };
    let keeps = traced.as_ref().is_none_or(|traced| traced.keeps);
    let saves = match &found {
        Some((_, tracked)) if keeps => op.saves(*tracked),
        _ => Saves::NOTHING,
    };
    let mut kept: Vec<Tensor> = Vec::new();
    if !saves.inputs.is_empty() {
        let wanted = inputs.iter().enumerate().filter(|(i, _)| saves.inputs.has(*i));
        kept.extend(wanted.filter_map(|(_, x)| x.as_ref().map(|x| x.tensor().clone())));
    }
    let after_inputs = kept.len() as u16;
    let start = ValueId::next_index();
    let Computed { outputs, extra } = op.forward(&mut Inputs::new(inputs))?;
    let outputs = outputs.made_since(start);
    let Some((slots, _)) = found else {
        return Ok((outputs, None));
    };
    if !saves.outputs.is_empty() {
        let wanted = outputs.as_slice().iter().enumerate().filter(|(i, _)| saves.outputs.has(*i));
        kept.extend(wanted.map(|(_, y)| y.clone()));
    }
    let after_outputs = kept.len() as u16;
    if keeps {
        kept.extend(extra);
    }
    let saved = if kept.is_empty() {
        Saved::nothing()
    } else {
        Saved::new(kept, saves, (after_inputs, after_outputs))
    };
    Ok((outputs, Some((slots, saved, traced.map(|traced| traced.operands)))))
}

/// Slots of the inputs, and which of them are tracked.
fn find(r: &Recorder, inputs: &[Option<Input<'_>>]) -> (Slots, Mask) {
    let mut tracked = Mask::NONE;
    let slot = |i: usize| inputs[i].as_ref().map_or(UNTRACKED, |x| r.slot(x.tensor().id()));
    if inputs.len() <= 3 {
        let mut few = [UNTRACKED; 3];
        for (i, few) in few.iter_mut().enumerate().take(inputs.len()) {
            *few = slot(i);
            if *few != UNTRACKED {
                tracked = tracked.and(Mask::only(i));
            }
        }
        return (Slots::Few(inputs.len() as u8, few), tracked);
    }
    let many: Box<[Slot]> = (0..inputs.len()).map(slot).collect();
    for (i, &s) in many.iter().enumerate() {
        if s != UNTRACKED {
            tracked = tracked.and(if i < 64 { Mask::only(i) } else { Mask::ALL });
        }
    }
    (Slots::Many(many), tracked)
}
