//! Variables made before the first input.

use super::*;
use crate::{Spec, build, build_with, random};

#[test]
fn building_makes_the_variables_and_nothing_else() {
    let affine = Affine::new(2);
    let output = build(&affine, [None, Some(3)]).unwrap();
    assert_eq!(output, Spec::from([None, Some(2)]));
    let variables = affine.variables().unwrap();
    assert_eq!(names(&variables), ["affine/b", "affine/calls", "affine/w"]);
    assert_eq!(variables.iter().map(value).collect::<Vec<_>>(), [vec![1.0; 2], vec![0.0], vec![1.0; 6]]);
}

#[test]
fn building_draws_for_initialisers_alone() {
    let layer = |x: &Tensor| x + random::current().normal(x.shape().clone(), 0.0, 1.0, x.dtype())?;
    let generator = random::Generator::seed(1);
    random::with(&generator, || build(&layer, [None, Some(3)]).unwrap());
    assert_eq!(generator.state(), random::Generator::seed(1).state());
    let draw = || random::current().normal([4], 0.0, 1.0, DType::F32);
    let made = |run: &dyn Fn() -> Result<Variable>| value(&random::with(&generator, run).unwrap());
    let create = || Variable::create("v", &Shape::from([4]), DType::F32, true, draw);
    let first = made(&|| build_with(&[], |_| create()));
    assert_ne!(made(&create), first);
    generator.restore(random::Generator::seed(1).state());
    assert_eq!(made(&create), first);
}

#[test]
fn a_module_that_cannot_be_built_stays_as_it_was() {
    let affine = Affine::new(2);
    assert!(build(&affine, [None, None]).unwrap_err().to_string().contains("depends on a dim that is open"));
    assert!(build(&affine, [3]).is_err());
    assert!(affine.variables().is_err());
}

#[test]
fn other_calls_are_built_with_a_closure() {
    let (a, b) = (Affine::new(2), Affine::new(2));
    let inputs = [Spec::from([None, Some(3)]), Spec::from([None, Some(5)])];
    let y = build_with(&inputs, |x| a.forward(&x[0])? + b.forward(&x[1])?).unwrap();
    assert_eq!(y.shape(), &[2, 2]);
    assert_eq!(b.w.get().unwrap().shape(), &[5, 2]);
    assert_eq!(value(b.calls.get().unwrap()), [0.0]);
}
