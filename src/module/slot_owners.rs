//! Which slots of an optimiser belong to which parameter, as checkpoints see it.

use crate::tensor::{Tensor, ValueId};
use crate::variable::Variable;

/// How an optimiser knows the parameter that a slot belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner(Key);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// The identity of a variable.
    Variable(u64),
    /// The identity of the value that waits for one.
    Value(ValueId),
}

impl Owner {
    /// A variable that exists.
    pub(crate) fn variable(id: u64) -> Self {
        Owner(Key::Variable(id))
    }

    /// The variable that will take a value.
    pub(crate) fn waiting(value: &Tensor) -> Self {
        Owner(Key::Value(value.id()))
    }

    /// As whom an optimiser may know a variable, the best first.
    pub(crate) fn all(variable: &Variable) -> impl Iterator<Item = Owner> {
        let ids = [Some(variable.id()), variable.origin()].into_iter().flatten().map(Owner::variable);
        ids.chain(variable.restored().map(|id| Owner(Key::Value(id))))
    }
}

/// The numbers under which an optimiser keeps the slots of its parameters, in lists.
pub trait SlotOwners: Send + Sync {
    /// The number of each parameter.
    fn numbers(&self) -> Vec<(Owner, usize)>;

    /// Takes note of whom the slots belong to that were restored: number and name of the parameter.
    fn expect(&self, owners: Vec<(Owner, usize, String)>);
}
