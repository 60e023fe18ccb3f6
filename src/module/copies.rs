//! Deep copies that keep what is shared shared.

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Module;
use super::forward::Forward;
use super::visit::Visit;
use crate::random::Generator;
use crate::scope::{Scope, ScopeCopies};
use crate::variable::Variable;

/// The copies made so far in one deep copy: what was met before is not copied again but shared.
#[derive(Default)]
pub struct Copies {
    scopes: ScopeCopies,
    /// By identity of the original.
    variables: HashMap<u64, Variable>,
    /// By place of the original's state.
    generators: HashMap<usize, Generator>,
    /// By place and type of what an `Arc` holds; these places do not change while the copy is made.
    shared: HashMap<(usize, TypeId), Arc<dyn Any + Send + Sync>>,
    under_way: HashSet<(usize, TypeId)>,
    cyclic: bool,
}

impl Copies {
    /// The copy of a scope: the same name, another identity.
    #[must_use]
    pub fn scope(&mut self, scope: &Scope) -> Scope {
        scope.duplicate(&mut self.scopes)
    }

    /// The copy of a variable: the same name, value and flags.
    #[must_use]
    pub fn variable(&mut self, variable: &Variable) -> Variable {
        self.variables.entry(variable.id()).or_insert_with(|| variable.duplicate()).clone()
    }

    /// The copy of a generator: it continues like the original, on its own.
    #[must_use]
    pub fn generator(&mut self, generator: &Generator) -> Generator {
        let copy = || Generator::from_state(generator.state());
        self.generators.entry(generator.address()).or_insert_with(copy).clone()
    }

    /// The copy of what an `Arc` holds.
    #[must_use]
    pub fn shared<T: Visit + Send + Sync + 'static>(&mut self, original: &Arc<T>) -> Arc<T> {
        self.part(&**original).unwrap_or_else(|| {
            self.cyclic = true;
            original.clone()
        })
    }

    /// The copy of what an `Arc` holds, or `None` if it is being made at this moment: the original holds itself.
    fn part<T: Visit + Send + Sync + 'static>(&mut self, original: &T) -> Option<Arc<T>> {
        let key = (std::ptr::from_ref(original).addr(), TypeId::of::<T>());
        if let Some(copy) = self.shared.get(&key) {
            return copy.clone().downcast().ok();
        }
        if !self.under_way.insert(key) {
            return None;
        }
        let copy = Arc::new(original.copy(self));
        self.under_way.remove(&key);
        self.shared.insert(key, copy.clone());
        Some(copy)
    }

    /// Whether something held itself through an `Arc` and could not be copied.
    pub(crate) fn met_a_cycle(&self) -> bool {
        self.cyclic
    }
}

/// A module behind `dyn Module`, and copies of it. Every module has it.
pub trait DynModule {
    /// The module as a trait object.
    fn as_module(&self) -> &dyn Module;

    /// A copy in a box.
    #[doc(hidden)]
    fn copy_boxed_module(&self, copies: &mut Copies) -> Box<dyn Module>;

    /// A copy in an `Arc`, `None` in a cycle.
    #[doc(hidden)]
    fn copy_shared_module(&self, copies: &mut Copies) -> Option<Arc<dyn Module>>;
}

impl<T: Module + 'static> DynModule for T {
    fn as_module(&self) -> &dyn Module {
        self
    }

    fn copy_boxed_module(&self, copies: &mut Copies) -> Box<dyn Module> {
        Box::new(self.copy(copies))
    }

    fn copy_shared_module(&self, copies: &mut Copies) -> Option<Arc<dyn Module>> {
        Some(copies.part(self)?)
    }
}

/// Copies of a layer behind `dyn Forward`. Every layer has it.
pub trait DynForward {
    /// A copy in a box.
    #[doc(hidden)]
    fn copy_boxed_forward(&self, copies: &mut Copies) -> Box<dyn Forward>;

    /// A copy in an `Arc`, `None` in a cycle.
    #[doc(hidden)]
    fn copy_shared_forward(&self, copies: &mut Copies) -> Option<Arc<dyn Forward>>;
}

impl<T: Forward + 'static> DynForward for T {
    fn copy_boxed_forward(&self, copies: &mut Copies) -> Box<dyn Forward> {
        Box::new(self.copy(copies))
    }

    fn copy_shared_forward(&self, copies: &mut Copies) -> Option<Arc<dyn Forward>> {
        Some(copies.part(self)?)
    }
}

impl Copies {
    pub(crate) fn shared_module(&mut self, original: &Arc<dyn Module>) -> Arc<dyn Module> {
        (**original).copy_shared_module(self).unwrap_or_else(|| {
            self.cyclic = true;
            original.clone()
        })
    }

    pub(crate) fn shared_forward(&mut self, original: &Arc<dyn Forward>) -> Arc<dyn Forward> {
        (**original).copy_shared_forward(self).unwrap_or_else(|| {
            self.cyclic = true;
            original.clone()
        })
    }
}
