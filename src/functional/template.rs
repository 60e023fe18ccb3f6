//! The module that a transformed function is made of, and copies of it in use.

use std::sync::{Arc, Mutex, PoisonError};

use crate::autodiff::no_grad;
use crate::dry;
use crate::error::{Error, Result};
use crate::module::{Copies, Plan, Visit, Waiting, existing_variables, tree};
use crate::variable::overlay::Overlay;

use super::instance::{Instance, Values, check_left, plain_values};

const OP: &str = "apply";

/// A module that is never run itself, to make copies of.
pub(super) struct Template<M> {
    module: M,
    holds_itself: bool,
}

/// What was used last; it is used again as long as it fits.
pub(super) struct Latest<T>(Mutex<Option<Arc<T>>>);

impl<T> Latest<T> {
    pub(super) fn none() -> Self {
        Latest(Mutex::new(None))
    }

    pub(super) fn that(&self, fits: impl FnOnce(&T) -> bool) -> Option<Arc<T>> {
        let latest = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        latest.filter(|latest| fits(latest))
    }

    pub(super) fn keep(&self, new: T) -> Arc<T> {
        let new = Arc::new(new);
        let old = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(new.clone());
        drop(old); // after the lock: it may be a whole module
        new
    }
}

impl<M: Visit> Template<M> {
    pub(super) fn new(module: &M) -> Self {
        let mut copies = Copies::default();
        let module = module.copy(&mut copies);
        Template { module, holds_itself: copies.met_a_cycle() }
    }

    fn copy(&self) -> Result<M> {
        if self.holds_itself {
            let problem = "the module holds itself through an Arc";
            return Err(Error::usage("transform", problem, "break the cycle before"));
        }
        Ok(self.module.copy(&mut Copies::default()))
    }

    /// Makes all variables by a call of `f`, and gives an instance and the values that it starts with.
    pub(super) fn init(&self, f: impl FnOnce(&M) -> Result<()>) -> Result<(Instance<M>, Values)> {
        let module = self.copy()?;
        let before = plain_values(&module)?;
        // What the call assigns is forgotten: the variables keep the values that they were made with.
        let (result, mut left) = no_grad(|| Overlay::new([]).run(|| f(&module)));
        result?;
        existing_variables(module.node()).iter().for_each(|(_, variable)| drop(left.take(variable)));
        check_left(&left)?;
        Overlay::aside(|| {
            let instance = Instance::new(module)?;
            let mut values = instance.values()?;
            values.extend(before);
            Ok((instance.release()?, values))
        })
    }

    /// An instance that these values fit. `f` is called to make its variables.
    ///
    /// # Errors
    /// They fit none; all differences are listed.
    pub(super) fn instance(&self, values: &Values, f: impl Fn(&M) -> Result<()>) -> Result<Instance<M>> {
        // Variables for which there is no value start at zero, so that nothing is drawn before that is reported.
        let built = |values: &Values| dry::blank(|| no_grad(|| self.built(values, &f)));
        let instance = match built(values) {
            Ok(instance) => instance,
            // One value that does not fit ends the call, but all are to be reported: without any the call gets further.
            Err(error) => match built(&Values::new()) {
                Ok(instance) if !instance.differences(values).is_empty() => instance,
                _ => return Err(error),
            },
        };
        let differences = instance.differences(values);
        if !differences.is_empty() {
            let cure = "give the parameters that init returned for this module";
            return Err(Error::usage(OP, differences.join("; "), cure));
        }
        instance.release()
    }

    /// The module after a call of `f`, with these values as far as they lead to something.
    fn built(&self, values: &Values, f: impl FnOnce(&M) -> Result<()>) -> Result<Instance<M>> {
        let module = self.copy()?;
        let plain = plain_values(&module)?;
        let variables = values.iter().filter(|(path, _)| !plain.contains_key(*path));
        let waiting = tree(OP, variables.map(|(path, value)| (path.clone(), Waiting::Value(value.clone()))))?;
        Overlay::aside(|| Plan::new(module.node(), waiting).apply(OP))?;
        let existing = existing_variables(module.node()).into_iter();
        let laid = existing.filter_map(|(path, variable)| Some((variable, values.get(&path)?.clone())));
        let (result, _) = Overlay::new(laid).run(|| f(&module));
        result?;
        Overlay::aside(|| Instance::new(module))
    }
}
