//! Modules: their parts, their variables, their names.

mod build;
mod bytes;
mod collect;
mod copies;
mod deferred;
mod fill;
mod forward;
mod freeze;
mod gate;
mod list;
mod once;
mod paths;
mod print;
#[doc(hidden)]
pub mod private;
mod probe;
mod slot_owners;
mod spec;
mod state;
mod summary;
mod table;
mod variable_getter;
mod visit;
mod visit_std;
mod waiting;
mod weights;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

pub use build::{build, build_with};
pub(crate) use bytes::values;
pub(crate) use collect::parts;
pub use copies::{Copies, DynForward, DynModule};
pub use deferred::{Constructed, Deferred};
pub(crate) use fill::{Plan, on_copy, tree};
pub use forward::Forward;
pub use list::List;
pub use once::Once;
pub(crate) use paths::{existing_variables, named_variables, nearest, walk};
pub use print::{Description, Printer};
pub use slot_owners::{Owner, SlotOwners};
pub use spec::Spec;
pub use state::State;
pub use summary::{Summary, SummaryRow, summary};
pub use table::{format_variables, log_variables};
pub use variable_getter::{CustomVariableGetter, custom_variable_getter};
pub use visit::{Edge, Edges, Name, Node, Visit};
pub use visit_std::Key;
pub use waiting::{Waiting, Waits};

use crate::error::{Error, Result};
use crate::ops::Gradient;
use crate::scope::{Scope, type_name};
use crate::variable::Variable;

/// A layer, a network, an optimiser: a named thing that holds variables and other modules.
///
/// `#[derive(Module)]` writes the implementation. What is computed with the parts is up to the type: single-input layers
/// implement [`Forward`] as well.
///
/// ```
/// # use couplet::{Module, Scope, List};
/// #[derive(Module)]
/// struct Tower {
///     scope: Scope,
///     depth: usize,
///     #[module(default = true)]
///     with_bias: bool,
/// }
///
/// let tower = Tower { scope: Scope::of::<Tower>(), depth: 3, with_bias: true };
/// assert_eq!(format!("{tower:?}"), "Tower(depth=3)");
/// assert_eq!(tower.name("stem").scope().path(), "stem");
/// ```
pub trait Module: Visit + DynModule + fmt::Debug + Send + Sync {
    /// The name and the name scope.
    fn scope(&self) -> &Scope;

    /// Names the parts, in the order of their declaration. The names make the paths in files.
    fn visit<'a>(&'a self, edges: &mut Edges<'a>);

    /// Makes the variables that need no input, as an embedding's table or an optimiser's step count.
    /// `#[module(materialise = Self::method)]` names the method that does.
    ///
    /// # Errors
    /// They cannot be made.
    fn materialise(&self) -> Result<()> {
        Ok(())
    }

    /// Whether [`variables`](Module::variables) may be empty.
    fn allows_empty_variables(&self) -> bool {
        self.scope().allows_empty_variables()
    }

    /// Who owns the slots, if it is an optimiser that has some.
    #[doc(hidden)]
    fn slot_owners(&self) -> Option<&dyn SlotOwners> {
        None
    }

    /// The type's name, for tables and messages: `Linear`.
    fn kind(&self) -> &'static str {
        type_name::<Self>()
    }

    /// The module under another name.
    #[must_use]
    fn name(self, name: &str) -> Self
    where
        Self: Sized,
    {
        self.scope().rename(name);
        self
    }

    /// The module, which from now on may have no variables.
    #[must_use]
    fn allow_empty_variables(self) -> Self
    where
        Self: Sized,
    {
        self.scope().allow_empty_variables();
        self
    }

    /// All variables: a module's own, sorted by the code points of their field names, then those of its first child and
    /// all below, and so on. A shared variable comes once, where it is met first.
    ///
    /// # Errors
    /// There are none, and [`allow_empty_variables`](Module::allow_empty_variables) was not asked for.
    fn variables(&self) -> Result<Vec<Variable>> {
        collect::expected_variables(self.as_module(), "variables", |_| true)
    }

    /// The variables that an optimiser may change: trainable and not frozen. In the order of
    /// [`variables`](Module::variables).
    ///
    /// # Errors
    /// There are none, and [`allow_empty_variables`](Module::allow_empty_variables) was not asked for.
    fn trainable_variables(&self) -> Result<Vec<Variable>> {
        collect::expected_variables(self.as_module(), "trainable_variables", |variable| {
            variable.trainable() && !variable.is_frozen()
        })
    }

    /// The other variables: counters, averages, and what is frozen. There may be none.
    ///
    /// # Errors
    /// Variables that need no input cannot be made.
    fn non_trainable_variables(&self) -> Result<Vec<Variable>> {
        collect::variables(self.as_module(), |variable| !variable.trainable() || variable.is_frozen())
    }

    /// All modules below this one, each once: all children of a module before the children of the first of them.
    fn submodules(&self) -> Vec<&dyn Module> {
        collect::submodules(self.as_module())
    }

    /// All variables with their paths: the names of the fields, keys and positions that lead to them, `_layers/0/w`.
    /// These are the paths in files. A shared variable comes once, under its shortest path.
    ///
    /// # Errors
    /// Variables that need no input cannot be made.
    fn named_variables(&self) -> Result<Vec<(String, Variable)>> {
        paths::named_variables(self.as_module())
    }

    /// The variable at a path, as `w` or `_layers/0/w`: the weights of a layer, the slots of an optimiser.
    ///
    /// ```
    /// use couplet::prelude::*;
    /// let linear = Linear::new(2);
    /// assert!(linear.variable("w").is_err()); // the first call makes it
    /// linear.forward(&Tensor::ones([1, 3], DType::F32)?)?;
    /// assert_eq!(linear.variable("w")?.shape(), &[3, 2]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nothing has that path (the names that come near it are listed), it leads to something else than a variable, or the
    /// variable is not made yet.
    fn variable(&self, path: &str) -> Result<Variable> {
        paths::variable(self.as_module(), path)
    }

    /// The path of a variable, if it lies below this module.
    fn path_of(&self, variable: &Variable) -> Option<String> {
        let named = paths::named_variables(self.as_module()).ok()?;
        named.into_iter().find(|(_, candidate)| candidate.id() == variable.id()).map(|(path, _)| path)
    }

    /// Paths of the parameters that got no gradient: those whose entry in `gradients` is `None`, in their order. One that
    /// does not lie below this module is listed by its name.
    ///
    /// ```
    /// use couplet::prelude::*;
    /// let net = Sequential::new().push(Linear::new(2)).push(Linear::new(1));
    /// let x = Tensor::ones([3, 4], DType::F32)?;
    /// net.forward(&x)?;
    /// let params = net.trainable_variables()?;
    /// let tape = GradientTape::new();
    /// let loss = net.layers()[0].forward(&x)?.mean()?; // forgets the second layer
    /// let grads = tape.gradient(&loss, &params)?;
    /// assert_eq!(net.without_gradient(&params, &grads), ["_layers/1/b", "_layers/1/w"]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    fn without_gradient(&self, parameters: &[Variable], gradients: &[Option<Gradient>]) -> Vec<String> {
        let named = paths::named_variables(self.as_module()).unwrap_or_default();
        let path = |v: &Variable| {
            let found = named.iter().find(|(_, candidate)| candidate.id() == v.id());
            found.map_or_else(|| v.name().to_owned(), |(path, _)| path.clone())
        };
        parameters.iter().zip(gradients).filter(|(_, g)| g.is_none()).map(|(v, _)| path(v)).collect()
    }

    /// Freezes the variables below a path, as `encoder` or `_layers/0/w`: no optimiser changes them until they are
    /// thawed. Those that do not exist yet will be frozen when they are made. The empty path means the whole module.
    ///
    /// # Errors
    /// Nothing has that path; the names that come near it are listed.
    fn freeze(&self, path: &str) -> Result<()> {
        freeze::set_frozen(paths::resolve("freeze", self.as_module(), path)?, true);
        Ok(())
    }

    /// Undoes [`freeze`](Module::freeze) below a path.
    ///
    /// # Errors
    /// Nothing has that path; the names that come near it are listed.
    fn thaw(&self, path: &str) -> Result<()> {
        freeze::set_frozen(paths::resolve("thaw", self.as_module(), path)?, false);
        Ok(())
    }

    /// A deep copy: the same names and values, and variables of its own. What is shared within the module is shared
    /// within the copy; closures are shared with the original.
    ///
    /// # Errors
    /// The module holds itself through an `Arc`.
    fn duplicate(&self) -> Result<Self>
    where
        Self: Sized,
    {
        let mut copies = Copies::default();
        let copy = self.copy(&mut copies);
        if copies.met_a_cycle() {
            let cure = "break the cycle before";
            return Err(Error::usage("duplicate", format!("{self:?} holds itself through an Arc"), cure));
        }
        Ok(copy)
    }

    /// The values of all variables and all plain state as bytes, for [`load_bytes`](Module::load_bytes). What a restore left
    /// for parts that do not exist yet is among them. Closures, and which variables are frozen, are not.
    ///
    /// The bytes are the same on every machine. Each release reads what earlier ones wrote.
    ///
    /// ```
    /// use couplet::prelude::*;
    /// let x = Tensor::ones([1, 3], DType::F32)?;
    /// let net = MLP::new([4, 2]);
    /// let y = net.forward(&x)?;
    /// let bytes = net.to_bytes()?;
    ///
    /// let fresh = MLP::new([4, 2]);
    /// fresh.load_bytes(&bytes)?;
    /// assert_eq!(fresh.forward(&x)?.to_vec::<f32>()?, y.to_vec::<f32>()?);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// Variables that need no input cannot be made, or plain state refuses to be written.
    fn to_bytes(&self) -> Result<Vec<u8>> {
        bytes::write(self.as_module())
    }

    /// Takes the values and the state that [`to_bytes`](Module::to_bytes) captured from a module constructed alike. Variables
    /// that do not exist yet take theirs when they are made: no initialiser runs and nothing is drawn.
    ///
    /// # Errors
    /// The bytes are not whole, come from a later release or from another module: types of modules, paths, shapes or
    /// dtypes differ. All differences that can be known are listed, and nothing was changed at all. A shape that
    /// depends on the first input is compared when that comes.
    fn load_bytes(&self, bytes: &[u8]) -> Result<()> {
        bytes::load(self.as_module(), bytes)
    }

    /// Takes the values of all variables of another module, by path. Variables that do not exist yet take them when
    /// they are made.
    ///
    /// # Errors
    /// The paths, shapes or dtypes of the two differ; all differences are listed, and nothing was copied.
    fn copy_weights_from(&self, other: &dyn Module) -> Result<()> {
        weights::copy(other, self.as_module())
    }

    /// Makes this module the moving average of another one, as target networks and averaged weights need it: each
    /// variable becomes `decay * own + (1 - decay) * other`, by path. Counters and other integers are copied.
    ///
    /// # Errors
    /// `decay` lies outside `[0, 1]`, or the paths, shapes or dtypes of the two differ; all differences are listed, and
    /// nothing was changed.
    fn moving_average_of(&self, other: &dyn Module, decay: f64) -> Result<()> {
        weights::move_average(self.as_module(), other, decay)
    }
}

/// The calls of a module that is held by a pointer.
macro_rules! module_through_pointer {
    ($($generics:ident)? ; $pointer:ty) => {
        impl$(<$generics: Module + 'static>)? $crate::module::Module for $pointer {
            fn scope(&self) -> &$crate::scope::Scope {
                (**self).scope()
            }

            fn visit<'a>(&'a self, edges: &mut $crate::module::Edges<'a>) {
                (**self).visit(edges);
            }

            fn materialise(&self) -> $crate::error::Result<()> {
                (**self).materialise()
            }

            fn allows_empty_variables(&self) -> bool {
                (**self).allows_empty_variables()
            }

            fn kind(&self) -> &'static str {
                (**self).kind()
            }
        }
    };
}

pub(crate) use module_through_pointer;

module_through_pointer!(M; Arc<M>);
module_through_pointer!(; Arc<dyn Module>);
module_through_pointer!(; Box<dyn Module>);
