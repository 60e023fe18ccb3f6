use super::*;
use crate::module::Module;

// The numbers were computed by Sonnet 2.0.2, with `((k mod 7) - 3) / 10` in all variables.
#[test]
fn a_step_gives_the_numbers_of_the_reference() -> Result<()> {
    let filled = || {
        |shape: &crate::Shape, dtype: DType| {
            let numbers = (0..shape.size()).map(|k| ((k % 7) as f64 - 3.0) / 10.0).collect();
            Tensor::from_vec::<f64>(numbers, shape.clone())?.cast(dtype)
        }
    };
    let core = GRU::new(2).w_i_init(filled()).w_h_init(filled()).b_init(filled());
    let x = Tensor::from([[-1.0f32, -0.5, 0.0], [0.5, 1.0, -1.0]]);
    let (y, state) = core.step(&x, &Tensor::from([[0.5f32, -0.5], [1.0, 0.0]]).into())?;
    let got = y.to_vec::<f32>()?;
    let want = [0.3157798, -0.2374555, 0.7557516, 0.1139337];
    assert!(got.iter().zip(want).all(|(y, want)| (y - want).abs() < 2e-7), "{got:?}");
    assert_eq!(state.leaf()?.to_vec::<f32>()?, got);
    Ok(())
}

#[test]
fn misfits_are_refused_and_make_nothing() -> Result<()> {
    let core = GRU::new(2);
    let state = core.initial_state(2)?;
    let refused = |shape: &[usize], dtype, state: &Nest| {
        core.step(&Tensor::ones(shape, dtype).unwrap(), state).unwrap_err().to_string()
    };
    assert!(refused(&[2, 3, 4], DType::F32, &state).contains("rank 2"));
    assert!(refused(&[2, 3], DType::F64, &state).contains("f64, expected f32"));
    assert!(refused(&[3, 3], DType::F32, &state).contains("the state has shape [2, 2], expected [3, 2]"));
    assert!(refused(&[2, 3], DType::F32, &Nest::Empty).contains("a single value"));
    assert!(core.named_variables()?.is_empty());
    Ok(())
}
