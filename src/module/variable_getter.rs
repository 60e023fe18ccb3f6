//! What modules see of their variables, for the time of a call.

use super::Module;
use super::collect::parts;
use super::visit::{Edges, Node};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::variable::Variable;
use crate::variable::getter::{Targets, with_getter};

/// A function that takes the place of reading variables; see [`custom_variable_getter`].
#[must_use = "nothing happens until `run` is called"]
pub struct CustomVariableGetter<G> {
    getter: G,
    targets: Option<Targets>,
}

/// Lets `getter` stand between variables and what reads them on this thread: each read of `v` gives `getter(v)`. Gradients
/// flow through it. With it come weight noise, spectral normalisation or gradients that stop at the variables, without a
/// change of the modules.
///
/// ```
/// use couplet::custom_variable_getter;
/// use couplet::prelude::*;
/// let (first, second) = (Linear::new(1).w_init(init::Ones), Linear::new(1).w_init(init::Ones));
/// let x = Tensor::from([[1.0f32]]);
/// let y = || second.forward(&first.forward(&x)?);
/// assert_eq!(custom_variable_getter(|v| v * 3.0).run(y)?.item::<f32>()?, 9.0);
/// assert_eq!(custom_variable_getter(|v| v * 3.0).instances([&first]).run(y)?.item::<f32>()?, 3.0);
/// assert_eq!(y()?.item::<f32>()?, 1.0);
/// # Ok::<(), couplet::Error>(())
/// ```
///
/// Variables that are made meanwhile start as always; only what is read of them passes through `getter`. Inside `getter`
/// variables read as they are. Of several getters that are meant for a variable, the outermost is called.
///
/// A class of modules is a choice of instances:
///
/// ```
/// # use couplet::custom_variable_getter;
/// # use couplet::prelude::*;
/// # let (net, x) = (MLP::new([4, 1]), Tensor::from([[1.0f32]]));
/// let linears = net.submodules().into_iter().filter(|module| module.kind() == "Linear");
/// let y = custom_variable_getter(|v| Ok(v.value().stop_gradient())).instances(linears).run(|| net.forward(&x))?;
/// # Ok::<(), couplet::Error>(())
/// ```
pub fn custom_variable_getter<G>(getter: G) -> CustomVariableGetter<G>
where
    G: Fn(&Variable) -> Result<Tensor> + 'static,
{
    CustomVariableGetter { getter, targets: None }
}

impl<G: Fn(&Variable) -> Result<Tensor> + 'static> CustomVariableGetter<G> {
    /// Restricts the getter to the variables that these modules hold themselves, those of their submodules left out; called
    /// again, to those of the new ones too. Default: all variables.
    pub fn instances<'a, M: Module + ?Sized + 'a>(
        mut self,
        modules: impl IntoIterator<Item = &'a M>,
    ) -> Self {
        let targets = self.targets.get_or_insert_default();
        for module in modules {
            targets.scopes.insert(module.scope().id());
            add_own(parts(module.as_module()), targets);
        }
        self
    }

    /// Runs `f` with the getter in place.
    ///
    /// # Errors
    /// The getter failed, or `f` did.
    pub fn run<R>(self, f: impl FnOnce() -> Result<R>) -> Result<R> {
        with_getter(Box::new(self.getter), self.targets, f)
    }
}

/// Adds the variables among some parts, not those of modules among them.
fn add_own(edges: Edges<'_>, targets: &mut Targets) {
    for edge in edges {
        match edge.node {
            Node::Variable(variable) => drop(targets.variables.insert(variable.id())),
            Node::Group(edges) | Node::Growing(edges, _) => add_own(edges, targets),
            Node::Nothing | Node::Module(_) | Node::Empty(_) | Node::State(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::prelude::*;

    fn item(y: Result<Tensor>) -> f32 {
        y.unwrap().item().unwrap()
    }

    fn variable(value: f32) -> Variable {
        Variable::from_tensor("v", Tensor::from(value))
    }

    #[test]
    fn reads_are_transformed_inside_and_restored_outside_also_after_an_error_or_a_panic() {
        let v = variable(21.0);
        let doubled = || custom_variable_getter(|v| v * 2.0);
        assert_eq!(item(doubled().run(|| Ok(v.value()))), 42.0);
        assert_eq!(item(Ok(v.value())), 21.0);
        assert!(doubled().run(|| v.assign(&Tensor::from(1i64))).is_err());
        assert_eq!(item(Ok(v.value())), 21.0);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            doubled().run(|| -> Result<()> { panic!("a panic of this test") })
        }));
        assert!(panicked.is_err());
        assert_eq!(item(Ok(v.value())), 21.0);
    }

    #[test]
    fn variables_made_inside_start_as_always() {
        let layer = Linear::new(1).w_init(init::Ones).b_init(init::Ones);
        let y = custom_variable_getter(|v| v * 10.0).run(|| layer.forward(&Tensor::from([[1.0f32]])));
        assert_eq!(item(y), 20.0);
        assert_eq!(item(layer.forward(&Tensor::from([[1.0f32]]))), 2.0);
    }

    #[test]
    fn instances_include_variables_that_they_make_later_and_leave_out_those_of_submodules() {
        let net = MLP::new([1, 1]).w_init(init::Ones);
        let x = Tensor::from([[1.0f32]]);
        let triple = |modules: Vec<&dyn Module>| {
            item(custom_variable_getter(|v| v * 3.0).instances(modules).run(|| net.forward(&x)))
        };
        let before = triple(net.submodules());
        assert_eq!((before, triple(net.submodules())), (9.0, 9.0));
        assert_eq!(triple(net.submodules()[..1].to_vec()), 3.0);
        assert_eq!(triple(vec![&net]), 1.0);
        assert_eq!(triple(vec![]), 1.0);
    }

    #[test]
    fn the_outermost_getter_is_the_one_that_counts() {
        let v = variable(2.0);
        let inner = || custom_variable_getter(|v| v + 1.0).run(|| Ok(v.value()));
        assert_eq!(item(custom_variable_getter(|v| v * 10.0).run(inner)), 20.0);
        let elsewhere: [&Linear; 0] = [];
        assert_eq!(item(custom_variable_getter(|v| v * 10.0).instances(elsewhere).run(inner)), 3.0);
    }

    #[test]
    fn an_error_of_the_getter_comes_out() {
        let v = variable(2.0);
        let refused = |_: &Variable| Err(Error::usage("getter", "no reads today", "come back tomorrow"));
        let result = custom_variable_getter(refused).run(|| Ok(v.value()));
        assert!(result.unwrap_err().to_string().contains("no reads today"));
    }

    #[test]
    fn gradients_flow_through_the_getter_or_stop_there() {
        let v = variable(3.0);
        let gradient =
            |y: Result<Tensor>, tape: GradientTape| tape.gradient(&y.unwrap(), &[&v]).unwrap().remove(0);
        let tape = GradientTape::new();
        let y = custom_variable_getter(|v| v * 2.0).run(|| Ok(v.value())).and_then(|x| &x * &x);
        // (2 v)^2 has the derivative 8 v.
        assert_eq!(item(gradient(y, tape).unwrap().to_dense()), 24.0);
        let tape = GradientTape::new();
        let y = custom_variable_getter(|v| Ok(v.value().stop_gradient())).run(|| v.value() * 1.0);
        assert!(gradient(y, tape).is_none());
    }

    #[test]
    fn the_list_of_variables_and_what_they_hold_are_untouched() {
        let layer = Linear::new(1).w_init(init::Ones);
        let x = Tensor::from([[1.0f32]]);
        custom_variable_getter(|v| v * 2.0)
            .run(|| {
                layer.forward(&x)?;
                assert_eq!(layer.variables()?.len(), 2);
                optim::SGD::new(1.0)
                    .apply(&[Some(Tensor::from([[0.25f32]]).into())], &layer.variables()?[1..])
            })
            .unwrap();
        assert_eq!(item(layer.forward(&x)), 0.75);
    }
}
