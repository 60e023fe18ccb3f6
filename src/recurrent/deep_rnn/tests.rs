use super::*;
use crate::DType;
use crate::init::Initializer;
use crate::module::Module;
use crate::nn::Linear;
use crate::recurrent::{GRU, LSTM, VanillaRNN, dynamic_unroll, static_unroll};

fn filled() -> impl Initializer {
    |shape: &crate::Shape, dtype: DType| {
        let numbers = (0..shape.size()).map(|k| ((k % 7) as f64 - 3.0) / 10.0).collect();
        Tensor::from_vec::<f64>(numbers, shape.clone())?.cast(dtype)
    }
}

fn vanilla(size: usize) -> VanillaRNN {
    VanillaRNN::new(size).w_i_init(filled()).w_h_init(filled()).b_init(filled())
}

fn x() -> Tensor {
    Tensor::from([[-1.0f32, -0.5, 0.0], [0.5, 1.0, -1.0]])
}

fn near(x: &Tensor, want: &[f32]) -> bool {
    let got = x.to_vec::<f32>().unwrap();
    got.len() == want.len() && got.iter().zip(want).all(|(x, want)| (x - want).abs() < 2e-7)
}

// The numbers of these three were computed by Sonnet 2.0.2.
#[test]
fn cores_take_their_part_of_the_state_and_other_layers_none() -> Result<()> {
    let gru = GRU::new(3).w_i_init(filled()).w_h_init(filled()).b_init(filled());
    let linear = Linear::new(1).w_init(filled()).b_init(filled());
    let core = DeepRNN::new().push(vanilla(2)).push(Tensor::tanh).push(gru).push(linear);
    let (y, state) = core.step(&x(), &core.initial_state(2)?)?;
    assert!(near(&y, &[-0.301488, -0.3181087]), "{y:?}");
    assert!(near(state.get(0)?.leaf()?, &[0.0499584, 0.0, -0.57167, -0.4621171]));
    let want = [0.1286613, -0.1365278, -0.0980482, 0.1078883, -0.0482953, -0.0459877];
    assert!(near(state.get(1)?.leaf()?, &want));
    let paths: Vec<String> = core.named_variables()?.into_iter().map(|(path, _)| path).collect();
    assert!(paths.contains(&"_layers/0/_hidden_to_hidden/w".into()) && paths.contains(&"_layers/3/b".into()));
    Ok(())
}

#[test]
fn with_skip_connections_cores_see_the_input_and_all_of_them_are_seen() -> Result<()> {
    let make = || deep_rnn_with_skip_connections().push(vanilla(2)).push(vanilla(3));
    let core = make();
    let (y, _) = core.step(&x(), &core.initial_state(2)?)?;
    let last = [[-0.0049958, -0.0499584, -0.0947194], [-0.6557134, -0.0386159, 0.3198394]];
    let want = [&[0.0499584, 0.0][..], &last[0], &[-0.57167, -0.4621171], &last[1]].concat();
    assert!(near(&y, &want), "{y:?}");
    let core = make().concat_final_output(false);
    assert!(near(&core.step(&x(), &core.initial_state(2)?)?.0, &last.concat()));
    Ok(())
}

#[test]
fn with_residual_connections_inputs_are_added_and_states_are_the_cores_own() -> Result<()> {
    let core = deep_rnn_with_residual_connections().push(vanilla(3)).push(vanilla(3));
    let (y, state) = core.step(&x(), &core.initial_state(2)?)?;
    assert!(near(&y, &[-1.0298915, -0.5750485, -0.1894834, -0.5861688, 1.261747, -0.478049]), "{y:?}");
    let want = [0.0, -0.0499584, -0.099668, -0.6351489, 0.099668, 0.2449187];
    assert!(near(state.get(0)?.leaf()?, &want));
    let names: Vec<String> = core.submodules().iter().map(|module| module.scope().path()).collect();
    assert!(names.contains(&"vanilla_rnn_residual".into()), "{names:?}");
    let (path, variable) = &core.named_variables()?[0];
    assert_eq!((path.as_str(), variable.name()), ("_layers/0/_base_core/_b", "vanilla_rnn/b"));
    Ok(())
}

#[test]
fn all_steps_layer_by_layer_agree_with_one_after_the_other() -> Result<()> {
    let cores = [
        DeepRNN::new().push(LSTM::new(4)).push(GRU::new(3)).push(LSTM::new(2)),
        deep_rnn_with_skip_connections().push(LSTM::new(4)).push(VanillaRNN::new(3)),
        deep_rnn_with_residual_connections().push(LSTM::new(3)).push(LSTM::new(3)),
    ];
    let xs = crate::random::Generator::seed(1).normal([5, 2, 3], 0.0, 1.0, DType::F32)?;
    for core in &cores {
        for lengths in [None, Some(Tensor::from([2i32, 5]))] {
            let state = core.initial_state(2)?;
            let (ys, last) = dynamic_unroll(core, &xs, &state, lengths.as_ref())?;
            let (want, want_last) = static_unroll(core, &xs, &state, lengths.as_ref())?;
            assert!(near(&ys, &want.to_vec::<f32>()?), "{core:?}");
            last.try_zip(&want_last, |a, b| {
                assert!(near(a, &b.to_vec::<f32>()?), "{core:?}");
                Ok(())
            })?;
        }
    }
    Ok(())
}

#[test]
fn nested_inputs_pass_through_cores_that_take_them() -> Result<()> {
    /// Adds up the parts of its input, and gives the sum and its double.
    #[derive(Module)]
    #[module(allow_empty_variables)]
    struct Parts {
        scope: Scope,
    }
    #[scoped]
    impl RNNCore for Parts {
        fn step(&self, _: &Tensor, _: &Nest) -> Result<(Tensor, Nest)> {
            Err(Error::usage("parts", "one tensor came", "give several"))
        }
        fn initial_state(&self, batch_size: usize) -> Result<Nest> {
            Ok(Tensor::zeros([batch_size, 1], DType::F32)?.into())
        }
        fn step_nested(&self, x: &Nest, state: &Nest) -> Result<(Nest, Nest)> {
            let sum = Tensor::add_n(&[&x.leaves()[..], &[state.leaf()?]].concat())?;
            Ok((Nest::tuple([sum.clone(), (&sum * 2.0)?]), sum.into()))
        }
    }
    let parts = || Parts { scope: Scope::of::<Parts>() };
    let core = DeepRNN::new().push(parts()).push(parts());
    let x = Nest::tuple([Tensor::from([[1.0f32]]), Tensor::from([[2.0f32]])]);
    // 1 + 2 = 3, then 3 + 6 = 9.
    let (y, state) = core.step_nested(&x, &core.initial_state(1)?)?;
    assert_eq!(y.get(1)?.leaf()?.item::<f32>()?, 18.0);
    assert_eq!(state.get(1)?.leaf()?.item::<f32>()?, 9.0);
    let residual = deep_rnn_with_residual_connections().push(parts());
    let (y, _) = residual.step_nested(&x, &residual.initial_state(1)?)?;
    assert_eq!(y.get(1)?.leaf()?.item::<f32>()?, 8.0);
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused_and_said_where() -> Result<()> {
    let state = |core: &DeepRNN| core.initial_state(2).unwrap();
    let refused = |core: &DeepRNN, state: &Nest| core.step(&x(), state).unwrap_err().to_string();
    let skip = deep_rnn_with_skip_connections().push(LSTM::new(2)).push(Linear::new(2));
    assert!(refused(&skip, &state(&skip)).contains("layer 1 has no state"));
    let residual = deep_rnn_with_residual_connections().map(|x| x * 2.0);
    assert!(refused(&residual, &state(&residual)).contains("all must be cores"));
    assert!(refused(&deep_rnn_with_skip_connections(), &Nest::Tuple(vec![])).contains("push at least one"));
    let core = DeepRNN::new().push(LSTM::new(2)).push(GRU::new(2));
    assert!(refused(&core, &Nest::tuple([x()])).contains("a tuple of 2"));
    let swapped = Nest::tuple([state(&core).get(1)?.clone(), state(&core).get(0)?.clone()]);
    let message = refused(&core, &swapped);
    assert!(message.starts_with("in deep_rnn: _layers/0 (lstm): lstm: the state is *"), "{message}");
    let widths = deep_rnn_with_residual_connections().push(GRU::new(2));
    assert!(refused(&widths, &state(&widths)).contains("do not broadcast"));
    Ok(())
}

#[test]
fn without_layers_the_output_is_the_input() -> Result<()> {
    let core = DeepRNN::new();
    let (y, state) = core.step(&x(), &core.initial_state(2)?)?;
    assert_eq!((y.to_vec::<f32>()?, state.to_string()), (x().to_vec::<f32>()?, "()".into()));
    let xs = x().expand_dims(0)?;
    assert_eq!(dynamic_unroll(&core, &xs, &Nest::Tuple(vec![]), None)?.0.shape(), &[1, 2, 3]);
    Ok(())
}
