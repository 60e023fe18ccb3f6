//! Recomputation gives the gradients of the plain function and keeps nothing of its inside.

use super::*;
use crate::autodiff::no_grad;
use crate::nn::{BatchNorm, Dropout, Linear};
use crate::ops::record::with_recorder;
use crate::{DType, Forward, Module, Slice, Variable, random};

fn list(g: &Option<Gradient>) -> Vec<f64> {
    g.as_ref().expect("a gradient").to_dense().unwrap().to_vec().unwrap()
}

fn recorded() -> usize {
    with_recorder(|r| r.records.len()).unwrap()
}

fn kept() -> usize {
    with_recorder(|r| r.records.iter().flatten().count()).unwrap()
}

#[test]
fn a_model_with_draws_and_averages_trains_to_the_same_bits_and_keeps_one_record() -> Result<()> {
    let train = |recomputed: bool| -> Result<Vec<Vec<f32>>> {
        random::with(&random::Generator::seed(5), || {
            let x = random::current().normal([6, 4], 0.0, 1.0, DType::F32)?;
            let (norm, layer, dropout) = (BatchNorm::new(true, true), Linear::new(3), Dropout::new(0.4));
            let mut found = Vec::new();
            for _ in 0..2 {
                let tape = GradientTape::new();
                let block = || {
                    let h = norm.forward_t(&x, true)?;
                    dropout.forward_t(&layer.forward(&h)?.tanh()?, true)
                };
                let y = if recomputed { recompute(block)? } else { block()? };
                assert!(!recomputed || recorded() == 1);
                let mut params = norm.trainable_variables()?;
                params.extend(layer.trainable_variables()?);
                for (g, v) in tape.gradient(&(&y * &y)?.sum()?, &params)?.into_iter().zip(&params) {
                    let g = g.expect("all are used").to_dense()?;
                    v.assign_sub(&(&g * 0.1)?)?;
                    found.push(g.to_vec()?);
                }
            }
            for v in norm.variables()? {
                found.push(v.value().cast(DType::F32)?.to_vec()?);
            }
            Ok(found)
        })
    };
    assert_eq!(train(true)?, train(false)?);
    Ok(())
}

#[test]
fn derivatives_of_higher_order_pass_through() -> Result<()> {
    let x = Tensor::from([0.3f64, -1.2]);
    let second = |f: &dyn Fn(&Tensor) -> Result<Tensor>| -> Result<Vec<f64>> {
        let (outer, inner) = (GradientTape::new(), GradientTape::new());
        outer.watch(&x);
        inner.watch(&x);
        let dx = inner.gradient(&f(&x)?.sum()?, &[&x])?.remove(0).expect("depends on x").to_dense()?;
        Ok(list(&outer.gradient(&dx.square()?.sum()?, &[&x])?[0]))
    };
    let f = |x: &Tensor| x.exp()?.sin()? * x;
    assert_eq!(second(&|x| recompute(|| f(x)))?, second(&f)?);
    crate::autodiff::check_gradients(|x| recompute(|| f(&x[0])), &[&x], 1e-6)
}

#[test]
fn calls_nest_and_a_persistent_tape_walks_twice() -> Result<()> {
    let (x, w) = (Tensor::from([0.3f64, -1.2]), Variable::from_tensor("w", Tensor::from([2.0f64, 0.5])));
    let tape = GradientTape::persistent();
    tape.watch(&x);
    let y = recompute(|| {
        let h = recompute(|| x.exp()? * &w)?;
        h.sin()? * recompute(|| (&h * &w)?.tanh())?
    })?;
    assert_eq!(recorded(), 1);
    let y = y.sum()?;
    let first = tape.gradient(&y, &[&x as &dyn crate::Source, &w])?;
    assert_eq!(kept(), 2);
    let again = tape.gradient(&y, &[&x as &dyn crate::Source, &w])?;
    let plain = GradientTape::new();
    plain.watch(&x);
    let h = (x.exp()? * &w)?;
    let y = (h.sin()? * (&h * &w)?.tanh()?)?.sum()?;
    let want = plain.gradient(&y, &[&x as &dyn crate::Source, &w])?;
    for i in 0..2 {
        assert_eq!((list(&first[i]), list(&again[i])), (list(&want[i]), list(&want[i])));
    }
    Ok(())
}

#[test]
fn several_results_some_of_them_from_outside_or_without_a_gradient() -> Result<()> {
    let (x, c) = (Tensor::from([[1.0f64, 3.0], [2.0, 0.5]]), Tensor::from([1.0f64, 10.0]));
    let tape = GradientTape::new();
    tape.watch(&x);
    let outputs = recompute_many(|| {
        let constant = (&c * 2.0)?;
        Ok(vec![(x.max_axes(1, false)? * &constant)?, x.argmax(1)?, x.clone(), c.clone()])
    })?;
    assert_eq!(outputs[1].to_vec::<i64>()?, [1, 0]);
    assert_eq!(outputs[3].to_vec::<f64>()?, [1.0, 10.0]);
    let y = (outputs[0].sum()? + outputs[2].sum()?)?;
    assert_eq!(list(&tape.gradient(&y, &[&x])?[0]), [1.0, 3.0, 21.0, 1.0]);
    Ok(())
}

#[test]
fn what_is_computed_without_recording_is_a_constant_of_the_second_run() -> Result<()> {
    let x = Tensor::from([2.0f64]);
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = recompute(|| {
        let square = no_grad(|| {
            let inner = GradientTape::new();
            inner.watch(&x);
            inner.gradient(&(&x * &x)?.sum()?, &[&x])?.remove(0).expect("depends on x").to_dense()
        })?; // 2 x = 4, constant
        &x * square
    })?;
    assert_eq!(list(&tape.gradient(&y.sum()?, &[&x])?[0]), [4.0]);
    Ok(())
}

#[test]
fn a_tape_inside_works_and_one_from_outside_waits() -> Result<()> {
    let x = Tensor::from([3.0f64]);
    let tape = GradientTape::persistent();
    tape.watch(&x);
    let y = recompute(|| {
        let inner = GradientTape::new();
        inner.watch(&x);
        let y = ((&x * &x)? * &x)?;
        inner.gradient(&y, &[&x])?.remove(0).expect("depends on x").to_dense() // 3 x^2
    })?;
    assert_eq!(list(&tape.gradient(&y, &[&x])?[0]), [18.0]);
    let refused = recompute(|| {
        let y = (&x * &x)?;
        tape.gradient(&y, &[&x])?;
        Ok(y)
    });
    assert!(refused.unwrap_err().to_string().contains("after recompute"));
    let mut leaked = None;
    let refused = recompute(|| {
        leaked = Some(GradientTape::new());
        &x * &x
    });
    assert!(refused.unwrap_err().to_string().contains("still there"));
    drop(leaked);
    let y = recompute(|| (&x * &x)?.exp())?;
    assert!(list(&tape.gradient(&y, &[&x])?[0])[0] > 0.0);
    Ok(())
}

#[test]
fn a_failure_or_a_panic_inside_leaves_the_tape_as_it_was() -> Result<()> {
    let x = Tensor::from([3.0f64, 4.0]);
    let tape = GradientTape::new();
    tape.watch(&x);
    let before = (&x * 2.0)?;
    assert!(recompute(|| (&before * &x)?.slice(&[Slice::Index(7)])).is_err());
    let panics = || recompute(|| if x.exp().is_ok() { panic!("by intent") } else { x.exp() });
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    assert_eq!(recorded(), 1);
    assert_eq!(list(&tape.gradient(&(&before * &x)?.sum()?, &[&x])?[0]), [12.0, 16.0]);
    Ok(())
}

#[test]
fn the_second_run_leaves_nothing_on_the_list() -> Result<()> {
    let x = Tensor::from([0.5f64]);
    let tape = GradientTape::new();
    tape.watch(&x);
    let mut y = x.clone();
    for _ in 0..3 {
        y = recompute(|| y.sin()?.exp()?.tanh())?;
    }
    let seen = std::rc::Rc::new(std::cell::Cell::new(0));
    let most = seen.clone();
    let tape = tape.inspect(move |_| {
        most.set(most.get().max(kept()));
        Ok(())
    });
    tape.gradient(&y.sum()?, &[&x])?;
    // The walk consumes the tape, and each block runs its three ops while the others are not there.
    assert!(seen.get() <= 3, "{}", seen.get());
    Ok(())
}
