use super::*;
use crate::{DType, GradientTape};

/// The core "accumulate": `y = h + x`, and a count of steps that is shared by the batch.
fn accumulate(x: &Nest, state: &Nest) -> Result<(Nest, Nest)> {
    let (h, t) = (state.get("h")?.leaf()?, state.get("t")?.leaf()?);
    let y = (h + x.leaf()?)?;
    let next = Nest::map([("h", y.clone()), ("t", (t + 1)?)]);
    Ok((Nest::map([("y", y), ("n", t.clone())]), next))
}

fn start(h: [f32; 2]) -> Nest {
    Nest::map([("h", Tensor::from([[h[0]], [h[1]]])), ("t", Tensor::from(0i32))])
}

/// Outputs row by row, the counts, the last h and the last count.
fn run(steps: usize, h: [f32; 2], lengths: Option<&Tensor>) -> Result<(Vec<f32>, Vec<i32>, Vec<f32>, i32)> {
    let xs: Vec<f32> = (1..=2 * steps).map(|x| x as f32).collect();
    let xs = Nest::from(Tensor::from_vec(xs, [steps, 2, 1])?);
    let (ys, last) = unroll_with(accumulate, &xs, &start(h), lengths)?;
    Ok((
        ys.get("y")?.leaf()?.to_vec::<f32>()?,
        ys.get("n")?.leaf()?.to_vec::<i32>()?,
        last.get("h")?.leaf()?.to_vec::<f32>()?,
        last.get("t")?.leaf()?.item::<i32>()?,
    ))
}

#[test]
fn after_the_end_of_a_row_its_output_is_repeated_and_its_state_stays() -> Result<()> {
    let got = run(4, [0.0; 2], Some(&Tensor::from([2i64, 0])))?;
    let want = (vec![1.0, 0.0, 4.0, 0.0, 4.0, 0.0, 4.0, 0.0], vec![0, 1, 2, 3], vec![4.0, 0.0], 4);
    assert_eq!(got, want);
    let got = run(4, [10.0, 20.0], Some(&Tensor::from([3i32, 9])))?;
    let ys = vec![11.0, 22.0, 14.0, 26.0, 19.0, 32.0, 19.0, 40.0];
    assert_eq!((got.0, got.2), (ys, vec![19.0, 40.0]));
    let got = run(4, [0.0; 2], Some(&Tensor::from([-1i32, 100])))?;
    assert_eq!((got.0, got.2), (vec![0.0, 2.0, 0.0, 6.0, 0.0, 12.0, 0.0, 20.0], vec![0.0, 20.0]));
    Ok(())
}

#[test]
fn one_length_stands_for_all_rows_and_full_lengths_for_none() -> Result<()> {
    assert_eq!(run(3, [1.0, 2.0], Some(&Tensor::from(3u8)))?, run(3, [1.0, 2.0], None)?);
    assert_eq!(run(3, [1.0, 2.0], Some(&Tensor::from(1)))?, run(3, [1.0, 2.0], Some(&Tensor::from([1, 1])))?);
    let empty = run(3, [1.0, 2.0], Some(&Tensor::from([0, 0])))?;
    assert_eq!(empty, (vec![0.0; 6], vec![0, 1, 2], vec![1.0, 2.0], 3));
    Ok(())
}

#[test]
fn what_lies_beyond_the_end_of_a_row_gets_no_gradient() -> Result<()> {
    let xs = Tensor::ones([3, 2, 1], DType::F32)?;
    let tape = GradientTape::new();
    tape.watch(&xs);
    let lengths = Tensor::from([1, 3]);
    let (ys, _) = unroll_with(accumulate, &(&xs).into(), &start([0.0; 2]), Some(&lengths))?;
    let dx = tape.gradient(&ys.get("y")?.leaf()?.sum()?, &[&xs])?.remove(0).expect("it is used");
    // Row 0: its one output is there three times. Row 1: each input is in all outputs from its own on.
    assert_eq!(dx.dense()?.to_vec::<f32>()?, [3.0, 3.0, 0.0, 2.0, 0.0, 1.0]);
    Ok(())
}

#[test]
fn an_empty_part_of_the_output_stays_empty_and_an_absent_one_absent() -> Result<()> {
    let xs = Nest::from(Tensor::ones([3, 2, 1], DType::F32)?);
    let step = |x: &Nest, state: &Nest| {
        Ok((
            Nest::tuple([Nest::from(Tensor::zeros([0], DType::F32)?), Nest::Empty, x.clone()]),
            state.clone(),
        ))
    };
    let (ys, state) = unroll_with(step, &xs, &Nest::tuple([Nest::Empty]), None)?;
    assert_eq!(
        (ys.to_string(), state.to_string()),
        ("(f32[3, 0], none, f32[3, 2, 1])".into(), "(none,)".into())
    );
    let masked = |x: &Nest, state: &Nest| Ok((x.clone(), state.clone()));
    let lengths = Tensor::from([1, 2]);
    assert!(unroll_with(masked, &xs, &Nest::tuple([Nest::Empty]), Some(&lengths)).is_ok());
    Ok(())
}

#[test]
fn sequences_and_lengths_that_do_not_fit_are_refused() -> Result<()> {
    let message = |xs: Nest, lengths: Option<Tensor>| {
        unroll_with(accumulate, &xs, &start([0.0; 2]), lengths.as_ref()).unwrap_err().to_string()
    };
    let ones = |shape: &[usize]| Tensor::ones(shape, DType::F32);
    let unequal = Nest::tuple([ones(&[3, 2])?, ones(&[2, 2])?]);
    assert!(message(unequal, None).contains("[2, 2], expected 3 steps"));
    assert!(message(ones(&[0, 2, 1])?.into(), None).contains("at least one step"));
    assert!(message(ones(&[])?.into(), None).contains("at least one step"));
    assert!(message(Nest::Tuple(vec![]), None).contains("at least one tensor"));
    let xs = || Ok::<_, Error>(Nest::from(ones(&[3, 2, 1])?));
    assert!(message(xs()?, Some(Tensor::from([1, 2, 3]))).contains("[3], expected [2]"));
    assert!(message(xs()?, Some(Tensor::from([1.0f32, 2.0]))).contains("an integer dtype"));
    assert!(message(xs()?, Some(Tensor::from([[1], [2]]))).contains("[batch]"));
    let unsteady = |x: &Nest, state: &Nest| {
        let count = (state.leaf()? + 1)?;
        let y = if count.item::<i32>()? > 1 { Nest::tuple([x.clone()]) } else { x.clone() };
        Ok((y, count.into()))
    };
    let error = unroll_with(unsteady, &xs()?, &Tensor::from(0i32).into(), None).unwrap_err().to_string();
    assert!(error.contains("* and (*,)"), "{error}");
    Ok(())
}
