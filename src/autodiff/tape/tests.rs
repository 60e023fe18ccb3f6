//! Tapes: what they watch, how they nest, what they refuse.

use super::*;
use crate::variable::Variable;

fn scalar(g: &Option<Gradient>) -> f64 {
    g.as_ref().expect("a gradient").dense().unwrap().item::<f64>().unwrap()
}

#[test]
fn repeated_use_adds_up() -> Result<()> {
    let x = Tensor::from(3.0f64);
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = ((&x * &x)? * &x)?; // 3 x^2 = 27
    assert_eq!(scalar(&tape.gradient(&y, &[&x])?[0]), 27.0);
    Ok(())
}

#[test]
fn nested_tapes_give_second_derivatives() -> Result<()> {
    let x = Tensor::from(3.0f64);
    let outer = GradientTape::new();
    outer.watch(&x);
    let inner = GradientTape::new();
    inner.watch(&x);
    let y = ((&x * &x)? * &x)?;
    let dx = inner.gradient(&y, &[&x])?.remove(0).expect("y depends on x").to_dense()?;
    assert_eq!(scalar(&outer.gradient(&dx, &[&x])?[0]), 18.0);
    Ok(())
}

#[test]
fn an_inner_tape_sees_only_what_it_watches() -> Result<()> {
    let x = Tensor::from(3.0f64);
    let outer = GradientTape::new();
    outer.watch(&x);
    let z = (&x * 2.0)?;
    let inner = GradientTape::persistent();
    let y = (&z * &z)?;
    assert!(inner.gradient(&y, &[&x])?[0].is_none());
    inner.watch(&z);
    let y = (&z * &z)?;
    assert!(inner.gradient(&y, &[&x])?[0].is_none());
    assert_eq!(scalar(&inner.gradient(&y, &[&z])?[0]), 12.0);
    drop(inner);
    assert_eq!(scalar(&outer.gradient(&y, &[&x])?[0]), 24.0);
    Ok(())
}

#[test]
fn variables_are_watched_when_read_unless_frozen_or_not_trainable() -> Result<()> {
    let (v, w) =
        (Variable::from_tensor("v", Tensor::from(2.0f64)), Variable::from_tensor("w", Tensor::from(5.0f64)));
    w.set_frozen(true);
    let tape = GradientTape::persistent();
    let y = ((&v * &v)? * &w)?;
    let g = tape.gradient(&y, &[&v, &w])?;
    assert_eq!((scalar(&g[0]), g[1].is_none()), (20.0, true));
    assert_eq!(tape.without_gradient(), ["w"]);
    tape.watch(&w);
    let y = (&v * &w)?;
    assert_eq!(scalar(&tape.gradient(&y, &[&w])?[0]), 2.0);
    Ok(())
}

#[test]
fn a_consumed_tape_and_a_wrong_target_are_errors() -> Result<()> {
    let x = Tensor::from([1.0f32, 2.0]);
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = (&x * 2.0)?;
    assert!(tape.gradient(&y, &[&x]).unwrap_err().to_string().contains("seed"));
    assert!(tape.gradient_with_seed(&y, &Tensor::from([1.0f64, 1.0]), &[&x]).is_err());
    assert!(tape.gradient(&Tensor::from(1i64), &[&x]).unwrap_err().to_string().contains("float"));
    tape.gradient(&y.sum()?, &[&x])?;
    assert!(tape.gradient(&y.sum()?, &[&x]).unwrap_err().to_string().contains("persistent"));
    Ok(())
}

#[test]
fn broadcast_inputs_receive_sums() -> Result<()> {
    let (x, b) = (Tensor::from([[1.0f64, 2.0], [3.0, 4.0]]), Tensor::from([10.0f64, 20.0]));
    let tape = GradientTape::new();
    tape.watch(&x);
    tape.watch(&b);
    let y = (&x * &b)?.sum()?;
    let g = tape.gradient(&y, &[&x, &b])?;
    let list = |g: &Option<Gradient>| g.as_ref().unwrap().dense().unwrap().to_vec::<f64>().unwrap();
    assert_eq!(list(&g[0]), [10.0, 20.0, 10.0, 20.0]);
    assert_eq!(list(&g[1]), [4.0, 6.0]);
    Ok(())
}

#[test]
fn reset_forgets_and_records_anew() -> Result<()> {
    let x = Tensor::from(2.0f64);
    let tape = GradientTape::new();
    tape.watch(&x);
    let old = (&x * &x)?;
    tape.reset();
    tape.watch(&x);
    let y = (&x * 3.0)?;
    assert!(tape.gradient(&old, &[&x])?[0].is_none());
    tape.reset();
    tape.watch(&x);
    let y2 = (&x * y)?;
    assert_eq!(scalar(&tape.gradient(&y2, &[&x])?[0]), 6.0);
    Ok(())
}

#[test]
fn a_tape_inside_no_grad_records_for_itself_alone() -> Result<()> {
    let x = Tensor::from(2.0f64);
    let outer = GradientTape::new();
    outer.watch(&x);
    let (y, inside) = no_grad(|| -> Result<_> {
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = (&x * &x)?;
        Ok((y.clone(), scalar(&tape.gradient(&y, &[&x])?[0])))
    })?;
    assert_eq!(inside, 4.0);
    let z = (&x * &y)?;
    assert_eq!(scalar(&outer.gradient(&z, &[&x])?[0]), 4.0);
    Ok(())
}

#[test]
fn a_million_ops_differentiate_and_drop_on_a_small_stack() {
    let run = || -> Result<()> {
        let (x, c) = (Tensor::from([0.0f32, 1.0]), Tensor::from([1e-6f32, 0.0]));
        let tape = GradientTape::new();
        tape.watch(&x);
        let mut y = x.clone();
        for _ in 0..1_000_000 {
            y = (y + &c)?;
        }
        let g = tape.gradient(&y.sum()?, &[&x])?;
        assert_eq!(g[0].as_ref().unwrap().dense()?.to_vec::<f32>()?, [1.0, 1.0]);
        let tape = GradientTape::new();
        tape.watch(&x);
        let mut y = x.clone();
        for _ in 0..1_000_000 {
            y = (&y * &c)?;
        }
        drop(tape);
        Ok(())
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(move || run().unwrap()).unwrap().join().unwrap();
}
