use super::*;
use crate::module::Module;
use crate::recurrent::{LSTM, dynamic_unroll};

#[test]
fn it_is_an_lstm_over_any_number_of_steps() -> Result<()> {
    let (network, core) = (UnrolledLSTM::new(3), LSTM::new(3));
    for steps in [1, 2, 4] {
        let xs =
            crate::random::Generator::seed(steps).normal([steps as usize, 2, 5], 0.0, 1.0, DType::F32)?;
        let state = network.initial_state(2)?;
        let (ys, last) = network.unroll(&xs, &state)?;
        if core.named_variables()?.is_empty() {
            core.copy_weights_from(&network)?;
        }
        let (want, want_last) = dynamic_unroll(&core, &xs, &state, None)?;
        assert_eq!(ys.to_vec::<f32>()?, want.to_vec::<f32>()?);
        last.try_zip(&want_last, |a, b| {
            assert_eq!(a.to_vec::<f32>()?, b.to_vec::<f32>()?);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn misfits_are_refused_and_make_nothing() -> Result<()> {
    let network = UnrolledLSTM::new(2);
    let state = network.initial_state(2)?;
    let refused = |shape: &[usize], dtype, state: &Nest| {
        network.unroll(&Tensor::ones(shape, dtype).unwrap(), state).unwrap_err().to_string()
    };
    assert!(refused(&[2, 3], DType::F32, &state).contains("[2, 3], expected rank 3"));
    assert!(refused(&[0, 2, 3], DType::F32, &state).contains("at least one step"));
    assert!(refused(&[1, 2, 3], DType::F64, &state).contains("f64, expected f32"));
    assert!(refused(&[1, 3, 3], DType::F32, &state).contains("the hidden state"));
    assert!(refused(&[1, 2, 3], DType::F32, &Nest::Empty).contains("LSTMState"));
    assert!(network.named_variables()?.is_empty());
    Ok(())
}
