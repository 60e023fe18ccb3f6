use super::*;
use crate::GradientTape;
use crate::init;
use crate::module::Module;
use crate::recurrent::{dynamic_unroll, static_unroll};

/// `((k mod 7) - 3) / 10` in row-major order.
fn w_filled() -> impl Initializer {
    |shape: &crate::Shape, dtype: DType| {
        let numbers = (0..shape.size()).map(|k| ((k % 7) as f64 - 3.0) / 10.0).collect();
        Tensor::from_vec::<f64>(numbers, shape.clone())?.cast(dtype)
    }
}

/// All variables filled, the forget bias included.
fn filled(core: LSTM) -> LSTM {
    let core = core.w_i_init(w_filled()).w_h_init(w_filled()).b_init(w_filled()).forget_bias(0.0);
    if core.projection_size.is_some() { core.projection_init(w_filled()) } else { core }
}

fn x() -> Tensor {
    Tensor::from([[-1.0f32, -0.5, 0.0], [0.5, 1.0, -1.0]])
}

fn state(hidden: Tensor) -> Nest {
    LSTMState { hidden, cell: Tensor::from([[1.0f32, -1.0], [0.25, 0.5]]) }.into()
}

fn assert_near(x: &Tensor, want: &[f32]) {
    let got = x.to_vec::<f32>().unwrap();
    assert!(got.iter().zip(want).all(|(x, want)| (x - want).abs() < 2e-7), "{got:?}, expected {want:?}");
}

// The numbers were computed by Sonnet 2.0.2.
#[test]
fn a_step_gives_the_numbers_of_the_reference() -> Result<()> {
    let (y, next) = filled(LSTM::new(2)).step(&x(), &state(Tensor::from([[0.5f32, -0.5], [1.0, 0.0]])))?;
    assert_near(&y, &[0.2378382, -0.2655134, 0.0964866, 0.1433075]);
    assert_near(next.get("cell")?.leaf()?, &[0.4111994, -0.5737085, 0.1479267, 0.5211622]);
    Ok(())
}

#[test]
fn a_projected_step_gives_the_numbers_of_the_reference() -> Result<()> {
    let core = filled(LSTM::new(2).projection_size(1));
    let (y, next) = core.step(&x(), &state(Tensor::from([[0.5f32], [1.0]])))?;
    assert_near(&y, &[-0.0285982, -0.0576075]);
    assert_near(next.get("hidden")?.leaf()?, &[-0.0285982, -0.0576075]);
    assert_near(next.get("cell")?.leaf()?, &[0.4631478, -0.5118575, 0.1479267, 0.5211622]);
    Ok(())
}

#[test]
fn the_forget_bias_is_added_to_what_the_initialiser_gives() -> Result<()> {
    let b = |core: LSTM| -> Result<Vec<f32>> {
        core.step(&x(), &core.initial_state(2)?)?;
        core.b.get().expect("it was called").value().to_vec::<f32>()
    };
    assert_eq!(b(LSTM::new(2))?, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    let ones = LSTM::new(2).b_init(init::Ones).forget_bias(0.5);
    assert_eq!(b(ones)?, [1.0, 1.0, 1.5, 1.5, 1.0, 1.0, 1.0, 1.0]);
    Ok(())
}

#[test]
fn all_steps_at_once_agree_with_one_after_the_other_in_values_and_gradients() -> Result<()> {
    let core = LSTM::new(37).dtype(DType::F64);
    let xs = crate::random::Generator::seed(1).normal([6, 3, 5], 0.0, 1.0, DType::F64)?;
    let lengths = Tensor::from([6i32, 0, 4]);
    for lengths in [None, Some(&lengths)] {
        let run = |at_once: bool| -> Result<Vec<Tensor>> {
            let state = core.initial_state(3)?;
            let tape = GradientTape::new();
            tape.watch(&xs);
            let (ys, last) = match at_once {
                true => dynamic_unroll(&core, &xs, &state, lengths)?,
                false => static_unroll(&core, &xs, &state, lengths)?,
            };
            let LSTMState { hidden, cell } = last.try_into()?;
            let loss = (ys.square()?.sum()? + (&hidden * &cell)?.sum()?)?;
            let variables = core.variables()?;
            let mut sources: Vec<&dyn crate::Source> = vec![&xs];
            sources.extend(variables.iter().map(|v| v as &dyn crate::Source));
            let gradients = tape.gradient(&loss, &sources)?;
            let dense = gradients.into_iter().map(|g| g.expect("all are used").to_dense());
            [Ok(ys), Ok(hidden), Ok(cell)].into_iter().chain(dense).collect()
        };
        for (a, b) in run(true)?.iter().zip(&run(false)?) {
            assert_eq!(a.shape(), b.shape());
            for (a, b) in a.to_vec::<f64>()?.iter().zip(b.to_vec::<f64>()?) {
                assert!((a - b).abs() < 1e-13 * (1.0 + b.abs()), "{a}, expected {b}");
            }
        }
    }
    Ok(())
}

#[test]
fn the_sequence_of_the_reference_with_lengths() -> Result<()> {
    // X([3, 2, 3]): ((k mod 5) - 2) / 2.
    let xs: Vec<f32> = (0..18).map(|k| ((k % 5) as f32 - 2.0) / 2.0).collect();
    let xs = Tensor::from_vec(xs, [3, 2, 3])?;
    let core = filled(LSTM::new(2));
    let (ys, last) = dynamic_unroll(&core, &xs, &core.initial_state(2)?, Some(&Tensor::from([1i64, 3])))?;
    let want = [-0.0280946, -0.03998, 0.010721, 0.1023669, -0.0280946, -0.03998, -0.031965, 0.0985217];
    assert_near(&ys.narrow(0, 0, 2)?, &want);
    assert_near(&ys.index(-1)?, &[-0.0280946, -0.03998, -0.0345642, 0.0293612]);
    assert_near(last.get("cell")?.leaf()?, &[-0.0523236, -0.0763032, -0.0655955, 0.0562577]);
    Ok(())
}

#[test]
fn misfits_are_refused_and_make_nothing() -> Result<()> {
    let core = LSTM::new(2);
    let fresh = core.initial_state(2)?;
    let refused = |core: &LSTM, x: Tensor, state: &Nest| core.step(&x, state).unwrap_err().to_string();
    let ones = |shape: &[usize], dtype| Tensor::ones(shape, dtype);
    assert!(refused(&core, ones(&[2, 3, 4], DType::F32)?, &fresh).contains("[2, 3, 4], expected rank 2"));
    assert!(refused(&core, ones(&[2, 3], DType::F64)?, &fresh).contains("f64, expected f32"));
    assert!(refused(&core, ones(&[3, 3], DType::F32)?, &fresh).contains("the hidden state"));
    let pair = Nest::tuple(fresh.leaves().into_iter().cloned());
    let message = refused(&core, x(), &pair);
    assert!(message.contains("(*, *), expected LSTMState(hidden=*, cell=*)"), "{message}");
    assert!(core.named_variables()?.is_empty());

    let without = LSTM::new(2).projection_init(init::Ones);
    assert!(refused(&without, x(), &fresh).contains("projection_size"));
    assert!(
        without.initial_state(1).is_err()
            && dynamic_unroll(&without, &x().expand_dims(0)?, &fresh, None).is_err()
    );
    assert!(LSTM::new(2).projection_size(0).initial_state(1).unwrap_err().to_string().contains("1 or more"));

    core.step(&x(), &fresh)?;
    assert!(refused(&core, ones(&[2, 4], DType::F32)?, &fresh).contains("3 as its last dim"));
    Ok(())
}

#[test]
fn halves_are_computed_in_single_precision_and_rounded_once() -> Result<()> {
    let core = LSTM::new(3).dtype(DType::BF16);
    let xs = Tensor::ones([4, 2, 5], DType::BF16)?;
    let (ys, last) = dynamic_unroll(&core, &xs, &core.initial_state(2)?, None)?;
    assert_eq!((ys.dtype(), last.get("cell")?.leaf()?.dtype()), (DType::BF16, DType::BF16));
    let (steps, _) = static_unroll(&core, &xs, &core.initial_state(2)?, None)?;
    let list = |x: &Tensor| x.cast(DType::F32)?.to_vec::<f32>();
    assert!(list(&ys)?.iter().zip(list(&steps)?).all(|(a, b)| (a - b).abs() < 1e-2));
    Ok(())
}

#[test]
fn an_empty_batch_gives_empty_outputs_and_the_same_variables() -> Result<()> {
    let core = LSTM::new(2);
    let xs = Tensor::zeros([3, 0, 4], DType::F32)?;
    let tape = GradientTape::new();
    let (ys, last) = dynamic_unroll(&core, &xs, &core.initial_state(0)?, None)?;
    assert_eq!((ys.shape(), last.get("cell")?.leaf()?.shape()), (&[3, 0, 2].into(), &[0, 2].into()));
    let variables = core.trainable_variables()?;
    assert_eq!(variables[1].shape(), &[4, 8]);
    let gradients = tape.gradient(&ys.sum()?, &variables)?;
    for gradient in gradients {
        let zeros = gradient.expect("all are used").to_dense()?.to_vec::<f32>()?;
        assert!(zeros.iter().all(|&x| x == 0.0));
    }
    assert_eq!(static_unroll(&core, &xs, &core.initial_state(0)?, None)?.0.shape(), &[3, 0, 2]);
    Ok(())
}
