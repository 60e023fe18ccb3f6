//! Which slots belong to which parameter.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::init::Zeros;
use crate::module::{Copies, List, Node, Owner, SlotOwners, Visit, Waiting, Waits};
use crate::tensor::Shape;
use crate::variable::Variable;

/// Who owns the slots of an optimiser: parameters are numbered as they first appear, and known by their identity.
///
/// A field of every optimiser. Its lock is held during a step, so that steps of one optimiser come one after the other.
#[derive(Debug, Default)]
pub(super) struct Owners(Mutex<Register>);

#[derive(Debug, Clone, Default)]
pub(super) struct Register {
    /// Number by the identity of the parameter.
    numbers: HashMap<u64, usize>,
    /// In a copied optimiser, the same for the parameters of the original, and in a restored one for those of the file. A
    /// number is taken over by the parameter itself or by its copy, whichever comes first.
    inherited: HashMap<Owner, usize>,
    /// Names of the parameters whose slots were restored and are to be made, by number.
    restored: BTreeMap<usize, String>,
    /// How many numbers were given out.
    count: usize,
    /// Names of parameters that came without an update.
    reported: BTreeSet<String>,
}

/// The slots of one kind, one for each parameter, named `<scope>/<name>/<name of the parameter>`.
#[derive(Clone, Copy)]
pub(super) struct Kind<'a> {
    pub(super) name: &'static str,
    pub(super) list: &'a List<Variable>,
}

impl Owners {
    pub(super) fn lock(&self) -> MutexGuard<'_, Register> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Register {
    /// The number of each parameter. Those that come for the first time get slots, which start with the value that a
    /// restore left for their number, else at 0.
    ///
    /// # Errors
    /// A value that waits does not fit its parameter. Nothing was made then.
    pub(super) fn numbers(&mut self, parameters: &[Variable], kinds: &[Kind<'_>]) -> Result<Vec<usize>> {
        self.make_restored(kinds)?;
        let mut numbers = Vec::with_capacity(parameters.len());
        let mut fresh: Vec<(&Variable, usize)> = Vec::new();
        let mut taken_over: Vec<Owner> = Vec::new();
        for parameter in parameters {
            if let Some(&number) = self.numbers.get(&parameter.id()) {
                numbers.push(number);
                continue;
            }
            let mut known = Owner::all(parameter);
            let left = known.find(|owner| self.inherited.contains_key(owner) && !taken_over.contains(owner));
            let number = match left {
                Some(owner) => {
                    taken_over.push(owner);
                    self.inherited[&owner]
                }
                None => {
                    let number = self.count + fresh.len();
                    fresh.push((parameter, number));
                    number
                }
            };
            numbers.push(number);
        }
        if !fresh.is_empty() {
            kinds.iter().try_for_each(|kind| kind.check(&fresh))?;
            for kind in kinds {
                fresh.iter().try_for_each(|(parameter, number)| kind.make(parameter, *number))?;
            }
        }
        self.count += fresh.len();
        taken_over.iter().for_each(|owner| {
            self.inherited.remove(owner);
        });
        self.numbers.extend(parameters.iter().map(Variable::id).zip(numbers.iter().copied()));
        Ok(numbers)
    }

    /// Makes the slots that were restored, so that each has its number whichever parameters come first.
    fn make_restored(&mut self, kinds: &[Kind<'_>]) -> Result<()> {
        let Some(&last) = self.restored.keys().next_back() else { return Ok(()) };
        for number in self.count..=last {
            let Some((shape, dtype)) = kinds.iter().find_map(|kind| kind.like(number)) else {
                // The file has no slots beyond: those parameters begin anew.
                self.inherited.retain(|_, inherited| *inherited < number);
                break;
            };
            let name = self.restored.remove(&number).unwrap_or_else(|| number.to_string());
            for kind in kinds {
                let name = format!("{}/{name}", kind.name);
                let make = || Variable::non_trainable(&name, &shape, dtype, Zeros);
                kind.list.get_or_push_with(number, make)?;
            }
            self.count = number + 1;
        }
        self.restored.clear();
        Ok(())
    }

    /// The names among these that were not seen before.
    pub(super) fn unreported(&mut self, missing: &[&Variable]) -> Vec<String> {
        let names = missing.iter().map(|parameter| parameter.name());
        let fresh: Vec<String> =
            names.filter(|&name| !self.reported.contains(name)).map(str::to_owned).collect();
        self.reported.extend(fresh.iter().cloned());
        fresh
    }
}

impl Kind<'_> {
    /// Shape and dtype of the slot with this number, if it exists or a value waits for it.
    fn like(&self, number: usize) -> Option<(Shape, DType)> {
        if let Some(slot) = self.list.get(number) {
            return Some((slot.shape().clone(), slot.dtype()));
        }
        match self.list.waiting()? {
            Waiting::Tree(mut tree) => match tree.remove(&number.to_string())? {
                Waiting::Value(value) => Some((value.shape().clone(), value.dtype())),
                _ => None,
            },
            _ => None,
        }
    }

    /// Refuses values that wait for new slots and do not fit.
    fn check(&self, fresh: &[(&Variable, usize)]) -> Result<()> {
        let Some(Waiting::Tree(waiting)) = self.list.waiting() else { return Ok(()) };
        for (parameter, number) in fresh {
            let got = match waiting.get(&number.to_string()) {
                None => continue,
                Some(Waiting::Value(value))
                    if value.shape() == parameter.shape() && value.dtype() == parameter.dtype() =>
                {
                    continue;
                }
                Some(Waiting::Value(value)) => format!("{}{}", value.dtype(), value.shape()),
                Some(_) => "no tensor".to_owned(),
            };
            let expected =
                format!("{}{}, as parameter {}", parameter.dtype(), parameter.shape(), parameter.name());
            let got = format!("{got} for {}/{number}", self.name);
            return Err(Error::argument("apply", "the restored slot", got, expected));
        }
        Ok(())
    }

    fn make(&self, parameter: &Variable, number: usize) -> Result<()> {
        let name = format!("{}/{}", self.name, parameter.name());
        self.list.get_or_push_with(number, || {
            Variable::non_trainable(&name, parameter.shape(), parameter.dtype(), Zeros)
        })?;
        Ok(())
    }
}

impl SlotOwners for Owners {
    fn numbers(&self) -> Vec<(Owner, usize)> {
        let register = self.lock();
        let own = register.numbers.iter().map(|(&id, &number)| (Owner::variable(id), number));
        let mut numbers: Vec<_> =
            own.chain(register.inherited.iter().map(|(&owner, &n)| (owner, n))).collect();
        numbers.sort_by_key(|&(_, number)| number);
        numbers
    }

    fn expect(&self, owners: Vec<(Owner, usize, String)>) {
        let mut register = self.lock();
        for (owner, number, name) in owners {
            register.inherited.insert(owner, number);
            if number >= register.count {
                register.restored.insert(number, name);
            }
        }
    }
}

impl Visit for Owners {
    fn node(&self) -> Node<'_> {
        Node::Nothing
    }

    fn copy(&self, _: &mut Copies) -> Self {
        let mut copy = self.lock().clone();
        let known = std::mem::take(&mut copy.numbers).into_iter();
        copy.inherited.extend(known.map(|(id, number)| (Owner::variable(id), number)));
        Owners(Mutex::new(copy))
    }
}
