//! Running a function for the list of its ops: they are recorded without what their gradients need, and taken out again.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::tensor::Tensor;

use super::op::{Input, Op};
use super::record::{self, Record, Recorder, Slot, UNTRACKED};

/// Where an input of a traced op comes from.
#[derive(Debug)]
pub(crate) enum Operand {
    /// An output of an earlier op of the trace.
    Inside(Slot),
    /// A tracked value that was there before.
    Outside(Slot, Tensor),
    /// A value that nobody tracks.
    Constant(Tensor),
}

/// A function that is being run.
#[derive(Debug)]
pub(crate) struct Trace {
    /// Records, tapes, tapes so far and suspensions when it began.
    from: usize,
    tapes: usize,
    opened: u64,
    pauses: u32,
    /// Position and operands of each record.
    steps: Vec<(usize, Box<[Operand]>)>,
    produced: HashSet<Slot>,
}

/// What is to be kept of one op.
pub(crate) struct Traced {
    pub(crate) operands: Box<[Operand]>,
    /// Whether a tape that began inside the function needs the op as any tape does.
    pub(crate) keeps: bool,
}

/// One op of a trace; values are numbered, those from outside first.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) op: Arc<dyn Op>,
    pub(crate) inputs: Box<[Place]>,
}

/// A numbered value or a constant.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Value(usize),
    Constant(Tensor),
}

/// The ops that a function ran.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    pub(crate) list: Vec<Step>,
    /// The tracked values that it used.
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) outputs: Vec<Place>,
}

impl Recorder {
    /// Whether a trace keeps nothing of what it records for the tape with number `opened`.
    pub(crate) fn leaves_out(&self, opened: u64) -> bool {
        self.traces.last().is_some_and(|trace| opened <= trace.opened)
    }

    /// The trace that sees what happens now: not while recording is suspended.
    fn tracing(&mut self) -> Option<&mut Trace> {
        let pauses = self.pauses;
        self.traces.last_mut().filter(|trace| trace.pauses == pauses)
    }

    /// What a trace keeps of an op with inputs at `slots`.
    pub(crate) fn operands(&mut self, slots: &[Slot], inputs: &[Option<Input<'_>>]) -> Option<Traced> {
        let tapes = self.tapes();
        let trace = self.tracing()?;
        let operand = |(&slot, x): (&Slot, &Option<Input<'_>>)| {
            let x = || x.as_ref().map(|x| x.tensor().clone());
            match slot {
                UNTRACKED => x().map(Operand::Constant),
                slot if trace.produced.contains(&slot) => Some(Operand::Inside(slot)),
                slot => x().map(|x| Operand::Outside(slot, x)),
            }
        };
        // An input that was not given fails in the op's forward.
        let operands = slots.iter().zip(inputs).filter_map(operand).collect();
        Some(Traced { operands, keeps: tapes > trace.tapes })
    }

    /// Notes the operands of the record that comes next.
    pub(crate) fn trace_operands(&mut self, operands: Box<[Operand]>) {
        let at = self.records.len();
        if let Some(trace) = self.tracing() {
            trace.steps.push((at, operands));
        }
    }

    /// Notes the outputs of that record.
    pub(crate) fn trace_outputs(&mut self, slots: Range<Slot>) {
        if let Some(trace) = self.tracing() {
            trace.produced.extend(slots);
        }
    }

    fn begin_trace(&mut self) {
        self.traces.push(Trace {
            from: self.records.len(),
            tapes: self.tapes(),
            opened: self.opened(),
            pauses: self.pauses,
            steps: Vec::new(),
            produced: HashSet::new(),
        });
    }

    /// Takes the innermost trace off, and its records out of the list.
    fn end_trace(&mut self) -> Option<(Trace, Vec<Option<Record>>)> {
        let trace = self.traces.pop()?;
        let records = if self.tapes() <= trace.tapes {
            self.hidden.retain(|hidden| hidden.from < trace.from);
            self.records.split_off(trace.from.min(self.records.len()))
        } else {
            // A tape that began inside still counts positions.
            self.records[trace.from..].iter_mut().map(Option::take).collect()
        };
        // Variables that were read inside are values from outside to what stays.
        for leaf in self.leaves.iter_mut().filter(|leaf| leaf.since > trace.from) {
            leaf.since = trace.from;
        }
        Some((trace, records))
    }
}

/// Ends a trace also when the function fails or panics.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        drop(record::with_recorder(Recorder::end_trace));
    }
}

/// Runs `f` and takes what it recorded out of the list, as steps that can be run again.
pub(crate) fn trace(f: impl FnOnce() -> Result<Vec<Tensor>>) -> Result<(Vec<Tensor>, Steps)> {
    record::with_recorder(Recorder::begin_trace);
    let guard = Guard;
    let outputs = f()?;
    std::mem::forget(guard);
    let slots: Vec<Slot> =
        outputs.iter().map(|y| record::with_recorder(|r| r.slot(y.id())).unwrap_or(UNTRACKED)).collect();
    let Some((trace, records)) = record::with_recorder(Recorder::end_trace).flatten() else {
        return Ok((outputs, Steps::default()));
    };
    if record::with_recorder(|r| r.tapes() != trace.tapes).unwrap_or(false) {
        return Err(Error::usage(
            "recompute",
            "a tape that began inside the function is still there, or one from outside is gone",
            "begin and drop the tapes that it uses inside",
        ));
    }
    Ok(numbered(trace, records, outputs, &slots))
}

/// Gives the values of a trace their numbers.
fn numbered(
    trace: Trace,
    mut records: Vec<Option<Record>>,
    outputs: Vec<Tensor>,
    slots: &[Slot],
) -> (Vec<Tensor>, Steps) {
    let mut numbers = HashMap::new();
    let mut steps = Steps::default();
    let mut outside = |slot: Slot, x: &Tensor, numbers: &mut HashMap<Slot, usize>| {
        numbers.entry(slot).or_insert_with(|| {
            steps.inputs.push(x.clone());
            steps.inputs.len() - 1
        });
    };
    for (_, operands) in &trace.steps {
        for operand in operands {
            if let Operand::Outside(slot, x) = operand {
                outside(*slot, x, &mut numbers);
            }
        }
    }
    for (y, &slot) in outputs.iter().zip(slots) {
        if slot != UNTRACKED && !trace.produced.contains(&slot) {
            outside(slot, y, &mut numbers);
        }
    }
    let mut count = steps.inputs.len();
    for (at, operands) in trace.steps {
        let Some(record) = records.get_mut(at - trace.from).and_then(Option::take) else { continue };
        let place = |operand: Operand| match operand {
            Operand::Inside(slot) | Operand::Outside(slot, _) => {
                Place::Value(numbers.get(&slot).copied().unwrap_or(usize::MAX))
            }
            Operand::Constant(x) => Place::Constant(x),
        };
        let inputs = operands.into_iter().map(place).collect();
        for slot in record.output..record.output + record.outputs {
            numbers.insert(slot, count);
            count += 1;
        }
        steps.list.push(Step { op: Arc::from(record.op), inputs });
    }
    let place = |(y, slot): (&Tensor, &Slot)| match numbers.get(slot) {
        Some(&number) => Place::Value(number),
        None => Place::Constant(y.clone()),
    };
    steps.outputs = outputs.iter().zip(slots).map(place).collect();
    (outputs, steps)
}
