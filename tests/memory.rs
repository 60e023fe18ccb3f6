//! Memory stays flat however long a program trains.
#![cfg(target_os = "linux")]

use std::sync::{Mutex, PoisonError};

use couplet::autodiff::recompute;
use couplet::prelude::*;

/// The tests measure the whole process, so they run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

/// Resident memory of the process in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Steps of training that keep their losses, with an evaluation now and then.
fn train(steps: usize, layer: &Linear, optimizer: &optim::Adam, losses: &mut [Tensor]) -> Result<()> {
    let x = Tensor::from([[1.0f32, -2.0, 0.5]]);
    for step in 0..steps {
        let tape = GradientTape::new();
        let loss = layer.forward(&x)?.square()?.mean()?;
        let params = layer.trainable_variables()?;
        optimizer.apply(&tape.gradient(&loss, &params)?, &params)?;
        losses[step % 100] = loss;
        if step % 1000 == 0 {
            layer.forward(&x)?;
        }
    }
    Ok(())
}

#[test]
fn a_million_steps_need_no_more_memory_than_a_thousand() -> Result<()> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (layer, optimizer) = (Linear::new(2), optim::Adam::new(1e-3));
    let mut losses = vec![Tensor::from(0.0f32); 100];
    train(1000, &layer, &optimizer, &mut losses)?;
    let before = resident();
    train(1_000_000, &layer, &optimizer, &mut losses)?;
    let grown = resident().saturating_sub(before);
    // The allocator may round up by a few pages; one byte a step would be 1000 KiB.
    assert!(grown < 600, "{grown} KiB more after a million steps");
    Ok(())
}

#[test]
fn recomputation_keeps_one_block_of_many() -> Result<()> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // 40 blocks of 10 ops on 1 MiB each would keep 400 MiB.
    let run = |recomputed: bool| -> Result<usize> {
        let x = Tensor::full([512, 512], 0.5, DType::F32)?;
        let tape = GradientTape::new();
        tape.watch(&x);
        let mut y = x.clone();
        for _ in 0..40 {
            let block = || {
                let mut h = y.clone();
                for _ in 0..10 {
                    h = h.sin()?;
                }
                Ok(h)
            };
            y = if recomputed { recompute(block)? } else { block()? };
        }
        let held = resident();
        tape.gradient(&y.sum()?, &[&x])?;
        Ok(held)
    };
    let lean = run(true)?;
    couplet::release_cached_memory();
    let plain = run(false)?;
    assert!(plain > lean + 250 * 1024, "{lean} KiB recomputed, {plain} KiB kept");
    Ok(())
}

#[test]
fn functions_of_parameters_keep_nothing_between_calls() -> Result<()> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let net = Sequential::new().push(Linear::new(2)).push(BatchNorm::new(true, true));
    let loss =
        functional::transform_with_state(&net, |net, x: &Tensor| net.forward_t(x, true)?.square()?.mean());
    let optimizer = functional::adam(1e-3);
    let x = Tensor::from([[1.0f32, -2.0, 0.5], [0.5, 1.0, 2.0]]);
    let (mut params, mut state) = loss.init(&Generator::seed(1), &x)?;
    let mut slots = optimizer.init(&params)?;
    let mut train = |steps: usize| -> Result<()> {
        for _ in 0..steps {
            let step = |params: &functional::Params| loss.apply(params, &state, &x);
            let ((_, next), grads) = functional::value_and_grad_with_aux(step, &params)?;
            (params, slots) = optimizer.apply(slots.clone(), &grads, params.clone())?;
            state = next;
        }
        Ok(())
    };
    train(1000)?;
    let before = resident();
    train(100_000)?;
    let grown = resident().saturating_sub(before);
    // One word a step would be 780 KiB.
    assert!(grown < 600, "{grown} KiB more after 100,000 steps");
    Ok(())
}
