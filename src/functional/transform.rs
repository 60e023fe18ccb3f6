//! Functions of parameters, made from a module and what is computed with it.

use crate::error::{Error, Result};
use crate::module::Visit;
use crate::random::{self, Generator};

use super::instance::{Instance, Values};
use super::template::{Latest, Template};
use super::{Params, State};

/// A function of parameters, made by [`transform`].
///
/// It is `Sync` where the module and the function are: threads call it at once, each with parameters of its own.
pub struct Transformed<M, F>(TransformedWithState<M, F>);

/// A function of parameters and state, made by [`transform_with_state`].
pub struct TransformedWithState<M, F> {
    template: Template<M>,
    latest: Latest<Instance<M>>,
    f: F,
}

/// Makes a function of parameters out of a module and what is computed with it.
///
/// `module` is anything that holds modules: one of them, a tuple, a vector. It is copied now and stays as it is, built or not.
/// `f` gets a copy, and an input of any one type; a tuple carries several.
///
/// ```
/// use couplet::{functional, prelude::*};
/// let f = functional::transform(&Linear::new(2), |linear, x: &Tensor| linear.forward(x));
/// let x = Tensor::ones([1, 3], DType::F32)?;
/// let params = f.init(&Generator::seed(1), &x)?;
/// assert_eq!(params.keys().collect::<Vec<_>>(), ["b", "w"]);
/// let again = f.init(&Generator::seed(1), &x)?;
/// assert_eq!(f.apply(&params, &x)?.to_vec::<f32>()?, f.apply(&again, &x)?.to_vec::<f32>()?);
/// # Ok::<(), couplet::Error>(())
/// ```
pub fn transform<M, X, Y, F>(module: &M, f: F) -> Transformed<M, F>
where
    M: Visit,
    X: ?Sized,
    F: Fn(&M, &X) -> Result<Y>,
{
    Transformed(transform_with_state(module, f))
}

/// As [`transform`], for modules that hold more than what is trained: moving averages, counters, generators. That is a second
/// map, which `apply` takes and returns.
///
/// ```
/// use couplet::{functional, prelude::*};
/// let average = ExponentialMovingAverage::new(0.5);
/// let f = functional::transform_with_state(&average, |average, x: &Tensor| {
///     average.update(x)?;
///     average.value()
/// });
/// let x = Tensor::from(3.0f32);
/// let (params, state) = f.init(&Generator::seed(1), &x)?;
/// assert_eq!((params.len(), state["average"].item::<f32>()?), (0, 0.0));
/// let (_, state) = f.apply(&params, &state, &x)?;
/// let (y, state) = f.apply(&params, &state, &Tensor::from(6.0f32))?;
/// assert_eq!(y.item::<f32>()?, 5.0); // (0.25 * 3 + 0.5 * 6) / (1 - 0.5^2)
/// assert_eq!(state["_counter"].item::<i64>()?, 2);
/// # Ok::<(), couplet::Error>(())
/// ```
pub fn transform_with_state<M, X, Y, F>(module: &M, f: F) -> TransformedWithState<M, F>
where
    M: Visit,
    X: ?Sized,
    F: Fn(&M, &X) -> Result<Y>,
{
    TransformedWithState { template: Template::new(module), latest: Latest::none(), f }
}

impl<M: Visit, F> TransformedWithState<M, F> {
    /// Parameters and state at their start. The function is called once with `x`, which makes all variables; what
    /// it computes and what it assigns is forgotten. Initial values, and what else is drawn, come from `generator`; a module
    /// that was built before keeps its values.
    ///
    /// # Errors
    /// Those of the function.
    pub fn init<X, Y>(&self, generator: &Generator, x: &X) -> Result<(Params, State)>
    where
        X: ?Sized,
        F: Fn(&M, &X) -> Result<Y>,
    {
        let call = |module: &M| (self.f)(module, x).map(drop);
        let (instance, values) = random::with(generator, || self.template.init(call))?;
        Ok(self.latest.keep(instance).split(values))
    }

    /// The result of the function with these parameters and this state, and the state afterwards.
    ///
    /// What the function assigns to parameters ends with the call. Where the variables of another module are needed than
    /// last time, as in the first call without an `init` before, the function is called once more before, which makes them;
    /// that draws nothing from the thread's generator.
    ///
    /// ```
    /// use couplet::{functional, prelude::*};
    /// let norm = BatchNorm::new(false, false).decay_rate(0.5);
    /// let f = functional::transform_with_state(&norm, |norm, x: &Tensor| norm.forward_t(x, true));
    /// let x = Tensor::from([[1.0f32], [3.0]]);
    /// let (params, state) = f.init(&Generator::seed(1), &x)?;
    /// let (y, after) = f.apply(&params, &state, &x)?;
    /// assert!((y.to_vec::<f32>()?[1] - 1.0).abs() < 1e-3);
    /// assert_eq!(state["moving_mean/_counter"].item::<i64>()?, 0);
    /// assert_eq!(after["moving_mean/_counter"].item::<i64>()?, 1);
    /// assert!(f.apply(&params, &functional::State::new(), &x).is_err());
    /// # Ok::<(), couplet::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the function; it makes a variable, or changes one that is not in its module; or parameters and state are not
    /// those of the module: all differences are listed by path.
    pub fn apply<X, Y>(&self, params: &Params, state: &State, x: &X) -> Result<(Y, State)>
    where
        X: ?Sized,
        F: Fn(&M, &X) -> Result<Y>,
    {
        let mut values: Values = params.clone();
        for (path, value) in state {
            if values.insert(path.clone(), value.clone()).is_some() {
                let problem = format!("{path} is both among the parameters and in the state");
                return Err(Error::usage("apply", problem, "give the maps that init returned"));
            }
        }
        let call = |module: &M| (self.f)(module, x);
        let instance = match self.latest.that(|latest| latest.differences(&values).is_empty()) {
            Some(latest) => latest,
            None => self.latest.keep(self.template.instance(&values, |module| call(module).map(drop))?),
        };
        let ran = instance.run(values, Vec::new(), call)?;
        let after = ran.values.into_iter().filter(|(path, _)| state.contains_key(path));
        Ok((ran.result, after.collect()))
    }

    /// The same function for a module that turns out to hold no state.
    ///
    /// ```
    /// use couplet::{functional, prelude::*};
    /// let f = functional::transform_with_state(&Linear::new(1), |linear, x: &Tensor| linear.forward(x));
    /// let (f, x) = (f.without_state(), Tensor::ones([1, 2], DType::F32)?);
    /// let params = f.init(&Generator::seed(1), &x)?;
    /// assert_eq!(f.apply(&params, &x)?.shape(), &[1, 1]);
    /// # Ok::<(), couplet::Error>(())
    /// ```
    #[must_use]
    pub fn without_state(self) -> Transformed<M, F> {
        Transformed(self)
    }
}

impl<M: Visit, F> Transformed<M, F> {
    /// Parameters at their start, as in [`TransformedWithState::init`].
    ///
    /// # Errors
    /// Those of the function, or the module holds something that is not trained.
    pub fn init<X, Y>(&self, generator: &Generator, x: &X) -> Result<Params>
    where
        X: ?Sized,
        F: Fn(&M, &X) -> Result<Y>,
    {
        let (params, state) = self.0.init(generator, x)?;
        let mut paths = state.keys();
        let Some(first) = paths.next() else { return Ok(params) };
        let others = paths.count();
        let rest = if others == 0 { String::new() } else { format!(" and {others} others") };
        let problem = format!("the module holds what is not trained: {first}{rest}");
        Err(Error::usage("transform", problem, "make the function with transform_with_state"))
    }

    /// The result of the function with these parameters, as in [`TransformedWithState::apply`].
    ///
    /// # Errors
    /// As there.
    pub fn apply<X, Y>(&self, params: &Params, x: &X) -> Result<Y>
    where
        X: ?Sized,
        F: Fn(&M, &X) -> Result<Y>,
    {
        self.0.apply(params, &State::new(), x).map(|(y, _)| y)
    }
}
