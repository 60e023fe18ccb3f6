//! A module that is run with given values.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::module::{Copies, Node, Visit, existing_variables, walk};
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::variable::overlay::Overlay;

use super::{Params, State};

/// Values by path.
pub(super) type Values = BTreeMap<String, Tensor>;

/// A module whose variables all exist. Their own values do not count.
pub(super) struct Instance<M> {
    module: M,
    /// By path.
    variables: BTreeMap<String, Variable>,
    /// Paths of the state that is no variable.
    plain: Vec<String>,
}

/// What a run gives back.
pub(super) struct Ran<R> {
    pub(super) result: R,
    /// The values afterwards.
    pub(super) values: Values,
    /// Those of the other variables.
    pub(super) others: Vec<Tensor>,
}

impl<M: Visit> Instance<M> {
    /// Takes a module over, and makes the variables that need no input.
    pub(super) fn new(module: M) -> Result<Self> {
        let (mut made, mut plain) = (Ok(()), Vec::new());
        walk(module.node(), |path, node| match node {
            Node::Module(module) if made.is_ok() => made = module.materialise(),
            Node::State(_) => plain.push(path.to_owned()),
            _ => {}
        });
        made?;
        let variables = existing_variables(module.node()).into_iter().collect();
        Ok(Instance { module, variables, plain })
    }

    /// The values that it holds itself.
    pub(super) fn values(&self) -> Result<Values> {
        let mut values = plain_values(&self.module)?;
        values.extend(self.variables.iter().map(|(path, variable)| (path.clone(), variable.peek())));
        Ok(values)
    }

    /// Parts values into those that are trained and the rest.
    pub(super) fn split(&self, values: Values) -> (Params, State) {
        let is_trained = |path: &String| {
            self.variables.get(path).is_some_and(|variable| variable.trainable() && !variable.is_frozen())
        };
        values.into_iter().partition(|(path, _)| is_trained(path))
    }

    /// How these values differ from what the module needs, path by path.
    pub(super) fn differences(&self, values: &Values) -> Vec<String> {
        let mut differences = Vec::new();
        for (path, variable) in &self.variables {
            match values.get(path) {
                None => differences.push(format!("there is no value for {path}")),
                Some(value) if value.shape() != variable.shape() || value.dtype() != variable.dtype() => {
                    let (dtype, shape) = (variable.dtype(), variable.shape());
                    let got = format!("{}{}", value.dtype(), value.shape());
                    differences.push(format!("the value for {path} is {got}, expected {dtype}{shape}"));
                }
                Some(_) => {}
            }
        }
        let missing = self.plain.iter().filter(|path| !values.contains_key(*path));
        differences.extend(missing.map(|path| format!("there is no value for {path}")));
        let is_known = |path: &String| self.variables.contains_key(path) || self.plain.contains(path);
        let unknown = values.keys().filter(|path| !is_known(path));
        differences.extend(unknown.map(|path| format!("nothing takes the value for {path}")));
        differences
    }

    /// Gives up the memory of the variables' own values; a use of one where none is laid over it shows as NaN.
    pub(super) fn release(self) -> Result<Self> {
        self.variables.values().try_for_each(Variable::release)?;
        Ok(self)
    }

    /// Runs `f` with `values` over the variables and `others` over variables elsewhere. No variable may be made, and none
    /// changed but these.
    pub(super) fn run<R>(
        &self,
        mut values: Values,
        others: Vec<(Variable, Tensor)>,
        f: impl FnOnce(&M) -> Result<R>,
    ) -> Result<Ran<R>> {
        if self.plain.is_empty() {
            return self.run_here(values, others, f);
        }
        // Plain state cannot be laid over: each run works on its own.
        let copy = Overlay::aside(|| Instance::new(self.module.copy(&mut Copies::default())))?;
        let mut loaded = Ok(());
        walk(copy.module.node(), |path, node| {
            if let (Node::State(state), Some(value), true) = (node, values.remove(path), loaded.is_ok()) {
                loaded =
                    value.to_vec::<u8>().and_then(|bytes| state.load(&bytes)).map_err(|e| e.within(path));
            }
        });
        loaded?;
        let mut ran = copy.run_here(values, others, f)?;
        ran.values.extend(plain_values(&copy.module)?);
        Ok(ran)
    }

    fn run_here<R>(
        &self,
        mut values: Values,
        others: Vec<(Variable, Tensor)>,
        f: impl FnOnce(&M) -> Result<R>,
    ) -> Result<Ran<R>> {
        let outside: Vec<Variable> = others.iter().map(|(variable, _)| variable.clone()).collect();
        let with_value = |(path, v): (&String, &Variable)| Some((v.clone(), values.remove(path)?));
        let own: Vec<_> = self.variables.iter().filter_map(with_value).collect();
        let overlay = Overlay::new(own.into_iter().chain(others)).without_creation();
        let (result, mut left) = overlay.run(|| f(&self.module));
        let result = result?;
        let after = self.variables.iter().filter_map(|(path, v)| Some((path.clone(), left.take(v)?)));
        let values = after.collect();
        let others = outside.iter().filter_map(|variable| left.take(variable)).collect();
        check_left(&left)?;
        Ok(Ran { result, values, others })
    }
}

/// The state below a module that is no variable, as tensors of bytes.
pub(super) fn plain_values(module: &impl Visit) -> Result<Values> {
    let mut values = Ok(Values::new());
    walk(module.node(), |path, node| {
        if let (Node::State(state), Ok(list)) = (node, &mut values) {
            match state.save() {
                Ok(bytes) => drop(list.insert(path.to_owned(), Tensor::from(bytes))),
                Err(e) => values = Err(e.within(path)),
            }
        }
    });
    values
}

/// Refuses changes to variables that are none of the module's.
pub(super) fn check_left(left: &Overlay) -> Result<()> {
    let names = left.left();
    if names.is_empty() {
        return Ok(());
    }
    let problem = format!("the function changes variables that are not in its module: {}", names.join(", "));
    Err(Error::usage("transform", problem, "transform a module or a tuple that holds all it changes"))
}
