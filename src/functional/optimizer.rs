//! Optimisers as functions of parameters and state.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ops::Gradient;
use crate::optim::{Adam, HyperParameter, Momentum, Optimizer, RMSProp, SGD};
use crate::tensor::Tensor;
use crate::variable::Variable;

use super::instance::Instance;
use super::template::{Latest, Template};
use super::{Gradients, Params, State};

/// An optimiser as functions, made by [`optimizer`] or one of [`sgd`], [`momentum`], [`rmsprop`] and [`adam`].
///
/// Threads may use one at once; their steps come one after the other.
pub struct Updater<O> {
    template: Template<O>,
    latest: Latest<Ready<O>>,
}

/// A copy of the optimiser that knows these parameters.
struct Ready<O> {
    instance: Instance<O>,
    /// In the order of their paths, which are their names.
    parameters: Vec<Variable>,
}

/// Makes functions of an optimiser: `init`, which gives the state it starts with, and `apply`, which makes a step.
///
/// The state maps the optimiser's own paths to values: `step`, `m/0`, `m/1`, .. for Adam, where the parameters are counted in
/// the order of their paths. A hyper-parameter that is a variable is in it too, under its name.
///
/// ```
/// use couplet::{functional, prelude::*};
/// let optimizer = functional::optimizer(optim::Momentum::new(0.1, 0.9).use_nesterov(true));
/// let params = functional::Params::from([("w".to_owned(), Tensor::from([1.0f32, 2.0]))]);
/// let state = optimizer.init(&params)?;
/// let (_, grads) = functional::value_and_grad(|params| params["w"].square()?.sum(), &params)?;
/// let (new, state) = optimizer.apply(state, &grads, params.clone())?;
/// assert_eq!(params["w"].to_vec::<f32>()?, [1.0, 2.0]);
/// assert_eq!(new["w"].to_vec::<f32>()?, [0.62, 1.24]); // w - 0.1 (0.9 * 2 w + 2 w)
/// assert_eq!(state["accumulated_momentum/0"].to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
pub fn optimizer<O: Optimizer>(optimizer: O) -> Updater<O> {
    Updater { template: Template::new(&optimizer), latest: Latest::none() }
}

/// [`SGD`] as functions.
///
/// ```
/// use couplet::functional::{self, Params};
/// use couplet::prelude::*;
/// let optimizer = functional::sgd(0.25);
/// let params = Params::from([("w".to_owned(), Tensor::from([1.0f32]))]);
/// let grads = functional::grad(|params| params["w"].square()?.sum(), &params)?;
/// let state = optimizer.init(&params)?;
/// let (params, state) = optimizer.apply(state, &grads, params)?;
/// assert_eq!(params["w"].to_vec::<f32>()?, [0.5]); // w - 0.25 * 2 w
/// assert!(state.is_empty());
/// # Ok::<(), couplet::Error>(())
/// ```
pub fn sgd(learning_rate: impl Into<HyperParameter>) -> Updater<SGD> {
    optimizer(SGD::new(learning_rate))
}

/// [`Momentum`] as functions.
///
/// ```
/// use couplet::functional::{self, Params};
/// use couplet::prelude::*;
/// let optimizer = functional::momentum(0.25, 0.5);
/// let params = Params::from([("w".to_owned(), Tensor::from([1.0f32]))]);
/// let grads = functional::grad(|params| params["w"].square()?.sum(), &params)?;
/// let state = optimizer.init(&params)?;
/// let (params, state) = optimizer.apply(state, &grads, params)?;
/// assert_eq!(params["w"].to_vec::<f32>()?, [0.5]);
/// assert_eq!(state["accumulated_momentum/0"].to_vec::<f32>()?, [2.0]);
/// # Ok::<(), couplet::Error>(())
/// ```
pub fn momentum(
    learning_rate: impl Into<HyperParameter>,
    momentum: impl Into<HyperParameter>,
) -> Updater<Momentum> {
    optimizer(Momentum::new(learning_rate, momentum))
}

/// [`RMSProp`] as functions, with its defaults.
///
/// ```
/// use couplet::functional::{self, Params};
/// use couplet::prelude::*;
/// let optimizer = functional::rmsprop(0.25);
/// let params = Params::from([("w".to_owned(), Tensor::from([1.0f32]))]);
/// let grads = functional::grad(|params| params["w"].square()?.sum(), &params)?;
/// let state = optimizer.init(&params)?;
/// let (params, state) = optimizer.apply(state, &grads, params)?;
/// assert!(params["w"].item::<f32>()? < 1.0);
/// assert!((state["ms/0"].item::<f32>()? - 0.4).abs() < 1e-6); // 0.1 * 2^2
/// # Ok::<(), couplet::Error>(())
/// ```
pub fn rmsprop(learning_rate: impl Into<HyperParameter>) -> Updater<RMSProp> {
    optimizer(RMSProp::new(learning_rate))
}

/// [`Adam`] as functions, with the paper's coefficients.
///
/// ```
/// use couplet::functional::{self, Params};
/// use couplet::prelude::*;
/// let optimizer = functional::adam(0.25);
/// let params = Params::from([("w".to_owned(), Tensor::from([1.0f32]))]);
/// let grads = functional::grad(|params| params["w"].square()?.sum(), &params)?;
/// let state = optimizer.init(&params)?;
/// let (params, state) = optimizer.apply(state, &grads, params)?;
/// assert!((params["w"].item::<f32>()? - 0.75).abs() < 1e-6); // the first step has the length of the rate
/// assert_eq!(state["step"].item::<i64>()?, 1);
/// # Ok::<(), couplet::Error>(())
/// ```
pub fn adam(learning_rate: impl Into<HyperParameter>) -> Updater<Adam> {
    optimizer(Adam::new(learning_rate))
}

impl<O: Optimizer> Updater<O> {
    /// The state before the first step.
    ///
    /// # Errors
    /// There are no parameters, or one is not of a float dtype.
    pub fn init(&self, params: &Params) -> Result<State> {
        let parameters = variables(params)?;
        let (instance, state) = self.template.init(|optimizer| make_slots(optimizer, &parameters))?;
        self.latest.keep(Ready { instance, parameters });
        Ok(state)
    }

    /// One step: parameters and state afterwards. A parameter without a gradient stays as it is.
    ///
    /// Parameters and state are taken, and changed in place where nobody else holds them. Pass a clone, which costs nothing
    /// until then, to keep the old ones.
    ///
    /// # Errors
    /// Those of [`Optimizer::apply`]; a gradient has no parameter; the state is not that of these parameters.
    pub fn apply(&self, state: State, gradients: &Gradients, params: Params) -> Result<(Params, State)> {
        if let Some(path) = gradients.keys().find(|path| !params.contains_key(*path)) {
            let problem = format!("there is a gradient for {path}, but no such parameter");
            return Err(Error::usage("apply", problem, "give the parameters that were differentiated"));
        }
        let fits = |latest: &Ready<O>| latest.fits(&params) && latest.instance.differences(&state).is_empty();
        let ready = match self.latest.that(fits) {
            Some(latest) => latest,
            None => self.ready(&state, &params)?,
        };
        let updates: Vec<Option<Gradient>> = params.keys().map(|path| gradients.get(path).cloned()).collect();
        let (paths, values): (Vec<String>, Vec<Tensor>) = params.into_iter().unzip();
        let given = ready.parameters.iter().cloned().zip(values).collect();
        let step = |optimizer: &O| optimizer.apply(&updates, &ready.parameters);
        let ran = ready.instance.run(state, given, step)?;
        Ok((paths.into_iter().zip(ran.others).collect(), ran.values))
    }

    fn ready(&self, state: &State, params: &Params) -> Result<Arc<Ready<O>>> {
        let parameters = variables(params)?;
        let instance = self.template.instance(state, |optimizer| make_slots(optimizer, &parameters))?;
        Ok(self.latest.keep(Ready { instance, parameters }))
    }
}

impl<O> Ready<O> {
    fn fits(&self, params: &Params) -> bool {
        let same = |(variable, (path, value)): (&Variable, (&String, &Tensor))| {
            variable.name() == path && variable.shape() == value.shape() && variable.dtype() == value.dtype()
        };
        self.parameters.len() == params.len() && self.parameters.iter().zip(params).all(same)
    }
}

/// Variables that stand for the parameters.
fn variables(params: &Params) -> Result<Vec<Variable>> {
    let variable = |(path, value): (&String, &Tensor)| {
        let variable = Variable::from_tensor(path, value.clone());
        variable.release()?;
        Ok(variable)
    };
    params.iter().map(variable).collect()
}

/// Makes the slots, by a step that changes none of the parameters.
fn make_slots(optimizer: &impl Optimizer, parameters: &[Variable]) -> Result<()> {
    let zero = |parameter: &Variable| {
        let zero = Tensor::zeros([], parameter.dtype())?.broadcast_to(parameter.shape().clone())?;
        Ok(Some(Gradient::from(zero)))
    };
    let zeros: Vec<_> = parameters.iter().map(zero).collect::<Result<_>>()?;
    parameters.iter().for_each(|parameter| parameter.set_frozen(true));
    let made = optimizer.apply(&zeros, parameters);
    parameters.iter().for_each(|parameter| parameter.set_frozen(false));
    made
}
