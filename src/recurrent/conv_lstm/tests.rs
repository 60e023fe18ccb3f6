use super::*;
use crate::module::Module;

fn filled() -> impl Initializer {
    |shape: &crate::Shape, dtype: DType| {
        let numbers = (0..shape.size()).map(|k| ((k % 7) as f64 - 3.0) / 10.0).collect();
        Tensor::from_vec::<f64>(numbers, shape.clone())?.cast(dtype)
    }
}

fn core<const N: usize>(input_shape: &[usize]) -> ConvNDLSTM<N> {
    let core = ConvNDLSTM::new(input_shape, 1, 2);
    core.w_i_init(filled()).w_h_init(filled()).b_init(filled()).forget_bias(0.0)
}

/// `((k mod 5) - 2) / 2` in row-major order.
fn x(shape: &[usize]) -> Tensor {
    let numbers = (0..shape.iter().product::<usize>()).map(|k| ((k % 5) as f32 - 2.0) / 2.0).collect();
    Tensor::from_vec::<f32>(numbers, shape).unwrap()
}

/// One step from a state of 0.5 and 0.25.
fn step<const N: usize>(shape: &[usize]) -> Result<(Vec<f32>, Vec<f32>)> {
    let core = core::<N>(&shape[1..]);
    let LSTMState { hidden, cell } = core.initial_state(1)?.try_into()?;
    let state = LSTMState { hidden: (hidden + 0.5)?, cell: (cell + 0.25)? };
    let (y, next) = core.step(&x(shape), &state.into())?;
    Ok((y.to_vec::<f32>()?, next.get("cell")?.leaf()?.to_vec::<f32>()?))
}

fn near(got: &[f32], want: &[f32]) -> bool {
    got.len() == want.len() && got.iter().zip(want).all(|(x, want)| (x - want).abs() < 2e-7)
}

// The numbers were computed by Sonnet 2.0.2.
#[test]
fn steps_in_one_two_and_three_dims_give_the_numbers_of_the_reference() -> Result<()> {
    let (y, cell) = step::<1>(&[1, 3, 2])?;
    assert!(near(&y, &[0.0151496, 0.1128905, -0.0383839]), "{y:?}");
    assert!(near(&cell, &[0.0319034, 0.2297393, -0.0669192]), "{cell:?}");
    let (y, cell) = step::<2>(&[1, 2, 3, 2])?;
    assert!(near(&y, &[-0.0174208, 0.0342129, -0.0252881, 0.0089632, 0.1036251, 0.0127292]), "{y:?}");
    assert!(near(&cell, &[-0.0366901, 0.0829531, -0.0460247, 0.0210654, 0.2727068, 0.0236898]), "{cell:?}");
    let (y, _) = step::<3>(&[1, 2, 2, 3, 2])?;
    assert!(near(&y[..4], &[-0.1193412, 0.1109859, -0.0113949, 0.0659619]), "{y:?}");
    assert!(near(&y[8..], &[-0.0069558 * -1.0, 0.1036251, 0.0151496, 0.0518397]), "{y:?}");
    Ok(())
}

#[test]
fn channels_first_gives_the_numbers_of_channels_last() -> Result<()> {
    let (last, first) =
        (Conv2DLSTM::new([3, 4, 2], 5, 3), Conv2DLSTM::new([2, 3, 4], 5, 3).data_format("NCHW"));
    let x = x(&[2, 3, 4, 2]);
    let (y, state) = last.step(&x, &last.initial_state(2)?)?;
    first.copy_weights_from(&last)?;
    let (z, other) = first.step(&x.transpose(&[0, 3, 1, 2])?, &first.initial_state(2)?)?;
    assert_eq!((y.shape(), z.shape()), (&[2, 3, 4, 5].into(), &[2, 5, 3, 4].into()));
    assert_eq!(z.transpose(&[0, 2, 3, 1])?.to_vec::<f32>()?, y.to_vec::<f32>()?);
    let back = other.get("cell")?.leaf()?.transpose(&[0, 2, 3, 1])?.to_vec::<f32>()?;
    assert_eq!(back, state.get("cell")?.leaf()?.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn misfits_are_refused_and_make_nothing() -> Result<()> {
    let core = Conv2DLSTM::new([3, 4, 2], 5, 3);
    let state = core.initial_state(2)?;
    let refused = |core: &Conv2DLSTM, shape: &[usize], dtype| {
        core.step(&Tensor::ones(shape, dtype).unwrap(), &state).unwrap_err().to_string()
    };
    assert!(refused(&core, &[2, 3, 4], DType::F32).contains("rank 4"));
    assert!(refused(&core, &[2, 3, 4, 2], DType::F64).contains("f64, expected f32"));
    assert!(refused(&core, &[2, 4, 4, 2], DType::F32).contains("[2, 4, 4, 5]"));
    assert!(core.named_variables()?.is_empty());
    let kernel = Conv2DLSTM::new([3, 4, 2], 5, [3, 3, 3]);
    assert!(refused(&kernel, &[2, 3, 4, 2], DType::F32).contains("kernel_shape"));
    assert!(kernel.named_variables()?.is_empty());
    assert!(Conv2DLSTM::new([3, 4], 5, 3).initial_state(1).is_err());
    assert!(Conv2DLSTM::new([3, 4, 2], 5, 3).data_format("ABC").initial_state(1).is_err());
    Ok(())
}
